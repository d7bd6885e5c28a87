// @ts-check
/** Decisions about one and many suggestions, and the ways to take them back. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { drawn, openMenu, timersRun, until } from "./harness.mjs"
import { assertAccessible, assertFits, bothSeated, withGalley } from "./support.mjs"

/** @typedef {import("./harness.mjs").User} User */

withGalley()

const WIDE = { width: 1280, height: 720 }
const NARROW = { width: 360, height: 740 }
const LOOKS = /** @type {const} */ ([["ko-KR", "wide", WIDE], ["en-GB", "narrow", NARROW]])

const SAID = {
  "en-GB": {
    accepted: "Accepted",
    undo: "Undo",
    undone: "Undone.",
    all: (/** @type {number} */ n) => `Accept all (${n})`,
    none: (/** @type {number} */ n) => `Reject all (${n})`,
    done: (/** @type {number} */ n) => `${n} put into the text.`,
    left: (/** @type {number} */ n) => `${n} left: the text there has changed.`,
    many: (/** @type {number} */ n) => `Undo all ${n}`,
  },
  "ko-KR": {
    accepted: "반영했습니다",
    undo: "실행 취소",
    undone: "되돌렸습니다.",
    all: (/** @type {number} */ n) => `모두 반영 (${n})`,
    none: (/** @type {number} */ n) => `모두 거절 (${n})`,
    done: (/** @type {number} */ n) => `${n}건을 반영했습니다.`,
    left: (/** @type {number} */ n) => `${n}건은 그 부분의 글이 바뀌어 남겨 두었습니다.`,
    many: (/** @type {number} */ n) => `${n}건 모두 되돌리기`,
  },
}

/**
 * @param {keyof typeof SAID} locale
 * @param {{ width: number, height: number }} viewport of the writer
 * @param {string} text
 */
async function table(locale, viewport, text) {
  const { writer, reviewer } = await bothSeated(text, { locale, viewport: WIDE })
  await writer.resize(viewport)
  return { writer, reviewer, said: SAID[locale] }
}

/** Suggests through the server, as another page of the reviewer would. @param {User} reviewer @param {[quote: string, suggestion: string][]} suggestions */
async function suggest(reviewer, suggestions) {
  const text = await reviewer.base()
  await reviewer.page.evaluate(async ([text, suggestions]) => {
    const link = location.pathname.split("/").at(-1)
    for (const [quote, suggestion] of suggestions) {
      const start = text.indexOf(quote)
      const anchor = { start, end: start + quote.length, quote }
      const body = JSON.stringify({ anchor, body: `for ${quote}`, suggestion })
      const headers = { "content-type": "application/json" }
      const answer = await fetch(`/api/share-links/${link}/reviews`, { method: "POST", headers, body })
      if (answer.status !== 201) throw new Error(`${answer.status} ${await answer.text()}`)
    }
  }, /** @type {const} */ ([text, suggestions]))
}

/** @param {User} user */
const toast = (user) => user.page.locator("#toast")

/** @param {User} user @param {string} body */
const doneCard = (user, body) => user.page.locator("#done-cards .card", { hasText: body })

/** @param {User} writer @param {string} body @param {"accept" | "reject"} decision */
async function decide(writer, body, decision) {
  await openSheet(writer)
  // Beside the text the card of a neighbour may be above the column, and the passage leads to it.
  const isSheet = await writer.page.locator("#sheet-close").isVisible()
  const quote = body.replace("for ", "")
  await (isSheet ? writer.card(body) : writer.page.locator(".passage", { hasText: quote })).click()
  await writer.card(body).locator(`[data-decision=${decision}]`).click()
}

/** @param {User} writer @param {string} body */
const takeBack = (writer, body) => doneCard(writer, body).locator("[data-decision=take-back]").click()

/** @param {User} writer */
async function openSheet(writer) {
  const open = writer.page.locator("#sheet-open")
  const isOpen = await writer.page.evaluate(() => document.body.dataset.sheet === "open")
  if (!isOpen && (await open.isVisible())) await open.click()
}

/** @param {User} writer */
async function closeSheet(writer) {
  const close = writer.page.locator("#sheet-close")
  if (await close.isVisible()) await close.click()
}

/** Types at the end of the text. @param {User} writer @param {string} text */
async function typeAtEnd(writer, text) {
  await closeSheet(writer)
  await writer.typeAtEnd(text)
}

