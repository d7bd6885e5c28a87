// @ts-check
/** The own suggestions between the text of the reviewer's editor, the list of reviews and the server. */

import assert from "node:assert/strict"
import { beforeEach, mock, test } from "node:test"

import { Y } from "../../static/js/lib/vendor.ts"
import { Reviews } from "../../static/js/reviews/reviews.ts"
import { base } from "../../static/js/desk/base_text.ts"
import { marked, setPassages } from "../../static/js/reviews/highlights.ts"
import { Mirror } from "../../static/js/suggest/sync/mirror.ts"
import { OwnSuggestions } from "../../static/js/suggest/sync/own_suggestions.ts"
import { Sender } from "../../static/js/suggest/sync/sender.ts"
import { FakeView } from "./reviewer_editor.js"
import { ME, Server } from "./suggestions_server.js"

/** @param {string} content @param {(server: Server) => void} [before] */
async function page(content, before) {
  const text = new Y.Doc().getText("content")
  text.insert(0, content)
  const server = new Server(text)
  before?.(server)
  const fetch = async (/** @type {string} */ _path, /** @type {any} */ { method, body }) => {
    const sent = body && JSON.parse(body)
    if (method === "POST") server.calls.push(sent)
    const instead = method === "POST" ? server.instead.shift()?.(sent) : null
    const json = method === "GET" ? { reviews: server.reviews, next_cursor: null } : (instead?.json ?? server.put(sent))
    const status = instead?.status ?? 200
    if (status === 0) throw new TypeError("offline")
    return { ok: status < 400, status, headers: new Headers(), json: async () => structuredClone(json) }
  }
  Object.assign(globalThis, { fetch })
  const mirror = new Mirror(text)
  const view = new FakeView(content, mirror.extensions)
  mirror.attach(/** @type {any} */ (view))
  const editor = {
    view,
    addEventListener: () => undefined,
    get baseTree() {
      return view.state.facet(base).text(view.state)
    },
    get marked() {
      return view.state.field(marked)
    },
    inView: (/** @type {object} */ spot) => spot,
    setPassages: (/** @type {any} */ passages) => view.dispatch({ effects: setPassages.of(passages) }),
  }
  const reviews = new Reviews(/** @type {any} */ (editor), "link", ME.id, "u1", /** @type {any} */ (null))
  let maySend = true
  /** @type {OwnSuggestions} */
  const own = new OwnSuggestions(mirror, reviews, () => sender.isSending)
  const sender = new Sender(mirror, own, { link: "link", maySend: () => maySend })
  const signal = new AbortController().signal
  own.start(signal)
  sender.start(signal)
  await reviews.read()
  await finished()
  /** The server tells of a review, as after a call. @param {string} id */
  const event = async (id) => {
    if (server.stored.has(id)) reviews.apply(server.served(id))
    else reviews.drop(id)
    await finished()
  }
  const events = async () => {
    for (const id of server.stored.keys()) await event(id)
  }
  return { text, server, mirror, view, own, sender, reviews, event, events, seat: (/** @type {boolean} */ has) => (maySend = has) }
}

/** Everything that waits for no timer is done. */
async function finished() {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
}

/** @param {number} ms */
async function after(ms) {
  mock.timers.tick(ms)
  await finished()
}

/** The only item that was sent last. @param {Server} server */
const lastPut = (server) => server.calls.at(-1).put[0]

beforeEach(() => {
  mock.timers.reset()
  mock.timers.enable({ apis: ["setTimeout", "Date"], now: 1_000 })
  Object.assign(globalThis, { window: Object.assign(globalThis, { addEventListener: () => undefined }), document: { hidden: false, addEventListener: () => undefined } })
})

test("what is typed is sent 400 ms after the last key, and each second while typing goes on", async () => {
  const { server, view } = await page("저는 물류가 좋습니다.")
  for (let key = 0; key < 9; key++) {
    view.type(3 + key, 3 + key, "a")
    await after(200)
  }
  assert.equal(server.calls.length, 1)
  await after(400)
  assert.equal(server.calls.length, 2)
  assert.equal(lastPut(server).version, 1)
})

test("the overlay is made of the open suggestions that stand, by form or typed", async () => {
  const { view, mirror } = await page("One two three.", (server) => {
    server.store("form", 1, [{ start: 4, end: 7, text: "2" }], { body: "shorter" })
    server.store("done", 1, [{ start: 0, end: 3, text: "1" }], { status: "rejected" })
  })
  assert.equal(view.text, "One 2 three.")
  assert.ok(mirror.isInView("form") && !mirror.isInView("done"))
})

