// @ts-check
/** The reviewer's editor follows the shared text, and no composition is disturbed (M1 to M3). */

import assert from "node:assert/strict"
import { beforeEach, mock, test } from "node:test"

import { ChangeSet, Y } from "../../static/js/lib/vendor.ts"
import { Mirror } from "../../static/js/suggest/sync/mirror.ts"
import { Suggesting } from "../../static/js/suggest/sync/suggesting.ts"
import { FakeView } from "./reviewer_editor.js"

/** @param {string} content */
function page(content) {
  const text = new Y.Doc().getText("content")
  text.insert(0, content)
  const mirror = new Mirror(text)
  const view = new FakeView(content, mirror.extensions)
  mirror.attach(/** @type {any} */ (view))
  let ids = 0
  const model = new Suggesting(view.state.doc, [], () => `suggestion-${String(ids++).padStart(16, "0")}`)
  mirror.begin(model)
  const composed = () => {
    view.compositionStarted = false
    mirror.composed()
  }
  return { text, mirror, view, model, composed }
}

/** M1, and at rest the same base on all sides. @param {ReturnType<typeof page>} page */
function assertWhole({ text, mirror, view, model }) {
  assert.equal(view.text, mirror.overlay.view.toString())
  assert.equal(mirror.overlay.changes.apply(mirror.overlay.base).toString(), view.text)
  assert.equal(model.overlay.view.toString(), view.text)
  assert.equal(mirror.overlay.base.toString(), text.toString())
  assert.equal(model.overlay.base.toString(), text.toString())
}

beforeEach(() => {
  Object.assign(globalThis, { window: globalThis })
  mock.timers.reset()
  mock.timers.enable({ apis: ["setTimeout", "Date"], now: 1_000 })
})

test("an edit of the reviewer changes no shared text, and one of the writer keeps the words of both", () => {
  const all = page("저는 물류가 좋습니다.")
  all.view.type(3, 6, "유통이")
  assert.equal(all.text.toString(), "저는 물류가 좋습니다.")
  all.text.insert(0, "그래서 ")
  assert.equal(all.view.text, "그래서 저는 유통이 좋습니다.")
  assertWhole(all)
})

test("M2 nothing of a running composition is collected, and all of it after its end", () => {
  const { view, model, composed } = page("저는 좋습니다.")
  view.type(3, 3, "참 ")
  view.compose(5, 5, "ㅁ")
  view.compose(5, 6, "무")
  assert.deepEqual(model.collect().put.flatMap(({ parts }) => parts.map(({ text }) => text)), ["참 "])
  model.failed()
  composed()
  mock.timers.tick(70)
  assert.equal(model.overlay.view.toString(), "저는 참 무좋습니다.")
})

test("M2 a syllable that is done is collected although the next one is composed", () => {
  const { view, model } = page("끝")
  view.compose(1, 1, "한")
  view.compositionStarted = false
  view.compose(2, 2, "ㄱ")
  assert.equal(view.text, "끝한ㄱ")
  assert.equal(model.overlay.view.toString(), "끝한")
})

test("M2 the deletion of a selection that a composition replaces is of that composition", () => {
  const { view, model, composed } = page("저는 물류가 좋습니다.")
  view.dispatch({ changes: { from: 3, to: 5 }, userEvent: "delete.compose" })
  view.compose(3, 3, "ㅇ")
  view.compose(3, 4, "유")
  assert.deepEqual(model.collect().put, [])
  composed()
  mock.timers.tick(70)
  assert.deepEqual(model.collect().put.flatMap(({ parts }) => parts.map(({ quote, text }) => [quote, text])), [["물류가", "유가"]])
})

test("at rest a difference from the shared text or from the model is mended", () => {
  const all = page("가😀나")
  const other = new Y.Doc()
  Y.applyUpdate(other, Y.encodeStateAsUpdate(/** @type {Y.Doc} */ (all.text.doc)))
  other.getText("content").insert(2, "x")
  Y.applyUpdate(/** @type {Y.Doc} */ (all.text.doc), Y.encodeStateAsUpdate(other))
  assert.equal(all.text.toString(), "가\uFFFDx\uFFFD나", "Yjs replaces both halves of a pair that is divided")
  all.view.type(0, 0, "새")
  all.model.own(ChangeSet.of({ from: 1, to: 2 }, all.model.overlay.view.length))
  mock.timers.tick(1_100)
  assertWhole(all)
  assert.equal(all.view.text, "새가\uFFFDx\uFFFD나")
})

