// @ts-check
/** The writer sees suggestions in the text and decides them there, by keys. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { assertUntouched, inputMethod, watchComposed } from "./composing.mjs"
import { openMenu, until } from "./harness.mjs"
import { assertAccessibleIn } from "./looks.mjs"
import { hears, listen } from "./spoken.mjs"
import { caretBehind } from "./suggesting_desk.mjs"
import { assertAccessible, assertFits, bothSeated, withGalley } from "./support.mjs"
import { suggest } from "./typed.mjs"

/** @typedef {import("./harness.mjs").User} User */

withGalley()

const WIDE = { width: 1280, height: 720 }
/** The margin is a sheet. */
const MIDDLE = { width: 880, height: 720 }
const NARROW = { width: 360, height: 740 }
const TEXT = "저는 물류가 좋습니다. 그것을 알게 되었습니다.\n\n특히 현장이 좋습니다. One plain sentence."

/** @param {import("playwright-core").BrowserContextOptions} [options] of the writer @param {string} [text] */
const table = (options = {}, text = TEXT) => bothSeated(text, { viewport: WIDE, ...options }, { viewport: WIDE })

/** The parts that are drawn in the text, in its order: `-old-`, `+new+`, `~edited~`. @param {User} user */
const drawn = ({ page }) =>
  page.locator(".cm-content .passage:not(.passage .passage)").evaluateAll((marks) =>
    marks.map((mark) => {
      const sign = mark.matches(".passage-old") ? "-" : mark.matches(".passage-new") ? "+" : "~"
      return `${sign}${mark.textContent}${sign}`
    }).join(" "))

/** @param {User} user @param {string} wanted */
const draws = (user, wanted) => until(async () => (await drawn(user)) === wanted, `the text shows ${wanted}`, () => drawn(user))

/** @param {User} user */
const bar = ({ page }) => page.locator("#decision-bar")

/** Where the caret is, in the text. @param {User} user */
const caret = ({ page }) =>
  page.evaluate(() => {
    const selection = getSelection()
    const at = selection?.focusNode
    const line = (at instanceof Element ? at : at?.parentElement)?.closest(".cm-line")
    if (!selection?.focusNode || !line) return ""
    const range = document.createRange()
    range.setStart(line, 0)
    range.setEnd(selection.focusNode, selection.focusOffset)
    const before = range.cloneContents()
    for (const drawn of before.querySelectorAll("[contenteditable=false]")) drawn.remove()
    return `${before.textContent}|`
  })

test("parts of suggestions are drawn in the text: old words, then new ones, and gaps", async () => {
  const { writer, reviewer } = await table()
  await suggest(
    reviewer, TEXT,
    { changes: [{ quote: "알게 되었습니다", text: "배웠습니다" }] },
    { changes: [{ quote: "특히 ", text: "" }] },
    { changes: [{ after: "One", text: " very" }], body: "Stronger." },
    { changes: [{ quote: "저는", text: "제가" }, { quote: "물류가", text: "물류를" }] },
  )
  await draws(writer, "-저는- +제가+ -물류가- +물류를+ -알게 되었습니다- +배웠습니다+ -특히 - + very+")
  assert.equal(await writer.text(), TEXT)
  const marks = await writer.page.locator(".cm-content .passage").evaluateAll((marks) => marks.map((mark) => [mark.tagName, mark.getAttribute("aria-hidden")].join(" ")))
  assert.ok(marks.every((mark) => mark === "DEL " || mark === "INS true"), marks.join(", "))

  // The cards: a word diff of each part, and no empty line for a remark that was not given.
  const cards = writer.page.locator("#cards .card")
  await until(async () => (await cards.count()) === 4, "four cards")
  await writer.page.locator(".passage-new", { hasText: "제가" }).click()
  const two = writer.page.locator("#cards .card[data-active=true]")
  assert.deepEqual(await two.locator(".diff").allTextContents(), [" deleted: 저는 added: 제가", "물류 deleted: 가 added: 를"])
  assert.equal(await two.locator(".body").count(), 0)
  await writer.page.locator(".passage-new", { hasText: "very" }).click()
  const gap = writer.page.locator("#cards .card[data-active=true]")
  assert.equal(await gap.locator(".diff").textContent(), " added:  very (add)")
  assert.equal(await gap.locator(".body").innerText(), "Stronger.")
  assert.equal(await gap.getAttribute("aria-label"), "이서연, “very” added")
  // A copy has the text, and no word of a suggestion.
  await writer.page.locator(".cm-content").click()
  await writer.page.keyboard.press("Control+a")
  assert.equal(await writer.copied(() => writer.page.keyboard.press("Control+c")), TEXT)
})

