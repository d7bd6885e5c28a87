// @ts-check
/** The reviewer types in the text: each change is a suggestion, and no composition is disturbed. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { openMenu, until } from "./harness.mjs"
import { caretBehind, decideFirst, desk, mayType, serverHas, stored, struck, suggestions } from "./suggesting_desk.mjs"
import { assertAccessible, assertFits, browser, galley, inEachLook, withGalley } from "./support.mjs"

/** @typedef {import("./harness.mjs").User} User */

withGalley()

/** An input method, as the browser sees one. @param {User} user */
async function inputMethod({ page }) {
  const session = await page.context().newCDPSession(page)
  return {
    /** @param {string} text */
    compose: (text) => session.send("Input.imeSetComposition", { text, selectionStart: text.length, selectionEnd: text.length }),
    /** @param {string} text */
    commit: (text) => session.send("Input.insertText", { text }),
  }
}

/** Watches the node in which the input method composes. @param {User} user */
const watchComposed = ({ page }) =>
  page.evaluate(() => {
    const node = getSelection()?.focusNode
    const composed = { node, parent: node?.parentNode, moved: false }
    // @ts-expect-error -- to look at again
    globalThis.composed = composed
    new MutationObserver(() => (composed.moved = true)).observe(/** @type {Node} */ (composed.parent), { childList: true })
  })

/** @param {User} user */
async function assertUntouched({ page }) {
  const isUntouched = await page.evaluate(() => {
    // @ts-expect-error -- from above
    const { node, parent, moved } = globalThis.composed
    return !moved && node.parentNode === parent && node === getSelection()?.focusNode
  })
  assert.ok(isUntouched, "the node of the composition stayed where it was")
}

test("what a reviewer types is a suggestion: new words are text, old ones are struck behind them, the document stays", async () => {
  const { writer, reviewer } = await desk("저는 물류가 좋습니다.\n둘째 줄입니다.")
  await reviewer.select("물류가")
  await reviewer.page.keyboard.insertText("유통이")
  await reviewer.waitForText("저는 유통이 좋습니다.\n둘째 줄입니다.")
  assert.deepEqual(await struck(reviewer), ["물류가"])
  assert.deepEqual(await reviewer.page.locator("ins.passage-new").allTextContents(), ["유통이"])
  await serverHas(writer, [["물류가", "유통이"]])
  await reviewer.page.locator("#saved", { hasText: /Suggestions saved \d/ }).waitFor()
  assert.equal(await stored(writer), "저는 물류가 좋습니다.\n둘째 줄입니다.")
  await reviewer.card("유통이").waitFor()
  await reviewer.shot("suggesting-typed")
})

test("keys, deletion, line breaks and joined paragraphs are suggested, and undo takes all of it back", async () => {
  const { writer, reviewer } = await desk("One two three.\nFour five.\nSix.")
  const { keyboard } = reviewer.page
  await reviewer.select("two ")
  await keyboard.press("Delete")
  await reviewer.waitForText("One three.\nFour five.\nSix.")
  await serverHas(writer, [["two ", ""]])
  await caretBehind(reviewer, "Four five.")
  await keyboard.press("Delete")
  await reviewer.waitForText("One three.\nFour five.Six.")
  await caretBehind(reviewer, "Six.")
  await keyboard.press("Enter")
  await keyboard.type("Seven.")
  await reviewer.waitForText("One three.\nFour five.Six.\nSeven.")
  await until(async () => 3 <= (await suggestions(writer)).length, "three suggestions")
  assert.equal(await stored(writer), "One two three.\nFour five.\nSix.")
  for (let press = 0; press < 8; press++) await keyboard.press("Control+z")
  await reviewer.waitForText("One two three.\nFour five.\nSix.")
  await serverHas(writer, [])
})

