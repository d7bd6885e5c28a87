// @ts-check
/** The editor reads what the user types off the page: all of it, whole, and nothing else. On both pages, without a server. */

import assert from "node:assert/strict"
import { after, afterEach, before, test } from "node:test"

import { EditorAlone } from "./editor_alone.mjs"
import { Browser, until } from "./harness.mjs"

/** @typedef {import("./editor_alone.mjs").Layout} Layout */

/** @type {Browser} */
let browser
/** @type {EditorAlone} */
let editor

before(async () => {
  browser = await Browser.start()
  editor = await EditorAlone.open(browser)
})
afterEach(() => browser.assertContent())
after(() => browser.stop())

/** @type {Record<string, Layout>} */
const LAYOUTS = {
  "replaced words": { role: "reviewer", text: "가 물류가", edits: [{ from: 2, to: 4, insert: "유통" }] },
  "deleted words": { role: "reviewer", text: "가 물류가 나", edits: [{ from: 2, to: 4, insert: "" }] },
  "an own insertion": { role: "reviewer", text: "가나", edits: [{ from: 1, to: 1, insert: "새말" }] },
  "a joined line and a new one": { role: "reviewer", text: "가나\n다라", edits: [{ from: 2, to: 3, insert: "" }, { from: 4, to: 4, insert: "\n" }] },
  "a line of struck words alone": { role: "reviewer", text: "가\n나다\n라", edits: [{ from: 2, to: 4, insert: "" }] },
  "struck words at the beginning of a line": { role: "reviewer", text: "가\n나다라마", edits: [{ from: 3, to: 4, insert: "" }] },
  "new words behind struck ones at the beginning of a line": { role: "reviewer", text: "가\n나다라마", edits: [{ from: 2, to: 4, insert: "유통" }] },
  "a stored suggestion of two changes, which are drawn as one": { role: "reviewer", text: "one two 나", edits: [{ from: 0, to: 3, insert: "ona" }, { from: 4, to: 7, insert: "twa" }], isStored: true },
  "a word of a stored suggestion that lost its beginning": { role: "reviewer", text: "international 나", edits: [{ from: 0, to: 5, insert: "" }], isStored: true },
  "replaced words, and the writer's caret and selection": { role: "reviewer", text: "가 물류가", edits: [{ from: 2, to: 4, insert: "유통" }], peer: [5, 4] },
  "the new words of a suggestion": { role: "writer", text: "가물류가", parts: [{ from: 1, to: 3, text: "유통" }, { from: 3, to: 4, text: "이" }] },
  "suggested insertions, one of them a line": { role: "writer", text: "가 나 다\n\n", parts: [{ from: 3, to: 3, text: "유통" }, { from: 6, to: 6, text: "새 줄" }] },
  "a suggested line break, and one to delete": { role: "writer", text: "가나다라\n마", parts: [{ from: 2, to: 2, text: "\n" }, { from: 4, to: 5, text: "" }] },
  "the reviewer's caret and selection": { role: "writer", text: "가 나 다", peer: [4, 3] },
}

for (const [name, layout] of Object.entries(LAYOUTS)) {
  test(`a syllable is composed whole at each caret and over each selection beside ${name}`, async () => {
    await editor.begin(layout)
    const { text } = await editor.state()
    for (let anchor = 0; anchor <= text.length; anchor++) {
      for (let head = 0; head <= text.length; head++) {
        await editor.begin(layout)
        await editor.select(anchor, head)
        await editor.compose("ㅇ", "이", "읻", "이")
        await editor.compose("다")
        const wanted = `${text.slice(0, Math.min(anchor, head))}이다${text.slice(Math.max(anchor, head))}`
        const state = await editor.state()
        assert.equal(state.text, wanted, `from ${anchor} to ${head}`)
        assert.equal(state.shown, wanted, `shown, from ${anchor} to ${head}`)
        if (layout.role === "writer") assert.equal(state.shared, wanted, `shared, from ${anchor} to ${head}`)
      }
    }
  })
}

