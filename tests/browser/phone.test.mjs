// @ts-check
/** The page on a phone: the sheet of comments beside its passage, the keyboard, and the Back button. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { drawn, steadyBox, until } from "./harness.mjs"
import { assertAccessible, bothSeated, browser, galley, withGalley } from "./support.mjs"

/** @typedef {import("./harness.mjs").User} User */

withGalley()

const PHONE = { width: 360, height: 740 }
/** A phone with its keyboard up. */
const KEYBOARD = { width: 390, height: 430 }
const COUNT = 20
const clause = (/** @type {number} */ at) => `물류 현장에서 배운 점 ${at + 1}번`
const TEXT = `지원 동기\n\n${Array.from({ length: COUNT }, (_, at) => clause(at)).join(", ")}.\n\n${"마지막 문단입니다.\n\n".repeat(20)}`

/** A writer at a desk and a reviewer with a phone, and a number of reviews. @param {number} count @param {import("playwright-core").BrowserContextOptions} [options] */
async function open(count, options = {}) {
  const { writer, reviewer } = await bothSeated(TEXT, options, { ...options, hasTouch: true, viewport: PHONE })
  await reviewer.createReviews(TEXT, Array.from({ length: count }, (_, at) => ({ quote: clause(at), body: `${at + 1}번째 의견입니다.` })))
  await until(async () => (await reviewer.page.locator("#cards .card").count()) === count, `${count} cards`)
  return { writer, reviewer }
}

/** Edges of the active card, its passage, the sheet and the Send button. @param {User} user */
const edges = ({ page }) =>
  page.evaluate(() => {
    const span = (/** @type {Element | null | undefined} */ element) => {
      const rect = element?.getBoundingClientRect()
      return { top: Math.round(rect?.top ?? NaN), bottom: Math.round(rect?.bottom ?? NaN) }
    }
    const bar = document.querySelector("#bar")
    return {
      height: innerHeight,
      bar: span(bar).bottom,
      sheet: span(document.querySelector("#margin")),
      head: span(document.querySelector("#margin-head")),
      card: span(document.querySelector("#cards .card[data-active=true]")),
      passage: span(document.querySelector(".passage-active, .passage-pending")),
      send: span(document.querySelector(".card-draft button[type=submit]")),
    }
  })

/** Waits until the passage is in the free strip above the sheet. @param {User} user @param {string} what */
async function assertVisible(user, what) {
  const isVisible = async () => {
    const { bar, sheet, head, card, passage, height } = await edges(user)
    return Math.max(bar, 0) <= passage.top + 1 && passage.bottom <= sheet.top && head.bottom - 2 <= card.top && card.top < height
  }
  await until(isVisible, what, async () => JSON.stringify(await edges(user)))
}

const isOpen = (/** @type {User} */ { page }) => page.evaluate(() => document.body.dataset.sheet === "open")

test("at 360 px: a tapped passage and its card are both visible, with 20 reviews on one paragraph", async () => {
  const { reviewer } = await open(COUNT)
  for (const at of [0, 19, 7, 12]) {
    const card = reviewer.page.locator("#cards .card").nth(at)
    await reviewer.page.locator(`.passage[data-review="${await card.getAttribute("data-card")}"]`).first().scrollIntoViewIfNeeded()
    if (await isOpen(reviewer)) await reviewer.page.locator("#sheet-close").tap()
    await reviewer.page.locator(`.passage[data-review="${await card.getAttribute("data-card")}"]`).first().tap()
    await card.and(reviewer.page.locator("[data-active=true]")).waitFor()
    await assertVisible(reviewer, `tap on ${clause(at)}`)
    if (at === 7) await reviewer.shot("phone-sheet")
  }
  await assertAccessible(reviewer, "the sheet")
})