test("S2-20 an insertion at a caret, also in an empty line, is a suggestion without a selection", async () => {
  const { writer, reviewer } = await desk("첫 줄입니다.\n\n끝 줄입니다.")
  await caretBehind(reviewer, "첫 줄입니다.")
  await reviewer.page.keyboard.press("ArrowDown")
  await reviewer.page.keyboard.insertText("가운데 줄입니다.")
  await reviewer.waitForText("첫 줄입니다.\n가운데 줄입니다.\n끝 줄입니다.")
  await serverHas(writer, [["", "가운데 줄입니다."]])
  await reviewer.card("가운데 줄입니다.").waitFor()
  await writer.card("가운데 줄입니다.").waitFor()
})

test("paste, cut and drop are suggestions, and a copy has the new words only", async () => {
  const { writer, reviewer } = await desk("알파 베타 감마.\n델타.")
  const { page } = reviewer
  await reviewer.select("베타")
  await page.evaluate(() => navigator.clipboard.writeText("입실론\r\n제타"))
  await page.keyboard.press("Control+v")
  await reviewer.waitForText("알파 입실론\n제타 감마.\n델타.")
  await reviewer.select("감마")
  await page.keyboard.press("Control+x")
  await reviewer.waitForText("알파 입실론\n제타 .\n델타.")
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "감마")
  await page.keyboard.press("Control+a")
  await page.keyboard.press("Control+c")
  await until(async () => (await page.evaluate(() => navigator.clipboard.readText())) === "알파 입실론\n제타 .\n델타.", "the copy is the view")
  await page.evaluate(() => {
    const content = /** @type {HTMLElement} */ (document.querySelector(".cm-content"))
    const line = /** @type {HTMLElement} */ (content.querySelector(".cm-line"))
    const { left, top, height } = line.getBoundingClientRect()
    const data = new DataTransfer()
    data.setData("text/plain", "끌어온 ")
    const at = { clientX: left + 1, clientY: top + height / 2, bubbles: true, cancelable: true, dataTransfer: data }
    content.dispatchEvent(new DragEvent("drop", at))
  })
  await until(async () => (await reviewer.text()).startsWith("끌어온 알파"), "the drop is in the text", () => reviewer.text())
  assert.equal(await stored(writer), "알파 베타 감마.\n델타.")
})

test("an accepted suggestion stays where it is, letter for letter, and the next key is a new one", async () => {
  const { writer, reviewer } = await desk("저는 물류가 좋습니다.")
  await reviewer.select("물류가")
  await reviewer.page.keyboard.insertText("유통이")
  await serverHas(writer, [["물류가", "유통이"]])
  await decideFirst(writer, "accept")
  await writer.waitForText("저는 유통이 좋습니다.")
  await until(async () => (await struck(reviewer)).length === 0, "nothing is struck any more")
  await reviewer.waitForText("저는 유통이 좋습니다.")
  await serverHas(writer, [])
  await reviewer.page.keyboard.insertText("나 ")
  await reviewer.waitForText("저는 유통이나  좋습니다.")
  await until(async () => (await suggestions(writer)).length === 1, "a new suggestion")
  assert.equal(await stored(writer), "저는 유통이 좋습니다.")
})

test("a rejected suggestion gives the quote back, and what was typed elsewhere stays", async () => {
  const { writer, reviewer } = await desk("저는 물류가 좋습니다.\n둘째 줄.")
  await reviewer.select("물류가")
  await reviewer.page.keyboard.insertText("유통이")
  await serverHas(writer, [["물류가", "유통이"]])
  await caretBehind(reviewer, "둘째 줄")
  await reviewer.page.keyboard.insertText("입니다")
  await until(async () => (await suggestions(writer)).length === 2, "both are stored")
  await decideFirst(writer, "reject")
  await reviewer.waitForText("저는 물류가 좋습니다.\n둘째 줄입니다.")
  assert.equal(await stored(writer), "저는 물류가 좋습니다.\n둘째 줄.")
})