test("undo takes back a composition and the selection that it replaced in one step", async () => {
  for (const role of /** @type {const} */ (["writer", "reviewer"])) {
    await editor.begin({ role, text: "가 물류가" })
    await editor.select(2, 4)
    await editor.compose("ㅇ", "유")
    assert.equal((await editor.state()).text, "가 유가")
    await editor.page.keyboard.press("Control+z")
    assert.equal((await editor.state()).text, "가 물류가")
  }
})

const EMOJI = [["😀", "😁"], ["😀", "a", "😁"], ["👍🏽", "👍🏾"], ["👍", "👍🏽"], ["👩", "👩‍👩", "👩‍👩‍👧"], ["🇰🇷", "🇰🇵", "🇩🇪"], ["😀x", "😁x"], ["x😀", "x😁"], ["😀", ""]]

for (const role of /** @type {const} */ (["writer", "reviewer"])) {
  test(`an emoji that an input method changes is whole in the text and in a suggestion: ${role}`, async () => {
    for (const texts of EMOJI) {
      for (const [ahead, behind] of /** @type {const} */ ([["a", "b"], ["😁", "😁"], ["", ""]])) {
        await editor.begin({ role, text: ahead + behind })
        await editor.select(ahead.length)
        await editor.compose(...texts)
        const wanted = ahead + texts.at(-1) + behind
        const { text, shared, parts } = await editor.state()
        assert.equal(text, wanted)
        if (role === "writer") assert.equal(shared, wanted, `${texts} between “${ahead}” and “${behind}”`)
        assert.doesNotMatch(JSON.stringify(parts ?? []), /\\u|\uFFFD/i)
      }
    }
  })

  test(`a pair that another client divided is shown as it is stored, and the page says so: ${role}`, async () => {
    await editor.begin({ role, text: "a😀b" })
    await editor.page.evaluate(() => alone.receive((/** @type {import("yjs").Text} */ text) => text.insert(2, "x")))
    const toast = editor.page.locator("#toast p").last()
    await toast.waitFor()
    const { text, shared } = await editor.state()
    assert.equal(shared, "a\uFFFDx\uFFFDb")
    assert.equal(text, shared)
    await editor.page.evaluate(() => document.getElementById("toast")?.replaceChildren())
  })

  test(`an edit of the page that no event announced is undone, and typing goes on: ${role}`, async () => {
    const { page } = editor
    const wanted = "first line\nsecond line\n\nlast"
    const rewrites = [
      () => document.querySelectorAll(".cm-line").forEach((line) => line.firstChild?.nodeType === 3 && (line.firstChild.nodeValue = "번역")),
      () => document.querySelectorAll(".cm-line").forEach((line) => line.replaceChildren(Object.assign(document.createElement("font"), { textContent: "번역" }))),
      () => document.querySelectorAll(".cm-line").forEach((line) => line.append(" 번역")),
      () => document.querySelector(".cm-line")?.remove(),
      () => document.querySelector(".cm-content")?.append(document.createElement("p"), "번역"),
      () => document.querySelector(".cm-content")?.replaceChildren("번역"),
    ]
    for (const [at, rewrite] of rewrites.entries()) {
      await editor.begin({ role, text: wanted })
      await editor.select(wanted.length)
      await page.evaluate(rewrite)
      await until(async () => (await editor.state()).shown === wanted, `rewrite ${at} is undone`, async () => JSON.stringify(await editor.state()))
      const { text, shared } = await editor.state()
      assert.deepEqual([text, shared], [wanted, wanted])
      await editor.select(wanted.length)
      await page.keyboard.type("!")
      await page.keyboard.insertText("?")
      await editor.compose("ㅎ", "하")
      assert.equal((await editor.state()).text, `${wanted}!?하`)
    }
    assert.equal(await page.locator(".cm-content.notranslate[translate=no]").count(), 1)
  })
}