test("Alt Enter accepts the suggestion at the caret and goes on, Ctrl Z takes it back", async () => {
  const { writer, reviewer } = await table({ locale: "ko-KR" })
  const { page } = writer
  await listen(writer)
  await writer.seated()
  await suggest(reviewer, TEXT, { changes: [{ quote: "물류가", text: "물류를" }] }, { changes: [{ quote: "특히 ", text: "" }] }, { changes: [{ after: "One", text: " very" }] })
  await draws(writer, "-물류가- +물류를+ -특히 - + very+")
  // Away from a suggestion the key goes to the first one behind the caret, or to the first of all.
  await page.locator(".cm-content").focus()
  await page.keyboard.press("Control+End")
  await page.keyboard.press("Alt+Enter")
  await hears(writer, "제안 3건 가운데 1번째: “물류가” 대신 “물류를”. Alt Enter 키를 누르면 반영됩니다.")
  assert.equal(await writer.text(), TEXT)
  await page.keyboard.press("Alt+Enter")
  await writer.waitForText(TEXT.replace("물류가", "물류를"))
  // The next one has the caret, in the text.
  await hears(writer, "제안 2건 가운데 1번째: “특히” 삭제. Alt Enter 키를 누르면 반영됩니다.")
  assert.equal(await caret(writer), "|")
  await page.keyboard.press("Control+z")
  await writer.waitForText(TEXT)
  await draws(writer, "-물류가- +물류를+ -특히 - + very+")

  // Rejected, the text stays as it is; a gap is accepted.
  await caretBehind(writer, "저는 ")
  await page.keyboard.press("Alt+Shift+Enter")
  await draws(writer, "-특히 - + very+")
  await until(async () => (await caret(writer)) === "|", "the caret is at the next")
  await page.keyboard.press("Alt+Shift+Enter")
  await draws(writer, "+ very+")
  await until(async () => (await caret(writer)).endsWith("One|"), "the caret is at the gap")
  await page.keyboard.press("Alt+Enter")
  await writer.waitForText(TEXT.replace("One", "One very"))
  await reviewer.waitForText(TEXT.replace("One", "One very"))
  await hears(writer, "마지막 제안이었습니다.")
  await page.keyboard.press("Alt+i")
  await hears(writer, "여기에는 제안이 없습니다.")
  // Ctrl Z takes back one decision after the other.
  for (const wanted of ["+ very+", "-특히 - + very+", "-물류가- +물류를+ -특히 - + very+"]) {
    await page.keyboard.press("Control+z")
    await draws(writer, wanted)
  }
  await writer.waitForText(TEXT)
})

test("a suggestion with two parts is accepted at once, and taken back at once", async () => {
  const { writer, reviewer } = await table()
  await suggest(reviewer, TEXT, { changes: [{ quote: "특히 ", text: "" }, { after: "좋습니다. One", text: " 특히" }] })
  await draws(writer, "-특히 - + 특히+")
  await caretBehind(writer, "현장이 좋습니다. One")
  await writer.page.keyboard.press("Alt+Enter")
  const moved = TEXT.replace("특히 ", "").replace("One", "One 특히")
  await writer.waitForText(moved)
  await reviewer.waitForText(moved)
  await writer.page.keyboard.press("Control+z")
  await writer.waitForText(TEXT)
  await draws(writer, "-특히 - + 특히+")
})