test("an undone decision brings the suggestion back into the text", async () => {
  const { writer, reviewer } = await desk("저는 물류가 좋습니다.")
  await reviewer.select("물류가")
  await reviewer.page.keyboard.insertText("유통이")
  await serverHas(writer, [["물류가", "유통이"]])
  await writer.card("유통이").click()
  await writer.card("유통이").getByRole("button", { name: "Accept" }).click()
  await writer.waitForText("저는 유통이 좋습니다.")
  await until(async () => (await struck(reviewer)).length === 0, "nothing is struck")
  await writer.page.locator("#toast").getByRole("button").click()
  await until(async () => (await struck(reviewer)).length === 1, "the old words are struck again")
  await reviewer.waitForText("저는 유통이 좋습니다.")
  assert.deepEqual(await struck(reviewer), ["물류가"])
})

test("a reload has the same text, with the same changes", async () => {
  const { writer, reviewer } = await desk("One two three.\nFour.")
  await reviewer.select("two")
  await reviewer.page.keyboard.type("2")
  await caretBehind(reviewer, "Four")
  await reviewer.page.keyboard.type(" and five")
  await until(async () => (await suggestions(writer)).length === 2, "both are stored")
  const before = await suggestions(writer)
  await reviewer.page.reload()
  await reviewer.seated()
  await reviewer.waitForText("One 2 three.\nFour and five.")
  assert.deepEqual(await struck(reviewer), ["two"])
  await mayType(reviewer)
  await caretBehind(reviewer, "five")
  await reviewer.page.keyboard.type("ish")
  await until(async () => JSON.stringify(await suggestions(writer)).includes("fiveish"), "the same suggestion is amended")
  assert.deepEqual((await suggestions(writer)).map(({ id }) => id).sort(), before.map(({ id }) => id).sort())
})

test("what the server did not acknowledge outlives the tab, and is sent at the next visit", async () => {
  const { writer, reviewer } = await desk("One two three.")
  const { page } = reviewer
  const context = page.context()
  await page.route("**/suggestions", (route) => route.abort())
  await reviewer.select("two")
  await page.keyboard.type("2")
  await reviewer.waitForText("One 2 three.")
  await page.waitForTimeout(400)
  const url = page.url()
  await page.close({ runBeforeUnload: false })
  const again = Object.assign(Object.create(Object.getPrototypeOf(reviewer)), reviewer, { page: await context.newPage() })
  await again.page.goto(url)
  await again.seated()
  await again.waitForText("One 2 three.")
  await serverHas(writer, [["two", "2"]])
})

test("a lost seat offers what was not sent, and a later page does not send it by itself", async () => {
  const { writer, reviewer } = await desk("One two three.")
  const { page } = reviewer
  await page.route("**/suggestions", (route) => route.abort())
  await reviewer.select("two")
  await page.keyboard.type("2")
  await page.waitForTimeout(400)
  const url = page.url()
  const other = Object.assign(Object.create(Object.getPrototypeOf(reviewer)), reviewer, { page: await page.context().newPage() })
  await other.page.goto(url)
  await other.page.locator("#notice").getByRole("button").first().click()
  await reviewer.notice.getByText("2", { exact: true }).waitFor()
  assert.equal(await page.locator(".cm-content").getAttribute("aria-readonly"), "true")
  await page.close({ runBeforeUnload: false })
  await other.page.reload()
  await other.seated()
  const offer = other.page.locator("#recovered-drafts")
  await offer.getByText("2", { exact: true }).waitFor()
  await other.waitForText("One two three.")
  await serverHas(writer, [])
  await offer.getByRole("button", { name: "Suggest again" }).click()
  await serverHas(writer, [["two", "2"]])
})