test("letters of the user that did not enter the shared text are put there", async () => {
  await editor.begin({ role: "writer", text: "가나다" })
  await editor.page.evaluate(() => alone.divert((/** @type {import("yjs").Text} */ text) => text.delete(1, 1)))
  await editor.select(3)
  await editor.page.keyboard.insertText("라")
  await until(async () => (await editor.state()).shared === "가나다라", "the shared text is that of the editor", async () => JSON.stringify(await editor.state()))
  assert.equal((await editor.state()).text, "가나다라")
})

test("an announced edit of the page is read: a correction, a dictation, a deletion", async () => {
  const { page } = editor
  await editor.begin({ role: "writer", text: "teh end" })
  await editor.select(0, 3)
  await page.evaluate(() => document.execCommand("insertText", false, "the"))
  assert.equal((await editor.state()).shared, "the end")
  await page.evaluate(() => document.execCommand("delete"))
  assert.equal((await editor.state()).shared, "th end")
  await page.evaluate(() => {
    const node = /** @type {Node} */ (document.querySelector(".cm-line")?.firstChild)
    const event = { bubbles: true, cancelable: true, data: "the", inputType: "insertReplacementText" }
    node.dispatchEvent(new InputEvent("beforeinput", event))
    node.nodeValue = "the end"
    node.dispatchEvent(new InputEvent("input", event))
  })
  assert.equal((await editor.state()).shared, "the end")
  // An input method may write at the selection although a button has the focus.
  await editor.select(7)
  await page.evaluate(() => document.body.append(Object.assign(document.createElement("button"), { id: "elsewhere", textContent: "elsewhere" })))
  await page.locator("#elsewhere").click()
  await page.keyboard.insertText(" here")
  assert.equal((await editor.state()).shared, "the end here")
})

test("an edit of the page right behind one of the user is undone", async () => {
  await editor.begin({ role: "writer", text: "abc" })
  await editor.select(3)
  for (let round = 1; round <= 20; round++) {
    await editor.page.evaluate(() => {
      document.execCommand("insertText", false, "d")
      setTimeout(() => document.querySelector(".cm-line")?.append("번역"))
    })
    await editor.page.keyboard.insertText("e")
    await editor.page.evaluate(() => document.querySelector(".cm-line")?.append("번역"))
    assert.equal((await editor.state()).shared, `abc${"de".repeat(round)}`)
  }
})

test("an input method of Android is read, and a selection beside struck words is composed over", async () => {
  const phone = await EditorAlone.open(browser, { hasTouch: true, userAgent: "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 Chrome/140.0.0.0 Mobile Safari/537.36" })
  for (const role of /** @type {const} */ (["writer", "reviewer"])) {
    await phone.begin({ role, text: "가 물류가", edits: role === "reviewer" ? [{ from: 2, to: 4, insert: "유통" }] : [] })
    assert.ok(await phone.page.evaluate(() => /** @type {any} */ (document.querySelector(".cm-content")).editContext instanceof EventTarget))
    await phone.select(4, 5)
    await phone.compose("ㅇ", "이")
    await phone.compose("😀", "😁")
    await phone.page.keyboard.insertText("!")
    assert.equal((await phone.state()).text, role === "reviewer" ? "가 유통이😁!" : "가 물류이😁!")
  }
  await phone.page.context().close()
})

test("a script that rewrites each drawing of the text neither changes it nor holds the tab", async () => {
  const { page } = editor
  await editor.begin({ role: "writer", text: "abc" })
  await editor.select(3)
  await page.evaluate(() => {
    const content = /** @type {Element} */ (document.querySelector(".cm-content"))
    const rewrite = () => {
      const line = content.querySelector(".cm-line")
      if (line && line.textContent !== "번역") line.textContent = "번역"
    }
    const observer = new MutationObserver(rewrite)
    observer.observe(content, { subtree: true, childList: true, characterData: true })
    rewrite()
    Object.assign(globalThis, { endRewriting: () => observer.disconnect() })
  })
  await page.keyboard.insertText("d")
  assert.equal((await editor.state()).shared, "abc")
  // @ts-expect-error -- from above
  await page.evaluate(() => globalThis.endRewriting())
  await until(async () => (await editor.state()).shown === "abc", "the text is drawn again")
  assert.match(browser.errors.splice(0).join(), /again and again/)
})