test("a tapped suggestion shows its old words and its new ones above the sheet", async () => {
  const { writer, reviewer } = await bothSeated(TEXT, { hasTouch: true, viewport: PHONE })
  await reviewer.page.evaluate(async ([quote, start]) => {
    const anchor = { start, end: start + quote.length, quote }
    await (await source("api")).createReview(location.pathname.split("/").pop(), { anchor, body: "", suggestion: quote.repeat(6) })
  }, /** @type {[string, number]} */ ([clause(12), TEXT.indexOf(clause(12))]))
  const added = writer.page.locator("ins.passage-new")
  await writer.page.locator(".passage-old").first().tap()
  await until(() => isOpen(writer), "the sheet is open")
  const below = async () => ((await added.evaluate((element) => element.getBoundingClientRect().bottom)) ?? 0) - (await edges(writer)).sheet.top
  await until(async () => (await below()) <= 0, "the new words are above the sheet", async () => String(await below()))
  await assertVisible(writer, "the old words")
})

test("at 360 px: done reviews have their own tab in the sheet", async () => {
  const { writer } = await open(3)
  await writer.resize(PHONE)
  await writer.page.locator("#sheet-open").click()
  await writer.card("1번째").click()
  await writer.card("1번째").getByRole("button", { name: "Resolve" }).click()
  await writer.page.locator("#tab-done").getByText("1 done").waitFor()
  await until(async () => (await writer.page.locator("#cards .card").count()) === 2, "the open tab has the open cards")
  await writer.page.locator("#tab-done").click()
  await writer.page.locator("#done-cards .card", { hasText: "1번째" }).waitFor()
})

test("with the keyboard up the passage is above the sheet, one field is shown, and Send is visible", async () => {
  const { writer, reviewer } = await open(2, { locale: "ko-KR", colorScheme: "dark" })
  await reviewer.select(clause(9))
  await reviewer.page.locator("#selection-bar").getByRole("button").nth(1).tap()
  await reviewer.page.locator(".card-draft").waitFor()
  await reviewer.resize(KEYBOARD)
  await assertVisible(reviewer, "the form with the keyboard up")
  const inside = async () => {
    const { send, height } = await edges(reviewer)
    return 0 < send.top && send.bottom <= height
  }
  await until(inside, "Send is above the keyboard")
  assert.equal(await reviewer.page.locator(".card-draft textarea:visible").count(), 1, "one field first")
  const field = await steadyBox(reviewer.page.locator(".card-draft .prose"))
  const send = await steadyBox(reviewer.page.locator(".card-draft button[type=submit]"))
  assert.ok(field.y + field.height <= send.y + 1, `Send is below the field: ${JSON.stringify([field, send])}`)
  await reviewer.shot("phone-suggest")
  await reviewer.page.locator(".card-draft .prose").fill("현장에서 배운 점\n열 번째\n셋째 줄\n넷째 줄\n다섯째 줄")
  await until(inside, "Send is above the keyboard of the grown form")
  await reviewer.page.locator(".card-draft").getByRole("button", { name: "이유 덧붙이기" }).tap()
  // The browser makes the click of a tap after the tap.
  await reviewer.page.locator(".card-draft textarea:not(.prose):focus").waitFor()
  await reviewer.page.keyboard.type("더 또렷합니다.")
  assert.equal(await reviewer.page.locator(".card-draft textarea:visible").count(), 2)
  await until(inside, "Send is above the keyboard with both fields")
  await reviewer.shot("phone-suggest-reason")
  await assertAccessible(reviewer, "the form on a phone")
  await reviewer.page.locator(".card-draft button[type=submit]").tap()
  await writer.card("더 또렷합니다.").waitFor()
})