test("the server's refusal and a lost connection keep the words, and say so", async () => {
  const { writer, reviewer } = await desk("One two three.")
  const { page } = reviewer
  await page.route("**/suggestions", (route) => route.fulfill({ status: 503, contentType: "application/problem+json", body: "{}" }))
  await reviewer.select("two")
  await page.keyboard.type("2")
  await page.locator("#saved[data-kind=late]").waitFor()
  await reviewer.notice.getByText(/1 suggestion not saved since/).waitFor()
  await reviewer.shot("suggesting-unsent")
  await page.unroute("**/suggestions")
  await serverHas(writer, [["two", "2"]])
  await page.locator("#saved[data-kind=saved]").waitFor()
})

test("a body that is too long is divided", async () => {
  const { writer, reviewer } = await desk(Array.from({ length: 6 }, (_, at) => `Line ${at} here.`).join("\n"))
  const { page } = reviewer
  await page.route("**/suggestions", (route) => {
    const { put } = route.request().postDataJSON()
    return put.length <= 2 ? route.continue() : route.fulfill({ status: 413, contentType: "application/problem+json", body: "{}" })
  })
  await page.evaluate(() => navigator.clipboard.writeText(Array.from({ length: 6 }, (_, at) => `Row ${at} here.`).join("\n")))
  await reviewer.page.locator(".cm-content").click()
  await page.keyboard.press("Control+a")
  await page.keyboard.press("Control+v")
  await until(async () => 3 <= (await suggestions(writer)).length, "all are stored", async () => JSON.stringify(await suggestions(writer)))
  await page.locator("#saved", { hasText: /Suggestions saved/ }).waitFor()
})

test("a pasted text that is longer than a part is one suggestion, in several parts, and one that is longer than a suggestion says so", async () => {
  const { writer, reviewer } = await desk("앞 뒤")
  const { page } = reviewer
  const long = `${"가나다라마바사 ".repeat(100)}\n`.repeat(40)
  await page.evaluate((text) => navigator.clipboard.writeText(text), long)
  await caretBehind(reviewer, "앞 ")
  await page.keyboard.press("Control+v")
  await until(async () => 1 < ((await suggestions(writer))[0]?.parts.length ?? 0), "it has several parts")
  await page.locator("#saved", { hasText: /Suggestions saved/ }).waitFor()
  const before = await stored(writer)
  await decideFirst(writer, "accept")
  await until(async () => (await stored(writer)) === before.replace("앞 ", `앞 ${long}`), "the text has all of it, once and in order")
  await until(async () => (await page.locator("ins.passage-new").count()) === 0, "nothing is suggested any more")
  await page.evaluate((text) => navigator.clipboard.writeText(text), long.repeat(4))
  await page.keyboard.press("Control+v")
  await reviewer.notice.getByText("One suggestion is too long to be saved.").waitFor()
  await page.keyboard.press("Control+z")
  await reviewer.notice.getByText("too long").waitFor({ state: "hidden" })
  assert.equal((await suggestions(writer)).length, 0)
})

test("Hangul is composed in a word, and the composed node never moves", async () => {
  const { writer, reviewer } = await desk("저는 물류를 좋아합니다.\n다음 줄.")
  await caretBehind(reviewer, "물류")
  const ime = await inputMethod(reviewer)
  for (const text of ["ㅅ", "사"]) await ime.compose(text)
  await watchComposed(reviewer)
  for (const text of ["산", "사", "산"]) await ime.compose(text)
  await reviewer.page.waitForTimeout(700)
  await assertUntouched(reviewer)
  await ime.commit("산")
  for (const text of ["ㅇ", "어", "업"]) await ime.compose(text)
  await ime.commit("업")
  await reviewer.waitForText("저는 물류산업를 좋아합니다.\n다음 줄.")
  await until(async () => JSON.stringify(await suggestions(writer)).includes("물류산업"), "the word is suggested")
  assert.deepEqual(await reviewer.page.locator("ins.passage-new").allTextContents(), ["산업"])
})