/** The toast is inside the window, over everything else. @param {User} user */
async function assertToastOnTop(user) {
  const isOnTop = () =>
    user.page.evaluate(() => {
      const box = /** @type {HTMLElement} */ (document.querySelector("#toast p")).getBoundingClientRect()
      const at = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2)
      const isInside = 0 <= box.left && box.right <= innerWidth && 0 <= box.top && box.bottom <= innerHeight
      return isInside && at?.closest("#toast") !== null
    })
  await until(isOnTop, "the toast is seen")
}

for (const [locale, size, viewport] of LOOKS) {
  test(`an accepted suggestion is taken back with its text (${locale}, ${size})`, async () => {
    const { writer, reviewer, said } = await table(locale, viewport, "저는 성실한 사람입니다. One plain sentence.")
    await suggest(reviewer, [["성실한", "꾸준한"], ["plain", "clear"]])
    const typed = "저는 성실한 사람입니다. One plain sentence. typed"
    await typeAtEnd(writer, " typed")
    await writer.waitForText(typed)

    // By the key, while nothing was typed since. The typed text stays.
    await decide(writer, "for 성실한", "accept")
    await writer.waitForText(typed.replace("성실한", "꾸준한"))
    await toast(writer).getByText(said.accepted, { exact: true }).waitFor()
    assert.equal(await toast(writer).getAttribute("role"), "status")
    await toast(writer).getByRole("button", { name: said.undo }).waitFor()
    await assertToastOnTop(writer)
    await writer.shot(`decision-toast-${locale}-${size}`)
    await writer.page.keyboard.press("Control+z")
    await toast(writer).getByText(said.undone).waitFor()
    await writer.waitForText(typed)
    await reviewer.waitForBase(typed)
    await writer.card("for 성실한").waitFor({ state: "attached" })
    await reviewer.card("for 성실한").waitFor()

    // By the button of the toast.
    await decide(writer, "for 성실한", "accept")
    await writer.waitForText(typed.replace("성실한", "꾸준한"))
    await toast(writer).getByRole("button", { name: said.undo }).click()
    await writer.waitForText(typed)
    await toast(writer).getByText(said.undone).waitFor()

    // The key undoes typing and decisions in one order, and does them again.
    await decide(writer, "for 성실한", "accept")
    const accepted = typed.replace("성실한", "꾸준한")
    await writer.waitForText(accepted)
    await typeAtEnd(writer, "!")
    for (const text of [accepted, typed, typed.replace(" typed", "")]) {
      await writer.page.keyboard.press("Control+z")
      await writer.waitForText(text)
    }
    await writer.card("for 성실한").waitFor({ state: "attached" })
    for (const text of [typed, accepted, `${accepted}!`]) {
      await writer.page.keyboard.press("Control+Shift+Z")
      await writer.waitForText(text)
    }
    await writer.page.keyboard.press("Control+z")
    await writer.waitForText(accepted)

    // By the card, later.
    await openSheet(writer)
    await writer.page.locator("#tab-done").click()
    await writer.shot(`decision-done-${locale}-${size}`)
    await takeBack(writer, "for 성실한")
    await writer.waitForText(typed)
    await writer.page.locator("#tab-done").waitFor({ state: "hidden" })
  })
}

test("a decision whose text was changed is not taken back, and other text stays", async () => {
  const { writer, reviewer } = await table("en-GB", WIDE, "One plain sentence.")
  await suggest(reviewer, [["plain", "clear"]])
  await writer.card("for plain").waitFor()
  await typeAtEnd(writer, " Typed.")
  await decide(writer, "for plain", "accept")
  await writer.waitForText("One clear sentence. Typed.")
  // The undo history joins typing within 600 ms.
  await timersRun(writer, 700)
  await writer.select("clear")
  await writer.page.keyboard.type("plainer")
  await writer.waitForText("One plainer sentence. Typed.")
  await toast(writer).getByRole("button", { name: "Undo" }).click()
  await toast(writer).getByText("The text there has changed since; this cannot be undone.").waitFor()
  await writer.waitForText("One plainer sentence. Typed.")
  await writer.page.locator(".cm-content").focus()
  await writer.page.keyboard.press("Control+z")
  await writer.waitForText("One clear sentence. Typed.")
})