test("an event of a suggestion that this page sent changes no letter, before its answer or after", async () => {
  const { server, view, events, own, sender } = await page("One two three.")
  view.type(4, 7, "2")
  await after(400)
  await events()
  assert.equal(view.text, "One 2 three.")
  view.type(5, 5, "nd")
  mock.timers.tick(400)
  const [id = ""] = server.stored.keys()
  server.store(id, 2, [{ start: 4, end: 7, text: "2nd" }])
  await events()
  await finished()
  assert.equal(view.text, "One 2nd three.")
  assert.equal(own.model?.suggestions.length, 1)
  await sender.send()
  assert.equal(own.model?.isDirty, false)
})

for (const first of ["the text", "the event"]) {
  test(`an accepted suggestion stays letter for letter, when ${first} comes first`, async () => {
    const { text, server, view, events, own } = await page("One two three.")
    view.type(4, 7, "2")
    await after(400)
    await events()
    const [id = ""] = server.stored.keys()
    const change = () => text.doc?.transact(() => {
      text.delete(4, 3)
      text.insert(4, "2")
    })
    if (first === "the text") change()
    server.amend(id, { status: "accepted" })
    await events()
    assert.equal(view.text, "One 2 three.")
    if (first !== "the text") change()
    await after(2_000)
    assert.equal(view.text, "One 2 three.")
    assert.equal(own.model?.overlay.changes.empty, true)
    assert.equal(server.calls.length, 1, "nothing is sent anew")
  })
}

test("a suggestion whose acceptance the writer changes at once ends, and words typed since are another one", async () => {
  const { text, server, view, events, own } = await page("One two three.")
  view.type(4, 7, "2 and 2")
  await after(400)
  await events()
  const [id = ""] = server.stored.keys()
  view.type(11, 11, " again")
  text.doc?.transact(() => {
    text.delete(4, 3)
    text.insert(4, "2 or 3")
  })
  server.amend(id, { status: "accepted" })
  await events()
  await after(10_000)
  await events()
  assert.equal(view.text, "One 2 or 3 again three.")
  assert.deepEqual([lastPut(server).parts.map((/** @type {any} */ { text: words }) => words), own.model?.isDirty, own.model?.unsaved()], [[" again"], false, { put: [], withdraw: [] }])
})

test("a rejected suggestion leaves the text, and an undone rejection brings it back", async () => {
  const { server, view, events } = await page("One two three.")
  view.type(4, 7, "2")
  await after(400)
  await events()
  const [id = ""] = server.stored.keys()
  server.amend(id, { status: "rejected" })
  await events()
  assert.equal(view.text, "One two three.")
  server.amend(id, { status: "open" })
  await events()
  assert.equal(view.text, "One 2 three.")
  await after(2_000)
  assert.equal(server.calls.length, 1)
})

test("words that were typed into a rejected suggestion are sent as another one, without a further key", async () => {
  for (const isEdited of [false, true]) {
    const { text, server, view, own, sender, events } = await page("One two three.")
    view.type(4, 7, "2")
    await after(400)
    await events()
    const [id = ""] = server.stored.keys()
    view.type(5, 5, "nd")
    if (isEdited) text.delete(5, 3)
    server.amend(id, { status: "rejected" })
    await after(400)
    await events()
    await after(2_000)
    const label = `${isEdited}: ${view.text}`
    assert.deepEqual([own.model?.unsaved().put, own.model?.isDirty, sender.refusal], [[], false, ""], label)
  }
})

test("a suggestion that its author undoes is withdrawn, and its late event does not bring it back", async () => {
  const { server, view, events, event } = await page("One two three.")
  view.type(4, 7, "2")
  await after(400)
  await events()
  view.type(4, 5, "two")
  await after(400)
  assert.equal(server.calls.at(-1).withdraw.length, 1)
  await finished()
  assert.equal(view.text, "One two three.")
  await event(server.calls[0].put[0].id)
  await after(2_000)
  assert.equal(view.text, "One two three.")
  assert.equal(server.calls.length, 2)
})

test("the writer deletes the whole text and undoes it: the own suggestions are in the text again once the server has found them", async () => {
  for (const isQueried of [false, true]) {
    const { text, server, mirror, view, own, reviews, events } = await page("저는 물류를 배웠습니다.\n둘째 줄입니다.")
    view.type(3, 6, "유통을")
    await after(400)
    await events()
    const undo = new Y.UndoManager(text)
    text.delete(0, text.length)
    if (isQueried) await reviews.read()
    await after(2_000)
    assert.deepEqual([view.text, own.model?.suggestions.length], ["", 0])
    undo.undo()
    await after(2_000)
    await reviews.read()
    await after(2_000)
    assert.equal(view.text, "저는 유통을 배웠습니다.\n둘째 줄입니다.")
    assert.ok(mirror.isInView(lastPut(server).id))
    assert.equal(own.model?.isDirty, false)
  }
})