test("the bar at the caret decides and replies where no card stands beside the text; it goes while the writer types", async () => {
  const { writer, reviewer } = await table()
  const { page } = writer
  await until(() => page.evaluate(() => document.activeElement?.matches(".cm-content") ?? false), "the text has the focus at opening")
  await suggest(reviewer, TEXT, { changes: [{ quote: "plain", text: "clear" }] }, { changes: [{ quote: "물류가", text: "물류를" }] })
  await draws(writer, "-물류가- +물류를+ -plain- +clear+")
  assert.ok(await bar(writer).isHidden())
  await caretBehind(writer, "물류")
  const card = page.locator("#cards .card[data-active=true]")
  await card.waitFor()
  assert.ok(await bar(writer).isHidden(), "the card beside it has the same buttons")
  await writer.resize(MIDDLE)
  await bar(writer).waitFor()
  // Below the words, over none of its own.
  const [box, word] = await Promise.all([bar(writer).boundingBox(), page.locator(".passage-new").first().boundingBox()])
  assert.ok(box && word && word.y + word.height <= box.y + 1, JSON.stringify([box, word]))
  // From the text to the bar, to the card, and back.
  for (const where of ["#decision-bar button", ".card[data-active=true]", ".cm-content"]) {
    await page.keyboard.press("F6")
    await until(() => page.evaluate((wanted) => document.activeElement?.matches(wanted) ?? false, where), `the focus is on ${where}`)
  }
  await bar(writer).getByRole("button", { name: "Reply" }).click()
  const field = card.locator(".reply > .reply-field")
  await until(() => field.evaluate((field) => field === document.activeElement), "the reply has the focus")
  await page.keyboard.type("왜요?")
  await page.keyboard.press("Control+Enter")
  await page.locator("#cards .replies", { hasText: "왜요?" }).waitFor()
  await page.locator("#sheet-close").click()

  // Typing inside of the quote: it cannot be accepted, and the text is the writer's.
  await caretBehind(writer, "pla")
  await bar(writer).getByRole("button", { name: "Accept" }).waitFor()
  await page.keyboard.type("x")
  await bar(writer).waitFor({ state: "hidden" })
  await draws(writer, "-물류가- +물류를+ ~plaxin~")
  await page.keyboard.press("ArrowLeft")
  await bar(writer).getByRole("button", { name: "Reject" }).waitFor()
  assert.ok(await bar(writer).getByRole("button", { name: "Accept" }).isHidden())
  await page.keyboard.press("Alt+Enter")
  await page.locator("#toast").getByText("it cannot be accepted by itself").waitFor()
  assert.equal(await writer.text(), TEXT.replace("plain", "plaxin"))
  // The same letters again make it whole.
  await page.keyboard.press("Delete")
  await draws(writer, "-물류가- +물류를+ -plain- +clear+")
  await page.keyboard.press("ArrowLeft")
  await bar(writer).getByRole("button", { name: "Accept" }).click()
  await writer.waitForText(TEXT.replace("plain", "clear"))
})

test("a newer version of a suggestion redraws its part alone, also beside a composition of Hangul", async () => {
  const { writer, reviewer } = await table()
  const { page } = writer
  const [made] = await suggest(reviewer, TEXT, { changes: [{ quote: "물류가", text: "물" }] }, { changes: [{ after: "좋습니다.", text: " 정말." }] })
  await draws(writer, "-물류가- +물+ + 정말.+")
  await suggest(reviewer, TEXT, { id: made?.id ?? "", version: made?.version ?? 0, changes: [{ quote: "물류가", text: "물류" }] })
  await draws(writer, "-물류가- +물류+ + 정말.+")

  // Composed at the gap: the text stands before the suggested one.
  await caretBehind(writer, "물류가 좋습니다.")
  const ime = await inputMethod(writer)
  await ime.compose("ㅎ", "하", "한")
  await watchComposed(writer)
  await suggest(reviewer, TEXT, { id: made?.id ?? "", version: (made?.version ?? 0) + 1, changes: [{ quote: "물류가", text: "물류를" }] })
  await writer.page.locator("#cards", { hasText: "added: 를" }).waitFor()
  await assertUntouched(writer)
  await ime.compose("한ㄱ", "한구", "한국")
  await ime.commit("한국")
  await writer.waitForText(TEXT.replace("좋습니다.", "좋습니다.한국"))
  await draws(writer, "-물류가- +물류를+ + 정말.+")
  const order = await page.locator(".cm-line").first().evaluate((line) => line.textContent)
  assert.ok(order?.includes("좋습니다.한국 정말."), order ?? "")
})

