// @ts-check
/**
 * The rule for text from outside at the entrances of the page: paste, keys, an input method, fields; and a text that a
 * stock client has inserted without the rule.
 */

import assert from "node:assert/strict"
import { test } from "node:test"

// @ts-expect-error -- it comes without types
import { WebSocket } from "ws"
import { WebsocketProvider } from "y-websocket"
import * as Y from "yjs"

import { inputMethod } from "./composing.mjs"
import { until, User } from "./harness.mjs"
import { bothSeated, browser, galley, withGalley } from "./support.mjs"

withGalley()

/** Word's soft break, further breaks, a byte order mark, a control character, decomposed Hangul. */
const DIRTY = "\ufeff\u1112\u1161\u11ab\u000b\u1100\u1173\u11af\u2028\u0007e\u0301"
const CLEAN = "한\n글\né"

/** Waits until the server's text is that. @param {User} user @param {string} wanted @param {string} [view] */
async function storedIs(user, wanted, view = "") {
  let found = ""
  const link = new URL(user.page.url()).pathname.split("/").pop()
  const { share_links: links } = await (await user.page.request.get(`${galley.url}/api/share-links`)).json()
  const id = links.find((/** @type {any} */ one) => one.id === link || one.document_id === link).document_id
  await until(
    async () => (found = await (await user.page.request.get(`${galley.url}/api/documents/${id}/text${view}`)).text()) === wanted,
    `the server has ${JSON.stringify(wanted)}`,
    async () => JSON.stringify(found),
  )
}

/** @param {User} user @param {string} text */
async function paste({ page }, text) {
  await page.evaluate((pasted) => navigator.clipboard.writeText(pasted), text)
  await page.keyboard.press("Control+v")
}

/** @param {User} user @param {string} [at] */
async function caret({ page }, at = "Control+End") {
  await page.locator(".cm-content").click()
  await page.keyboard.press(at)
}

/** Both seated. @param {string} text @param {import("playwright-core").BrowserContextOptions} [options] of the reviewer */
async function desk(text, options) {
  const { writer, reviewer } = await bothSeated(text, {}, options)
  await reviewer.page.locator(".cm-content:not([aria-readonly=true])").waitFor()
  return { writer, reviewer }
}

test("a paste, a key and an input method of the writer follow the rule, and an undo takes them back whole", async () => {
  const { writer, reviewer } = await desk("앞 ")
  await caret(writer)
  await paste(writer, DIRTY)
  await storedIs(writer, `앞 ${CLEAN}`)
  await reviewer.waitForBase(`앞 ${CLEAN}`)
  await writer.page.keyboard.press("Control+z")
  await storedIs(writer, "앞 ")
  await writer.page.keyboard.insertText("\u1103\u1161")
  const ime = await inputMethod(writer)
  await ime.compose("\u1105", "\u1105\u1161", "\u1105\u1161\u11ab")
  await ime.commit("\u1105\u1161\u11ab")
  await storedIs(writer, "앞 다란")
  await writer.page.keyboard.press("Backspace")
  await storedIs(writer, "앞 다")
  await writer.waitForText("앞 다")
})

test("the reviewer's paste of Word's soft break is stored, accepted as it is shown, and a Backspace takes a letter", async () => {
  const { writer, reviewer } = await desk("하나 둘.")
  await caret(reviewer)
  await paste(reviewer, DIRTY)
  await storedIs(writer, `하나 둘.${CLEAN}`, "?view=accepted")
  await reviewer.page.keyboard.press("Backspace")
  await storedIs(writer, "하나 둘.한\n글\n", "?view=accepted")
  await reviewer.page.locator("#saved[data-kind=saved]").waitFor()
  assert.equal(await reviewer.notice.isVisible(), false)
})

test("a title, a comment and a search follow the rule, and a field of one line has a blank for a break", async () => {
  const { writer } = await desk("저는 각오를 다집니다.")
  const { page } = writer
  await page.locator("#title").fill("")
  await page.locator("#title").focus()
  await paste(writer, "\u1112\u1161\u11ab\u000b\u1100\u1173\u11af")
  assert.equal(await page.locator("#title").inputValue(), "한 글")
  await page.keyboard.press("Enter")
  await page.getByText("한 글", { exact: true }).first().waitFor({ state: "attached" })
  await writer.select("각오")
  await page.locator("#selection-bar").getByRole("button", { name: "Comment" }).click()
  await page.locator(".review-form textarea:not(.prose)").focus()
  await paste(writer, DIRTY)
  assert.equal(await page.locator(".review-form textarea:not(.prose)").inputValue(), CLEAN)
  await page.locator(".review-form button[type=submit]").click()
  await page.locator("#cards .card", { hasText: "한" }).waitFor()
  await caret(writer)
  await page.keyboard.press("Control+f")
  await page.locator(".find input").first().fill("")
  await page.locator(".find input").first().focus()
  await paste(writer, "\u1100\u1161\u11a8\u110b\u1169")
  await page.locator(".find-count", { hasText: "1" }).waitFor()
  assert.equal(await page.locator(".find input").first().inputValue(), "각오")
})