test("Hangul over a selection, and after Backspace beside struck words, is composed whole", async () => {
  const { writer, reviewer } = await desk("저는 물류가 좋습니다.")
  const ime = await inputMethod(reviewer)
  await reviewer.select("물류")
  for (const text of ["ㅇ", "유"]) await ime.compose(text)
  await ime.commit("유")
  for (const text of ["ㅌ", "토", "통"]) await ime.compose(text)
  await ime.commit("통")
  await reviewer.waitForText("저는 유통가 좋습니다.")
  await reviewer.page.waitForTimeout(200)
  assert.deepEqual(await struck(reviewer), ["물류"])
  await reviewer.page.keyboard.press("Backspace")
  await reviewer.waitForText("저는 유가 좋습니다.")
  for (const text of ["ㅎ", "화"]) await ime.compose(text)
  await watchComposed(reviewer)
  for (const text of ["확", "화"]) await ime.compose(text)
  await reviewer.page.waitForTimeout(500)
  await assertUntouched(reviewer)
  await ime.commit("화")
  await reviewer.waitForText("저는 유화가 좋습니다.")
  await until(async () => JSON.stringify(await suggestions(writer)).includes("유화"), "it is suggested")
})

test("the writer edits the line of a composition: the edit waits, and both are there at the end", async () => {
  const { writer, reviewer } = await desk("저는 물류를 좋아합니다.\n다음 줄.")
  await caretBehind(reviewer, "물류")
  const ime = await inputMethod(reviewer)
  for (const text of ["ㅅ", "사"]) await ime.compose(text)
  await watchComposed(reviewer)
  await writer.page.locator(".cm-content").click()
  await writer.page.keyboard.press("Control+Home")
  await writer.page.keyboard.type("맨 ")
  await writer.page.keyboard.press("Control+End")
  await writer.page.keyboard.type(" 끝")
  await reviewer.page.waitForTimeout(800)
  await assertUntouched(reviewer)
  await ime.compose("산")
  await ime.commit("산")
  await reviewer.waitForText("맨 저는 물류산를 좋아합니다.\n다음 줄. 끝")
  await until(async () => JSON.stringify(await suggestions(writer)).includes("물류산"), "it is suggested")
  assert.equal(await stored(writer), "맨 저는 물류를 좋아합니다.\n다음 줄. 끝")
})

test("the writer edits another line, or decides, while a syllable is composed", async () => {
  const { writer, reviewer } = await desk("첫 줄입니다.\n둘째 줄입니다.")
  await reviewer.select("첫")
  await reviewer.page.keyboard.insertText("맨 처음")
  await serverHas(writer, [["첫", "맨 처음"]])
  await caretBehind(reviewer, "둘째")
  const ime = await inputMethod(reviewer)
  for (const text of ["ㅎ", "하"]) await ime.compose(text)
  await watchComposed(reviewer)
  await decideFirst(writer, "accept")
  await writer.waitForText("맨 처음 줄입니다.\n둘째 줄입니다.")
  await reviewer.page.waitForTimeout(500)
  await assertUntouched(reviewer)
  await ime.compose("한")
  await ime.commit("한")
  await reviewer.waitForText("맨 처음 줄입니다.\n둘째한 줄입니다.")
  await until(async () => (await struck(reviewer)).length === 0, "the accepted words are text")
})

test("the switch says what typing does; a reader's keys change nothing, and the hint of today answers them", async () => {
  const { reviewer } = await desk("One two three.")
  const { page } = reviewer
  await page.keyboard.press("Control+Alt+s")
  await page.locator("#announcer", { hasText: "Reading" }).waitFor()
  assert.equal(await page.locator("#mode input[value=reading]").isChecked(), true)
  await caretBehind(reviewer, "two")
  await page.keyboard.type("x")
  await page.locator("#typing-hint").waitFor()
  await reviewer.waitForText("One two three.")
  await page.locator("#mode label", { hasText: "Suggesting" }).click()
  await mayType(reviewer)
  await caretBehind(reviewer, "two")
  await page.keyboard.type("?")
  await reviewer.waitForText("One two? three.")
  assert.equal(await page.locator("#typing-hint").isVisible(), false)
})