test("a passage of which the server has fewer letters than this page is sent anew, once", async () => {
  const { text, server, view, own, events } = await page("저는 물류를 배웠습니다.")
  view.type(3, 6, "유통을")
  await after(400)
  await events()
  const { id } = lastPut(server)
  // As after an undo that brought a letter back before the server looked for it.
  server.store(id, 1, [{ start: 4, end: 6, text: "유통을" }])
  server.stored.get(id).parts[0].quote = "물류를"
  for (let times = 0; times < 2; times += 1) {
    await events()
    await after(3_000)
  }
  assert.deepEqual([server.calls.length, lastPut(server).id, lastPut(server).parts[0].quote], [2, id, "물류를"])
  server.accept(id)
  await events()
  assert.deepEqual([view.text, text.toString(), own.model?.isDirty], ["저는 유통을 배웠습니다.", "저는 유통을 배웠습니다.", false])
})

test("a gap that the server has at another offset than this page is sent anew, once", async () => {
  const { server, view, own, events } = await page("저는 물류를 배웠습니다.")
  view.type(3, 3, "꼭 ")
  await after(400)
  await events()
  const { id } = lastPut(server)
  // As where its letters were deleted, and the server found it by its words.
  server.store(id, 1, [{ start: 2, end: 2, text: "꼭 " }])
  for (let times = 0; times < 2; times += 1) {
    await events()
    await after(3_000)
  }
  assert.deepEqual([server.calls.length, lastPut(server).id, own.model?.isDirty], [2, id, false])
  server.accept(id)
  await events()
  assert.equal(view.text, "저는 꼭 물류를 배웠습니다.")
})

test("a suggestion of another page enters the text, and one that the other deletes leaves it", async () => {
  const { server, view, event } = await page("One two three.")
  server.store("other", 1, [{ start: 8, end: 13, text: "3" }])
  await event("other")
  assert.equal(view.text, "One two 3.")
  server.stored.delete("other")
  await event("other")
  assert.equal(view.text, "One two three.")
})

test("the author takes a suggestion back from its card", async () => {
  const { server, view, own, sender, events } = await page("One two three.")
  view.type(4, 7, "2")
  await after(400)
  await events()
  own.remove(lastPut(server).id)
  assert.equal(view.text, "One two three.")
  await sender.send()
  assert.equal(server.stored.size, 0)
})

test("without an answer the same batch is due again, and later keys go with it", async () => {
  const { server, view } = await page("One two three.")
  server.instead.push(() => ({ status: 0, json: {} }))
  view.type(4, 7, "2")
  await after(400)
  assert.equal(server.stored.size, 0)
  await after(2_000)
  assert.equal(server.stored.size, 1)
  assert.equal(server.calls[0].put[0].id, server.calls[1].put[0].id)
})

test("without the seat nothing is sent, and with it all that waits", async () => {
  const { server, view, sender, seat } = await page("One two three.")
  seat(false)
  view.type(4, 7, "2")
  await after(5_000)
  assert.equal(server.calls.length, 0)
  seat(true)
  sender.ready()
  await finished()
  assert.equal(server.stored.size, 1)
})

test("a body that is too long is divided, and its results are those of the whole", async () => {
  const { server, view, own } = await page(Array.from({ length: 5 }, (_, at) => `Line ${at}.`).join("\n"))
  const tooLong = (/** @type {any} */ { put }) => (2 < put.length ? { status: 413, json: { type: "/problems/too-large" } } : null)
  server.instead.push(...Array.from({ length: 9 }, () => tooLong))
  for (let line = 0; line < 5; line++) {
    const { from } = view.state.doc.line(line + 1)
    view.type(from, from + 4, "Row")
  }
  await after(400)
  await after(400)
  assert.equal(server.stored.size, 5)
  assert.equal(own.model?.isDirty, false)
})