test("the text is shown as if accepted, and without suggestions", async () => {
  const { writer, reviewer } = await table({})
  const { page } = writer
  await suggest(reviewer, TEXT, { changes: [{ quote: "물류가", text: "물류를" }] }, { changes: [{ quote: ".\n\n특히", text: ". 특히" }] }, { changes: [{ after: "One", text: " very" }] })
  await draws(writer, "-물류가- +물류를+ -.¶- -¶- -특히- +. 특히+ + very+")
  await openMenu({ page }, "#margin-more")
  await page.locator("#view").getByLabel("As if accepted", { exact: true }).check()
  const accepted = TEXT.replace("물류가", "물류를").replace(".\n\n특히", ". 특히").replace("One", "One very")
  const shown = () =>
    page.locator(".cm-line").evaluateAll((lines) =>
      lines.map((line) => {
        const copy = /** @type {HTMLElement} */ (line.cloneNode(true))
        for (const caret of copy.querySelectorAll(".peer-caret")) caret.remove()
        return copy.textContent
      }).join("\n"))
  await until(async () => (await shown()) === accepted, "all is shown as accepted", shown)
  await page.locator("#view-note", { hasText: "all 3 suggestions" }).waitFor()
  await page.keyboard.press("Escape")
  await assertAccessible(writer, "as if accepted")
  // It is read-only, and says so.
  await page.locator(".cm-content").focus()
  await page.keyboard.press("Control+End")
  await page.keyboard.type("x")
  await page.keyboard.press("Backspace")
  await page.locator("#toast", { hasText: "all 3 suggestions" }).waitFor()
  assert.equal(await shown(), accepted)
  await page.keyboard.press("Control+a")
  assert.equal(await writer.copied(() => page.keyboard.press("Control+c")), accepted)

  await page.keyboard.press("Control+Alt+v")
  await until(async () => (await shown()) === TEXT.replace("\n\n", "\n\n"), "the text is shown as it is", shown)
  await page.locator("#view-note", { hasText: "3 suggestions are not shown" }).waitFor()
  assert.equal(await drawn(writer), "")
  // A count stays, and so do the cards.
  assert.match(await page.locator("#tab-open").innerText(), /3/)
  await page.keyboard.press("Control+End")
  await page.keyboard.type("!")
  await writer.waitForText(`${TEXT}!`)
  await page.locator("#view-note").getByRole("button", { name: "Show suggestions" }).click()
  await draws(writer, "-물류가- +물류를+ -.¶- -¶- -특히- +. 특히+ + very+")
  await page.locator("#view-note").waitFor({ state: "hidden" })
})

test("axe reports nothing beside suggestions, the bar at the caret and the other views", async () => {
  const { writer, reviewer } = await table()
  const { page } = writer
  await suggest(reviewer, TEXT, { changes: [{ quote: "물류가", text: "물류를" }] }, { changes: [{ after: "One", text: " very" }] }, { changes: [{ quote: "특히 ", text: "" }, { after: "plain", text: " 특히" }] })
  await writer.resize(MIDDLE)
  await caretBehind(writer, "물류")
  await bar(writer).waitFor()
  await assertAccessibleIn(writer, "the bar at the caret")
  await writer.resize(WIDE)
  await page.keyboard.type("x")
  await draws(writer, "~물류x가~ -특히 - + very+ + 특히+")
  await assertAccessible(writer, "an edited suggestion")
  for (const view of ["accepted", "original"]) {
    await page.keyboard.press("Control+Alt+v")
    await page.locator(`#view input[value=${view}]:checked`).waitFor({ state: "attached" })
    await assertAccessibleIn(writer, `the view ${view}`)
  }
  await openMenu({ page }, "#margin-more")
  await assertAccessible(writer, "the menu of views")
})