test("rejections are taken back one after the other by the key", async () => {
  const { writer, reviewer } = await table("en-GB", WIDE, "One plain sentence.")
  await suggest(reviewer, [["One", "A"], ["plain", "clear"]])
  await decide(writer, "for One", "reject")
  await writer.page.locator("#tab-done").getByText("1 done").waitFor()
  await decide(writer, "for plain", "reject")
  await writer.page.locator("#tab-done").getByText("2 done").waitFor()
  await toast(writer).getByText("Rejected", { exact: true }).waitFor()
  await writer.page.keyboard.press("Control+z")
  await writer.card("for plain").waitFor()
  await writer.page.keyboard.press("Control+z")
  await writer.card("for One").waitFor()
  await writer.page.locator("#tab-done").waitFor({ state: "hidden" })
})

for (const [locale, size, viewport] of LOOKS) {
  test(`all suggestions are accepted at once, and taken back (${locale}, ${size})`, async () => {
    const text = "한 둘 셋 넷 다섯 여섯 일곱"
    const { writer, reviewer, said } = await table(locale, viewport, text)
    const { page } = writer
    assert.equal(await page.locator("#decide-all").isVisible(), false)
    await suggest(reviewer, [["한", "1"], ["둘", "2"], ["셋", "3"], ["넷", "4"], ["다섯", ""]])
    // The text of one changes: it is left.
    await writer.card("for 넷").waitFor({ state: "attached" })
    await closeSheet(writer)
    await writer.select("넷")
    await page.keyboard.type("사사")
    const before = text.replace("넷", "사사")
    await writer.waitForText(before)
    await openSheet(writer)
    const all = page.getByRole("button", { name: said.all(4) })
    const more = () => openMenu({ page }, "#margin-more")
    await more()
    await all.waitFor()
    await page.getByRole("button", { name: said.none(5) }).waitFor()
    await assertFits(writer, `decide-all-${locale}-${size}`)
    await writer.shot(`decide-all-${locale}-${size}`)

    await page.keyboard.press("Control+Alt+a")
    const after = "1 2 3 사사  여섯 일곱"
    await writer.waitForText(after)
    await reviewer.waitForBase(after)
    await toast(writer).getByText(said.done(4)).waitFor()
    await toast(writer).getByText(said.left(1)).waitFor()
    await assertToastOnTop(writer)
    // With the focus in it the toast stays, however long axe takes.
    await toast(writer).getByRole("button", { name: said.undo }).focus()
    await assertAccessible(writer, `decide-all-done-${locale}-${size}`)
    await writer.shot(`decide-all-done-${locale}-${size}`)
    await toast(writer).getByRole("button", { name: said.undo }).click()
    await writer.waitForText(before)
    await reviewer.waitForBase(before)
    await more()
    await all.waitFor()

    // All rejected; one card of the decision takes all of them back, and says so.
    await page.getByRole("button", { name: said.none(5) }).click()
    await page.locator("#decide-all").waitFor({ state: "hidden" })
    assert.equal(await writer.text(), before)
    await page.locator("#tab-done").click()
    await doneCard(writer, "for 둘").getByText(said.many(5), { exact: true }).click()
    await more()
    await all.waitFor()
    assert.equal(await writer.text(), before)
  })
}

test("a menu that goes with the last suggestion while it is open is closed when it is back, and one press opens it", async () => {
  const { writer, reviewer, said } = await table("en-GB", WIDE, "One plain sentence.")
  const { page } = writer
  await suggest(reviewer, [["One", "A"], ["plain", "clear"]])
  const summary = page.locator("#margin-more > summary")
  await openMenu(writer, "#margin-more")
  await page.getByRole("button", { name: said.all(2) }).waitFor()
  await page.keyboard.press("Control+Alt+a")
  await writer.waitForText("A clear sentence.")
  await summary.waitFor({ state: "hidden" })
  await toast(writer).getByRole("button", { name: said.undo }).evaluate((undo) => undo instanceof HTMLElement && undo.click())
  await writer.waitForText("One plain sentence.")
  await summary.waitFor()
  await page.locator("#tab-done").waitFor({ state: "hidden" })
  assert.equal(await page.locator("#margin-more[open]").count(), 0)
  await summary.click()
  await page.getByRole("button", { name: said.all(2) }).waitFor()
})