test("the decomposed text of a stock client is counted, found and changed like any other, at true positions", async () => {
  const { document, link, writer, reviewer } = await galley.desk("")
  const doc = new Y.Doc()
  const url = `${galley.url.replace("http", "ws")}/ws/share-links`
  const stock = new WebsocketProvider(url, `${link}/writer`, doc, { params: { token: writer }, disableBc: true, WebSocketPolyfill: WebSocket })
  const composed = "1. 지원동기를 기술하시오. (500byte 이내)\n저는 물류를 배웠습니다.\n\n2. 성격을 기술하시오. (700자 이내)\n각오."
  try {
    await until(async () => stock.synced, "the stock client is synced")
    doc.getText("content").insert(0, composed.normalize("NFD"))
    const user = await browser.newUser(galley)
    await user.page.context().addCookies([{ name: "galley_token", value: reviewer, url: galley.url }])
    await user.page.goto(`${galley.url}/s/${link}`)
    await user.seated()
    await user.waitForBase(composed.normalize("NFD"))
    // 13 letters of the answer: 10 syllables of two bytes, 2 blanks and a full stop.
    await user.page.locator(".question-meter", { hasText: "23" }).first().waitFor()
    assert.equal(await user.page.locator(".question-meter").count(), 2)
    await user.page.locator(".cm-content:not([aria-readonly=true])").waitFor()
    await user.select("물류를".normalize("NFD"))
    await user.page.keyboard.insertText("\u110b\u1172\u1110\u1169\u11bc\u110b\u1173\u11af")
    const accepted = composed.normalize("NFD").replace("물류를".normalize("NFD"), "유통을")
    await storedIs(user, accepted, "?view=accepted")
    assert.equal(await user.text(), accepted)
    const reviews = await (await user.page.request.get(`${galley.url}/api/share-links/${link}/reviews`)).json()
    const [{ parts: [{ anchor, text }] }] = reviews.reviews
    assert.deepEqual([anchor.state, anchor.quote, text], ["exact", "물류를".normalize("NFD"), "유통을"])
    assert.equal(doc.getText("content").toString().slice(anchor.start, anchor.end), anchor.quote)
    // A key in a decomposed word: what is shown is what will be accepted.
    await user.select("배웠".normalize("NFD"))
    await user.page.keyboard.press("ArrowRight")
    await user.page.keyboard.insertText("었")
    const word = "배웠습니다".normalize("NFD")
    await until(async () => {
      const answer = await user.page.request.get(`${galley.url}/api/documents/${document}/text?view=accepted`)
      const wanted = await answer.text()
      return wanted !== accepted && !wanted.includes(word) && (await user.text()) === wanted
    }, "the page shows the accepted text")
    await user.seated()
  } finally {
    stock.destroy()
    doc.destroy()
  }
})

test("a refused suggestion shows the reason and a way out, until it is stored", async () => {
  const sentences = { malformed: "취소하고 다시 써 보시고", "quote-changed": "한 번 더 고치면 새 글에 맞춰" }
  const { reviewer } = await desk("하나 둘.", { locale: "ko-KR" })
  const { page } = reviewer
  for (const [reason, sentence] of Object.entries(sentences)) {
    await page.route("**/suggestions", (route) => {
      const { put } = route.request().postDataJSON()
      return route.fulfill({ json: { items: put.map((/** @type {any} */ { id }) => ({ id, state: "refused", reason })) } })
    })
    await caret(reviewer)
    await page.keyboard.insertText("셋")
    await reviewer.notice.getByText(sentence).waitFor()
    await reviewer.shot(`refused-${reason}`)
    await page.unroute("**/suggestions")
    await page.keyboard.insertText("!")
    await reviewer.seated()
    await reviewer.notice.waitFor({ state: "hidden" })
  }
})