test("on a phone suggestions are drawn and decided, with room for a finger", async () => {
  const { writer, reviewer } = await table({ viewport: NARROW, hasTouch: true, isMobile: true, locale: "ko-KR" })
  const { page } = writer
  await suggest(reviewer, TEXT, { changes: [{ quote: "알게 되었습니다", text: "배웠습니다" }] }, { changes: [{ after: "One", text: " very" }] })
  await draws(writer, "-알게 되었습니다- +배웠습니다+ + very+")
  await assertFits(writer, "suggestions on a phone")
  await page.locator(".passage-new", { hasText: "배웠습니다" }).tap()
  const card = page.locator("#cards .card[data-active=true]")
  await card.getByRole("button", { name: "반영" }).waitFor()
  assert.ok(await bar(writer).isHidden(), "the sheet has the buttons")
  await page.locator("#sheet-close").tap()
  await page.locator(".cm-content").focus()
  await bar(writer).waitFor()
  for (const button of await bar(writer).getByRole("button").all()) {
    const box = await button.boundingBox()
    assert.ok(box && 43.5 <= box.height && 43.5 <= box.width, JSON.stringify(box))
  }
  await assertFits(writer, "the bar on a phone")
  await assertAccessible(writer, "the bar on a phone")
  await bar(writer).getByRole("button", { name: "반영" }).tap()
  await writer.waitForText(TEXT.replace("알게 되었습니다", "배웠습니다"))
  await page.locator("#margin-more > summary").evaluate((summary) => summary instanceof HTMLElement && summary.click())
  await assertFits(writer, "the views on a phone")
})

test("the suggestions of a text are in the list of keys, in the print and in its counts", async () => {
  const text = "1. 지원동기 (20자 이내)\n\n저는 물류가 좋습니다."
  const { writer, reviewer } = await table({}, text)
  const { page } = writer
  await suggest(reviewer, text, { changes: [{ after: "저는", text: " 정말" }, { quote: "좋습니다", text: "좋아요" }] })
  await page.locator(".question-meter", { hasText: "with suggestions" }).waitFor()
  assert.match(await page.locator(".question-meter").innerText(), /12 \/ 20[^\d]*14 with suggestions/)
  await page.keyboard.press("Control+/")
  const keys = await page.locator("#keys dt").allInnerTexts()
  assert.equal(await page.evaluate(() => document.activeElement?.id), "keys-title")
  assert.equal(await page.locator("#keys").evaluate((dialog) => dialog.scrollTop), 0, "the list opens at its heading")
  assert.deepEqual(await page.locator("#keys h3").allInnerTexts(), ["Comments", "Decisions", "Document"])
  assert.ok(await page.locator("#keys .chord kbd").evaluateAll((caps) => caps.every((cap) => getComputedStyle(cap).paddingLeft === "6px")), "each key is a cap")
  for (const entry of ["Accept the suggestion and go to the next", "Reject the suggestion and go to the next", "Read the suggestion here"]) assert.ok(keys.includes(entry), entry)
  await page.keyboard.press("Escape")
  await page.locator(".card").click()
  const shown = () => page.locator('.card[data-active="true"] [data-decision]').evaluateAll((all) => all.map((act) => getComputedStyle(act, "::after").content))
  assert.deepEqual(await shown(), ['"Alt A" / ""', '"Alt Shift Enter" / ""'])
  const devtools = await page.context().newCDPSession(page)
  await devtools.send("Emulation.setTouchEmulationEnabled", { enabled: true })
  assert.deepEqual(await shown(), ["none", "none"], "a finger has no keys")
  await devtools.send("Emulation.setTouchEmulationEnabled", { enabled: false })
  await reviewer.page.keyboard.press("Control+/")
  assert.ok(!(await reviewer.page.locator("#keys dt").allInnerTexts()).includes("Read the suggestion here"))
  await page.evaluate(() => window.dispatchEvent(new Event("beforeprint")))
  assert.match((await page.locator("#print-view .print-text").textContent()) ?? "", /저는\[1\] 물류가 좋습니다\[1\]\./)
  assert.equal(await page.locator("#print-view .print-notes .diff").count(), 2)
})