test("thirty suggestions are one decision on both pages", async () => {
  const words = Array.from({ length: 30 }, (_, at) => `word${at}x`)
  const { writer, reviewer, said } = await table("en-GB", WIDE, words.join(" "))
  await suggest(reviewer, words.map((word) => [word, word.toUpperCase()]))
  await openMenu(writer, "#margin-more")
  await writer.page.getByRole("button", { name: said.all(30) }).click()
  await writer.waitForText(words.join(" ").toUpperCase())
  await reviewer.page.locator("#tab-done").getByText("30 done").waitFor()
  await writer.page.keyboard.press("Control+z")
  await writer.waitForText(words.join(" "))
  await reviewer.waitForBase(words.join(" "))
  await reviewer.page.locator("#tab-done").waitFor({ state: "hidden" })
})

test("a decision that was taken back is made again by its toast and by the key", async () => {
  const { writer, reviewer, said } = await table("ko-KR", WIDE, "One plain sentence.")
  const { page } = writer
  await suggest(reviewer, [["One", "A"], ["plain", "clear"]])
  await decide(writer, "for plain", "accept")
  await writer.waitForText("One clear sentence.")
  await page.keyboard.press("Control+z")
  await writer.waitForText("One plain sentence.")
  await toast(writer).getByRole("button", { name: "다시 반영", exact: true }).click()
  await writer.waitForText("One clear sentence.")
  await reviewer.waitForBase("One clear sentence.")
  // Its answer: the next decision would be the earlier one without it.
  await toast(writer).getByText(said.done(1)).waitFor()

  // By both keys, in the order in which they were taken back.
  await decide(writer, "for One", "reject")
  await page.locator("#tab-done").getByText("2").first().waitFor()
  for (const keys of ["Control+Shift+Z", "Control+y"]) {
    for (let step = 0; step < 2; step++) await page.keyboard.press("Control+z")
    await page.locator("#tab-done").waitFor({ state: "hidden" })
    await writer.waitForText("One plain sentence.")
    await page.keyboard.press(keys)
    await writer.waitForText("One clear sentence.")
    await writer.card("for One").waitFor({ state: "attached" })
    await page.keyboard.press(keys)
    await doneCard(writer, "for One").waitFor({ state: "attached" })
  }
  await page.keyboard.press("Control+z")
  await toast(writer).getByRole("button", { name: "다시 거절", exact: true }).click()
  await doneCard(writer, "for One").waitFor({ state: "attached" })
  assert.equal(await writer.text(), "One clear sentence.")
  await toast(writer).getByRole("button", { name: said.undo, exact: true }).first().waitFor()
})

test("after typing the key does not decide again, and the editor redoes its own steps", async () => {
  const { writer, reviewer } = await table("en-GB", WIDE, "One plain sentence.")
  const { page } = writer
  await suggest(reviewer, [["plain", "clear"]])
  await writer.card("for plain").waitFor()
  await typeAtEnd(writer, " Typed.")
  await decide(writer, "for plain", "accept")
  await writer.waitForText("One clear sentence. Typed.")
  // Until the page has read the reviews again, the key takes decisions back.
  const read = page.waitForResponse(/\/reviews$/)
  await page.keyboard.press("Control+z")
  await toast(writer).getByText("Undone.").waitFor()
  await (await read).finished()
  await writer.waitForText("One plain sentence. Typed.")
  // The next step to undo is the editor's, and so is the next one to redo.
  await page.locator(".cm-content").focus()
  await page.keyboard.press("Control+z")
  await writer.waitForText("One plain sentence.")
  await page.keyboard.press("Control+Shift+Z")
  await writer.waitForText("One plain sentence. Typed.")
  // The decision was taken back before the typing: it is made again behind it.
  await page.keyboard.press("Control+Shift+Z")
  await writer.waitForText("One clear sentence. Typed.")
  await toast(writer).getByRole("button", { name: "Undo", exact: true }).waitFor()
  await page.keyboard.press("Control+z")
  // Also before the answer to the undo.
  await typeAtEnd(writer, "!")
  await writer.waitForText("One plain sentence. Typed.!")
  /** @type {string[]} */
  const sent = []
  page.on("request", (request) => void (request.method() === "POST" && sent.push(request.url())))
  await page.keyboard.press("Control+Shift+Z")
  await drawn(writer)
  assert.deepEqual(sent, [], "no decision is sent")
  assert.equal(await writer.text(), "One plain sentence. Typed.!")
})