test("Back closes the sheet, the history and a dialog, and then leaves the page", async () => {
  const { reviewer } = await open(1)
  const { page } = reviewer
  const desk = page.url()
  await page.locator(".passage").first().tap()
  await until(() => isOpen(reviewer), "the sheet is open")
  await page.goBack()
  await until(async () => !(await isOpen(reviewer)), "Back closes the sheet")
  assert.equal(page.url(), desk)
  await page.locator("#menu summary").tap()
  await page.locator("#menu-panel").getByRole("button", { name: "History" }).tap()
  await page.locator("#history[open]").waitFor()
  await page.goBack()
  await page.locator("#history[open]").waitFor({ state: "detached" })
  await page.locator("#menu summary").tap()
  await page.locator("#menu-panel").getByRole("button", { name: "Keyboard" }).tap()
  await page.locator("#keys[open]").waitFor()
  await page.goBack()
  await page.locator("#keys[open]").waitFor({ state: "detached" })
  assert.equal(page.url(), desk)
  // A layer that is closed by its own button leaves no entry behind.
  await page.locator(".passage").first().tap()
  await until(() => isOpen(reviewer), "the sheet is open again")
  await page.locator("#sheet-close").tap()
  await until(async () => (await page.evaluate(() => history.state?.layers ?? 0)) === 0, "its entry is gone")
  assert.equal(page.url(), desk)
})

test("a tap on the text, Esc and a swipe close the sheet, and a form stays", async () => {
  const { reviewer } = await open(1)
  const { page } = reviewer
  const openSheet = async () => {
    await page.locator(".passage").first().tap()
    await until(() => isOpen(reviewer), "the sheet is open")
    await steadyBox(page.locator("#margin"))
  }
  const closed = (/** @type {string} */ how) => until(async () => !(await isOpen(reviewer)), how)
  await openSheet()
  await page.locator(".cm-line", { hasText: "지원 동기" }).tap()
  await closed("by a tap outside")
  await openSheet()
  await page.locator(".cm-content").focus()
  await page.keyboard.press("Escape")
  await closed("by Esc in the text")
  await openSheet()
  await page.locator("#margin .card").focus()
  await page.keyboard.press("Escape")
  await closed("by Esc in a card")
  await openSheet()
  const head = await steadyBox(page.locator("#margin-head"))
  await page.mouse.move(head.x + head.width / 2, head.y + 6)
  await page.mouse.down()
  await page.mouse.move(head.x + head.width / 2, head.y + 90, { steps: 5 })
  await page.mouse.up()
  await closed("by a swipe")
  await reviewer.select("지원 동기")
  await page.locator("#selection-bar").getByRole("button").first().tap()
  await page.locator(".card-draft").waitFor()
  await page.locator(".cm-line", { hasText: "지원 동기" }).tap()
  await drawn(reviewer)
  assert.equal(await isOpen(reviewer), true, "a form in use stays")
})

test("the bar is one row, and the next step stands in the foot", async () => {
  const { reviewer } = await open(1)
  const { page } = reviewer
  for (const size of [PHONE, { width: 640, height: 420 }]) {
    await reviewer.resize(size)
    const bar = await page.locator("#bar .bar").boundingBox()
    assert.ok(bar && bar.height <= 56, JSON.stringify(bar))
    assert.ok(await page.locator("#text-counts-bar #turn button").isVisible())
  }
})

test("with a finger the title is 44 px high, and the saved state stands whole in the bar below it", async () => {
  const writer = await browser.newUser(galley, { hasTouch: true, isMobile: true, viewport: PHONE })
  await writer.begin("김민수", TEXT)
  const { page } = writer
  // At one moment: the saved state is drawn anew when the server names what it has.
  const found = await page.evaluate(() => {
    const rectOf = (/** @type {string} */ selector) => /** @type {Element} */ (document.querySelector(selector)).getBoundingClientRect()
    const [bar, title, saved] = [rectOf("#bar .bar"), rectOf("#title"), rectOf("#saved > span")]
    const words = title.bottom - Number.parseFloat(getComputedStyle(/** @type {Element} */ (document.querySelector("#title"))).paddingBottom)
    return { bar: bar.bottom, title: title.height, saved: { top: saved.top, bottom: saved.bottom }, words }
  })
  assert.ok(44 <= found.title, JSON.stringify(found))
  assert.ok(found.saved.bottom <= found.bar, JSON.stringify(found))
  assert.ok(found.words <= found.saved.top + 2, JSON.stringify(found))
})