test("M3 an edit of another line enters during a composition", () => {
  const all = page("첫 줄\n둘째 줄")
  all.view.compose(3, 3, "하")
  all.text.insert(all.text.length, " 끝")
  assert.equal(all.view.text, "첫 줄하\n둘째 줄 끝")
  all.composed()
  mock.timers.tick(70)
  assertWhole(all)
})

test("M3 an edit of the composing line waits for the end and 60 ms, and so do all after it", () => {
  const all = page("첫 줄\n둘째 줄")
  all.view.compose(3, 3, "하")
  all.text.insert(0, "맨 ")
  all.text.insert(all.text.length, " 끝")
  assert.equal(all.view.text, "첫 줄하\n둘째 줄")
  assert.ok(all.mirror.isBehind)
  assert.equal(all.mirror.base.toShared(4), 6, "a position of the base in the text that is ahead")
  all.view.compose(3, 4, "한")
  all.composed()
  mock.timers.tick(50)
  assert.equal(all.view.text, "첫 줄한\n둘째 줄")
  mock.timers.tick(20)
  assert.equal(all.view.text, "맨 첫 줄한\n둘째 줄 끝")
  assertWhole(all)
})

test("M3 a composition that follows at once is waited for, too, and five seconds are enough", () => {
  const all = page("첫 줄")
  all.view.compose(3, 3, "하")
  all.text.insert(0, "맨 ")
  for (let syllable = 0; syllable < 4; syllable++) {
    mock.timers.tick(1_000)
    all.composed()
    all.view.compose(4 + syllable, 4 + syllable, "ㄱ")
    assert.ok(all.view.text.startsWith("첫"), `after ${syllable + 1} s`)
  }
  mock.timers.tick(1_100)
  assert.equal(all.view.text, "맨 첫 줄하ㄱㄱㄱㄱ")
  assertWhole(all)
})

test("a change of the page waits for the end of a composition, and the changes of the base go first", () => {
  const all = page("하나 둘")
  all.view.type(0, 2, "일")
  const [item] = all.model.collect().put
  all.model.answered([{ id: item?.id ?? "", state: "kept", version: 1 }])
  all.view.compose(3, 3, "하")
  all.mirror.change((model) => [model.decided(item?.id ?? "", "rejected")])
  assert.equal(all.view.text, "일 둘하")
  all.composed()
  mock.timers.tick(70)
  assert.equal(all.view.text, "하나 둘하")
  assertWhole(all)
})

test("the text as the server has it is a base like another, until the shared text takes over", () => {
  const all = page("하나 둘")
  all.view.type(4, 4, " 셋")
  all.mirror.showServed("하나, 둘")
  assert.equal(all.view.text, "하나, 둘 셋")
  all.text.insert(0, "영 ")
  assert.equal(all.view.text, "영 하나 둘 셋")
  all.mirror.showServed("하나")
  all.mirror.endServed()
  assertWhole(all)
})

/** @param {number} seed */
function random(seed) {
  let state = seed
  return (/** @type {number} */ below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

for (const seed of [1, 2, 3, 4, 5, 6, 7, 8]) {
  test(`random edits of both sides, with compositions, keep base, overlay and view together (seed ${seed})`, () => {
    const next = random(seed)
    const all = page("하나 둘 셋.\n넷 다섯.\n\n여섯 일곱 여덟.")
    const { text, view, composed } = all
    const words = ["가", " ", "나라", "\n", "x", "마 바"]
    const piece = () => words[next(words.length)] ?? ""
    /** The place of the composed syllable. */
    let [from, to] = [0, 0]
    for (let step = 0; step < 300; step++) {
      const action = next(10)
      if (action < 3) {
        const at = next(text.length + 1)
        if (next(2) === 0) text.insert(at, piece())
        else text.delete(at, Math.min(next(4), text.length - at))
      } else if (action < 5 && view.compositionStarted) {
        const syllable = ["ㅎ", "하", "한"][next(3)] ?? ""
        view.compose(from, to, syllable)
        to = from + syllable.length
      } else if (action < 6 && view.compositionStarted) {
        composed()
        mock.timers.tick(next(2) * 70)
      } else if (action < 7 && !view.compositionStarted) {
        from = next(view.state.doc.length + 1)
        view.compose(from, from, "ㅇ")
        to = from + 1
      } else if (action < 9 && !view.compositionStarted) {
        const at = next(view.state.doc.length + 1)
        view.type(at, Math.min(at + next(3), view.state.doc.length), piece())
      } else {
        mock.timers.tick(next(400))
      }
      if (view.compositionStarted) to = from = view.state.selection.main.head
      assert.equal(view.text, all.mirror.overlay.view.toString(), `step ${step}`)
    }
    if (view.compositionStarted) composed()
    mock.timers.tick(6_000)
    assertWhole(all)
  })
}