test("a refused item stays unsaved and is not sent in a loop, until a key or an edit of the writer", async () => {
  const { server, view, text, sender, own } = await page("One two three.")
  const refuse = (/** @type {string} */ reason) => (/** @type {any} */ { put }) => ({ status: 200, json: { items: put.map((/** @type {any} */ { id }) => ({ id, state: "refused", reason })) } })
  server.instead.push(refuse("quote-changed"), refuse("full"))
  view.type(4, 7, "2")
  await after(400)
  await after(60_000)
  assert.equal(server.calls.length, 1)
  assert.equal(sender.refusal, "quote-changed")
  assert.equal(own.model?.unsaved().put.length, 1)
  text.insert(0, "And ")
  await after(400)
  assert.equal(server.calls.length, 2)
  assert.equal(sender.refusal, "full")
  await after(60_000)
  assert.equal(server.calls.length, 2)
  view.type(9, 9, "nd")
  await after(400)
  assert.equal(server.stored.size, 1)
  assert.equal(sender.refusal, "")
})

test("nothing of a running composition is sent, and positions follow a text that is ahead", async () => {
  const { server, view, text, mirror } = await page("하나 둘 셋")
  view.type(0, 2, "일")
  view.compose(1, 1, "ㅎ")
  text.insert(0, "맨 ")
  await after(400)
  assert.deepEqual(lastPut(server).parts.map((/** @type {any} */ part) => part.text), ["일"])
  assert.equal(server.reviews[0]?.anchor.quote, "하나")
  view.compositionStarted = false
  mirror.composed()
  await after(70)
  await after(400)
  assert.deepEqual(lastPut(server).parts.map((/** @type {any} */ part) => part.text), ["일ㅎ"])
})

/** @param {number} seed */
function random(seed) {
  let state = seed
  return (/** @type {number} */ below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

for (const seed of [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]) {
  test(`a random session of writer, reviewer, decisions, late events and lost answers ends with one text (seed ${seed})`, async () => {
    const next = random(seed)
    const all = await page("하나 둘 셋 넷.\n다섯 여섯 일곱.\n\n여덟 아홉 열.")
    const { text, server, view, own, sender, mirror } = all
    const words = ["가", " ", "나라", "\n", "마 바", "x"]
    const piece = () => words[next(words.length)] ?? ""
    /** Events that did not arrive yet. @type {string[]} */
    let late = []
    const announce = async () => {
      for (const id of late.splice(0)) await all.event(id)
    }
    for (let step = 0; step < 120; step++) {
      const action = next(12)
      const open = server.reviews.filter(({ status }) => status === "open")
      const review = open[next(Math.max(open.length, 1))]
      if (action < 2) {
        const at = next(text.length + 1)
        if (next(2) === 0) text.insert(at, piece())
        else text.delete(at, Math.min(next(3), text.length - at))
      } else if (action < 6) {
        const at = next(view.state.doc.length + 1)
        view.type(at, Math.min(at + next(3), view.state.doc.length), piece())
      } else if (action < 7 && review) {
        server.accept(review.id)
      } else if (action < 8 && review) {
        server.amend(review.id, { status: "rejected" })
      } else if (action < 9) {
        if (next(3) === 0) server.instead.push((body) => (next(2) === 0 ? { status: 0, json: {} } : { status: 0, json: server.put(body) }))
      } else {
        await after(next(1_200))
      }
      late = [...new Set([...late, ...server.stored.keys(), ...all.reviews.all.map(({ id }) => id)])]
      if (next(3) === 0) await announce()
      assert.equal(view.text, mirror.overlay.view.toString(), `step ${step}`)
    }
    server.instead = []
    for (let turn = 0; turn < 8; turn++) {
      late = [...new Set([...server.stored.keys(), ...all.reviews.all.map(({ id }) => id)])]
      await announce()
      await all.reviews.read()
      await after(40_000)
      await sender.send()
    }
    const { model } = own
    assert.equal(mirror.overlay.base.toString(), text.toString())
    assert.equal(model?.overlay.view.toString(), view.text)
    assert.equal(model?.isDirty, false, "all is sent")
    assert.deepEqual(model?.unsaved(), { put: [], withdraw: [] })
    const isExact = (/** @type {any} */ { anchor }) => anchor.state === "exact"
    // The writer changed the very letters of the others.
    const open = server.reviews.filter(({ id, status, parts }) => status === "open" && parts.every(isExact) && mirror.isInView(id))
    assert.equal(open.length, model?.suggestions.length)
    const parts = open.flatMap(({ parts }) => parts).sort((one, other) => other.anchor.start - one.anchor.start || other.anchor.end - one.anchor.end)
    const accepted = parts.reduce((whole, { anchor, text: words }) => whole.slice(0, anchor.start) + words + whole.slice(anchor.end), text.toString())
    assert.equal(accepted, view.text, "the suggestions of the server make the view")
  })
}