test("a touch screen begins with reading, and the switch is in the menu", async () => {
  const [writer, reviewer] = [await browser.newUser(galley), await browser.newUser(galley, { hasTouch: true, isMobile: true, viewport: { width: 360, height: 740 } })]
  await writer.begin("김민수", "저는 물류가 좋습니다.")
  await reviewer.follow(await writer.invite(), "이서연")
  await reviewer.seated()
  assert.equal(await reviewer.page.locator(".cm-content").getAttribute("aria-readonly"), "true")
  await openMenu(reviewer, "#menu")
  await reviewer.page.locator("#menu-panel #mode label", { hasText: "Suggesting" }).click()
  await mayType(reviewer)
})

test("a comment on words with changes is about the text of the writer, and one on new words is the suggestion's remark", async () => {
  const { writer, reviewer } = await desk("One two three four.")
  const { page } = reviewer
  await reviewer.select("two")
  await page.keyboard.type("2")
  await serverHas(writer, [["two", "2"]])
  await reviewer.select("2")
  await page.locator("#selection-bar").getByRole("button", { name: "Comment" }).click()
  await page.locator(".review-form textarea:not(.prose)").fill("shorter")
  await page.locator(".review-form button[type=submit]").click()
  await writer.card("shorter").locator("ins", { hasText: "2" }).waitFor()
  await reviewer.select("three four")
  await page.keyboard.press("Control+Alt+m")
  await page.locator(".card-draft textarea:not(.prose)").fill("why both?")
  await page.keyboard.press("Control+Enter")
  await writer.page.locator(".passage", { hasText: "three four" }).waitFor()
  await reviewer.waitForText("One 2 three four.")
})

test("the reviewer takes a suggestion back from its card", async () => {
  const { writer, reviewer } = await desk("One two three.")
  await reviewer.select("two")
  await reviewer.page.keyboard.type("2")
  await serverHas(writer, [["two", "2"]])
  const card = reviewer.page.locator("#cards .card").first()
  await card.click()
  for (let press = 0; press < 2; press++) await card.getByRole("button", { name: /delete/i }).click()
  await reviewer.waitForText("One two three.")
  await serverHas(writer, [])
})

test("the writer's edit of the very letters leaves them, and the next own key suggests on the new text", async () => {
  const { writer, reviewer } = await desk("One two three.")
  await reviewer.select("two")
  await reviewer.page.keyboard.type("2")
  await serverHas(writer, [["two", "2"]])
  await writer.select("wo")
  await writer.page.keyboard.insertText("wenty")
  await reviewer.page.locator(".passage-suggests").first().waitFor()
  await reviewer.card("changed this meanwhile").waitFor()
  assert.equal(await stored(writer), "One twenty three.")
})

test("axe reports nothing while suggestions stand in the text, in each look, and the page fits 360 px", async () => {
  const { writer, reviewer } = await desk("1. 지원동기를 쓰십시오. (700자 이내)\n\n저는 물류가 좋습니다. 다음 문장입니다.\n끝 문단입니다.", { locale: "ko-KR" })
  await reviewer.select("물류가")
  await reviewer.page.keyboard.insertText("유통이")
  await caretBehind(reviewer, "끝 문단입니다.")
  await reviewer.page.keyboard.insertText(" 정말로 끝입니다.")
  await until(async () => (await suggestions(writer)).length === 2, "both are stored")
  await inEachLook(reviewer, async ({ width, scheme }) => {
    await assertFits(reviewer, `suggesting-${width}-${scheme}`)
    await assertAccessible(reviewer, `suggesting at ${width} px, ${scheme}`)
  })
})