test("Backspace, Delete and the arrows take an emoji as one, and a letter's accent alone", async () => {
  const { keyboard } = editor.page
  for (const emoji of ["👍🏽", "👩‍👩‍👧", "🇰🇷", "1️⃣", "❤️", "👨🏽‍🦱", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "😀"]) {
    const whole = { role: /** @type {const} */ ("writer"), text: `a${emoji}b` }
    const end = 1 + emoji.length
    for (const [key, at, text, selection] of /** @type {[string, number, string, [number, number]][]} */ ([
      ["Backspace", end, "ab", [1, 1]],
      ["Delete", 1, "ab", [1, 1]],
      ["ArrowRight", 1, whole.text, [end, end]],
      ["Shift+ArrowLeft", end, whole.text, [end, 1]],
    ])) {
      await editor.begin(whole)
      await editor.select(at)
      await keyboard.press(key)
      const state = await editor.state()
      assert.deepEqual([state.text, state.selection], [text, selection], `${key} at ${emoji}`)
    }
  }
  await editor.begin({ role: "writer", text: "ae\u0301" })
  await editor.select(3)
  await keyboard.press("Backspace")
  assert.equal((await editor.state()).text, "ae")
})

test("the caret never stands in a line break of two units, and keys take both", async () => {
  const text = "ab\r\ncd"
  for (const [keys, at, wanted, caret] of /** @type {[string, number, string, number][]} */ ([
    ["ArrowRight", 2, text, 4],
    ["ArrowLeft", 4, text, 2],
    ["End", 1, text, 2],
    ["End End", 1, text, 2],
    ["End x", 1, "abx\r\ncd", 3],
    ["ArrowDown ArrowUp End", 2, text, 2],
    ["Backspace", 4, "abcd", 2],
    ["Delete", 2, "abcd", 2],
  ])) {
    await editor.begin({ role: "writer", text })
    await editor.select(at)
    for (const key of keys.split(" ")) await editor.page.keyboard.press(key)
    const state = await editor.state()
    assert.deepEqual([state.text, state.shared, state.selection[0]], [wanted, wanted, caret], `${keys} at ${at}`)
  }
})

test("Enter is a line break and no more", async () => {
  for (const key of ["Enter", "Shift+Enter"]) {
    await editor.begin({ role: "writer", text: "  a   b" })
    await editor.select(3)
    await editor.page.keyboard.press(key)
    assert.equal((await editor.state()).shared, "  a\n   b")
  }
})

test("a drop on what is drawn into the text is one on the text", async () => {
  /** @type {[Layout, string][]} */
  const layouts = [
    [{ role: "writer", text: "one two three", peer: [8, 8] }, ".peer-caret"],
    [{ role: "writer", text: "one two three", parts: [{ from: 8, to: 8, text: "new words " }] }, "ins.passage-new"],
    [{ role: "reviewer", text: "one two old three", edits: [{ from: 8, to: 12, insert: "" }] }, "del.passage-old"],
  ]
  const { mouse } = editor.page
  for (const [layout, selector] of layouts) {
    await editor.begin(layout)
    await editor.select(0, 4)
    const from = await editor.page.evaluate(() => alone.pointAt(2))
    const box = await editor.page.locator(selector).boundingBox()
    assert.ok(from && box)
    await mouse.move(from.x, from.y)
    await mouse.down()
    await mouse.move(from.x + 8, from.y, { steps: 3 })
    await mouse.move(box.x + box.width / 2, box.y + box.height / 2, { steps: 5 })
    await mouse.up()
    await until(async () => (await editor.state()).text === "two one three", `a drop on ${selector}`, async () => JSON.stringify(await editor.state()))
  }
})
