// @ts-check
/** Findings of the first-visit trial: one whole review of a cover letter by hand, with motion on. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { drawn, openMenu, until } from "./harness.mjs"
import { browser, galley, withGalley } from "./support.mjs"

/** @typedef {import("./harness.mjs").User} User */

withGalley()

const WIDE = { width: 1440, height: 900 }
const TABLET = { width: 768, height: 1024 }
const PHONE = { width: 360, height: 740 }
const COUNT = 8
const clause = (/** @type {number} */ at) => `배송 기록 ${at + 1}번`
const TEXT = `${Array.from({ length: COUNT }, (_, at) => `${clause(at)}을 살펴본 경험입니다.`).join("\n\n")}\n\n${"마지막 문단입니다.\n\n".repeat(30)}`

/**
 * Both users, with the transitions that a browser shows by default.
 *
 * @param {{ width: number, height: number }} writing viewport of the writer
 * @param {{ width: number, height: number }} reviewing viewport of the reviewer
 */
async function open(writing, reviewing) {
  const options = { locale: "ko-KR", reducedMotion: /** @type {const} */ ("no-preference") }
  const writer = await browser.newUser(galley, { ...options, viewport: writing })
  const reviewer = await browser.newUser(galley, { ...options, viewport: reviewing })
  await writer.paste("김하늘", TEXT)
  await reviewer.follow(await writer.invite(), "박지수")
  await reviewer.seated()
  return { writer, reviewer }
}

/** Suggests something for each clause, and remarks on the whole text. @param {User} reviewer @param {User} writer */
async function suggestAll(reviewer, writer) {
  const quotes = Array.from({ length: COUNT }, (_, at) => clause(at))
  const suggestions = quotes.map((quote) => ({ quote, body: `${quote}의 이유`, suggestion: `${quote} 전체` }))
  await reviewer.createReviews(TEXT, [{ quote: null, body: "전체적으로 좋습니다." }, ...suggestions])
  await until(async () => (await writer.page.locator("#cards .card").count()) === COUNT + 1, "the writer has all cards")
}

/** Names the focused element. @param {User} user */
const focused = ({ page }) =>
  page.evaluate(() => {
    const { activeElement: element } = document
    return element?.id || element?.getAttribute("data-card") || element?.className || element?.tagName
  })

/** @param {User} user @param {string} selector */
const span = ({ page }, selector) =>
  page.locator(selector).first().evaluate((element) => {
    const { top, bottom } = element.getBoundingClientRect()
    return { top: Math.round(top), bottom: Math.round(bottom) }
  })

test("the button of the paste form is inside the window", async () => {
  const { page } = await browser.newUser(galley, { locale: "ko-KR", viewport: WIDE })
  await page.goto(galley.url)
  await page.locator("#name").fill("김하늘")
  await page.locator("#way-paste").click()
  assert.equal(await page.evaluate(() => document.activeElement?.id), "paste-text")
  const box = await page.locator("#paste-go").boundingBox()
  assert.ok(box && box.y + box.height <= WIDE.height, JSON.stringify(box))
  // A question is no title: the page asks for one.
  await page.locator("#paste-text").fill("1. 지원동기 (700자 이내)\n저는 물류가 좋습니다.")
  await page.locator("#paste-go").click()
  await page.locator("#start-error", { hasText: "제목을 적어 주세요" }).waitFor()
  assert.equal(await page.evaluate(() => document.activeElement?.id), "paste-title")
  await page.keyboard.insertText("한빛물류 지원서")
  await page.keyboard.press("Enter")
  await page.waitForURL(/\/d\//)
  await until(async () => (await page.locator("#title").inputValue()) === "한빛물류 지원서", "the title that was asked for")
})

test("the start page shows a suggestion in the text and its reason beside it", async () => {
  const { page } = await browser.newUser(galley, { locale: "ko-KR", viewport: WIDE })
  await page.goto(galley.url)
  await page.locator(".shown-paper :lang(ko) > .question", { hasText: "700자 이내" }).waitFor()
  const look = await page.locator(".shown-paper .passage-new:visible").last().evaluate((put) => getComputedStyle(put).color === getComputedStyle(document.querySelector("#sentence ins") ?? put).color)
  assert.ok(look, "the new words have the pen of the reviewer")
  assert.equal(await page.locator(".shown-card :visible").filter({ hasText: /^이서연$/ }).count(), 1)
  await page.locator(".steps", { hasText: "본문에서 바로 고치면 제안이 되고" }).waitFor()
})

for (const [name, field] of Object.entries({ "의견 달기": "textarea:not(.prose)", "고쳐 쓰기 제안": "textarea.prose" })) {
  test(`a form has the focus while its sheet is on its way up (${name})`, async () => {
    const { reviewer } = await open(WIDE, TABLET)
    for (const at of [0, 1]) {
      if (await reviewer.page.locator("#sheet-close").isVisible()) await reviewer.page.locator("#sheet-close").click()
      await reviewer.page.locator("#margin").waitFor({ state: "hidden" })
      await reviewer.select(clause(at))
      await reviewer.page.locator("#selection-bar").getByRole("button", { name }).click()
      await reviewer.page.keyboard.type("짧게")
      await until(async () => (await reviewer.page.locator(`.review-form ${field}`).inputValue()) === "짧게", "the form has the text")
      await reviewer.page.keyboard.press("Control+Enter")
      await reviewer.page.locator(".card-draft").waitFor({ state: "detached" })
    }
  })
}

test("a sent remark on the whole text stands below the head of its sheet", async () => {
  const { writer, reviewer } = await open(WIDE, TABLET)
  await suggestAll(reviewer, writer)
  await reviewer.page.locator("#sheet-open").click()
  await reviewer.page.getByRole("button", { name: "총평 쓰기" }).click()
  await reviewer.page.keyboard.type("두 번째 총평입니다.")
  await reviewer.page.keyboard.press("Control+Enter")
  await reviewer.page.locator(".card-draft").waitFor({ state: "detached" })
  const isBelow = async () => (await span(reviewer, "#margin-head")).bottom <= (await span(reviewer, "#cards .card[data-active=true]")).top
  await until(isBelow, "the whole card is below the head", async () => JSON.stringify(await span(reviewer, "#cards .card[data-active=true]")))
})

test("after each decision the next card is active, has the focus, and is inside the window", async () => {
  const { writer, reviewer } = await open(WIDE, WIDE)
  await suggestAll(reviewer, writer)
  const ids = await writer.page.locator("#cards .card[data-kind=passage]").evaluateAll((cards) => cards.map((card) => card.getAttribute("data-card")))
  await writer.page.locator(`#cards [data-card="${ids[0]}"]`).click()
  for (const [at, decision] of ["accept", "reject", "accept", "reject", "accept"].entries()) {
    const answered = writer.page.waitForResponse(new RegExp(`/${decision}$`))
    await writer.page.locator(`#cards [data-card="${ids[at]}"][data-active=true] [data-decision=${decision}]`).click()
    await writer.page.locator(`#done-cards [data-card="${ids[at]}"]`).waitFor({ state: "attached" })
    await writer.page.locator(`#cards [data-card="${ids[at + 1]}"][data-active=true]`).waitFor()
    // The answer of the server comes after its event, and once moved the active card to the first one.
    await (await answered).finished()
    await drawn(writer)
    const next = `#cards [data-card="${ids[at + 1]}"]`
    assert.equal(await writer.page.locator(next).getAttribute("data-active"), "true")
    assert.equal(await focused(writer), ids[at + 1])
    const foot = await span(writer, "#text-counts-bar")
    await until(async () => (await span(writer, next)).bottom <= foot.top, "the card is above the foot", async () => JSON.stringify(await span(writer, next)))
  }
})

test("undo in a toast gives the focus back, and accepting all leaves it in the margin", async () => {
  const { writer, reviewer } = await open(WIDE, WIDE)
  await suggestAll(reviewer, writer)
  await writer.card(`${clause(0)}의 이유`).click()
  await writer.page.locator("#cards .card[data-active=true] [data-decision=reject]").click()
  await writer.page.locator("#toast").getByRole("button").click()
  await writer.page.locator("#toast", { hasText: "되돌렸습니다." }).waitFor()
  assert.match(String(await focused(writer)), /^rev_/)
  await openMenu(writer, "#margin-more")
  await writer.page.getByRole("button", { name: `모두 반영 (${COUNT})` }).click()
  await writer.page.locator("#decide-all").waitFor({ state: "hidden" })
  await until(async () => (await focused(writer)) === "tab-open", "the tab has the focus", async () => String(await focused(writer)))
})

test("the first card of the other tabs stands below the head, wherever the page is", async () => {
  const { writer, reviewer } = await open(WIDE, WIDE)
  await suggestAll(reviewer, writer)
  await writer.card(`${clause(0)}의 이유`).click()
  await writer.page.locator("#cards .card[data-active=true] [data-decision=reject]").click()
  await writer.page.locator("#done-cards .card").waitFor({ state: "attached" })
  await writer.page.locator("#tab-done").click()
  for (const top of [0, 900]) {
    await writer.page.evaluate((top) => window.scrollTo({ top, behavior: "instant" }), top)
    const isBelow = async () => (await span(writer, "#margin-head")).bottom <= (await span(writer, "#done-cards .card")).top
    await until(isBelow, `the card at ${top} px`, async () => JSON.stringify([await span(writer, "#margin-head"), await span(writer, "#done-cards .card")]))
  }
})

test("a dialog of the menu gives the focus back to the menu", async () => {
  const { writer } = await open(WIDE, WIDE)
  const summary = writer.page.locator("#menu summary")
  for (const entry of ["검토자", "이름 고치기", "다른 기기에서 사용하기"]) {
    await summary.press("Enter")
    await writer.page.locator("#menu-panel").getByRole("button", { name: entry, exact: true }).press("Enter")
    await writer.page.locator("dialog[open]").waitFor()
    await writer.page.keyboard.press("Escape")
    await writer.page.locator("dialog[open]").waitFor({ state: "detached" })
    await until(() => summary.evaluate((element) => element === document.activeElement), `the focus is back after ${entry}`, async () => String(await focused(writer)))
  }
})

test("a toast stands above the bar of a selection on a phone", async () => {
  const { reviewer } = await open(WIDE, PHONE)
  await reviewer.select(clause(0))
  await reviewer.page.evaluate(async () => (await source("announce")).showToast("보냈습니다."))
  // The bar of the selection comes with a frame after the selection.
  await reviewer.page.locator("#selection-bar").waitFor()
  const [toast, bar] = [await span(reviewer, "#toast p"), await span(reviewer, "#selection-bar")]
  assert.ok(toast.bottom <= bar.top, JSON.stringify({ toast, bar }))
})

test("a toast covers no field of the margin, and not the one of the target", async () => {
  const { writer, reviewer } = await open(WIDE, WIDE)
  await suggestAll(reviewer, writer)
  await writer.card(`${clause(0)}의 이유`).click()
  await writer.page.locator("#cards .card[data-active=true] .reply-field").focus()
  const covers = () =>
    writer.page.evaluate(async () => {
      const { showToast } = await source("announce")
      for (const sentence of ["짧은 알림입니다.", "긴 알림입니다. ".repeat(12)]) showToast(sentence)
      const field = document.activeElement?.getBoundingClientRect()
      const shown = [...document.querySelectorAll("#toast p")].map((toast) => toast.getBoundingClientRect())
      return shown.some(({ left, right, top, bottom }) => field && left < field.right && field.left < right && top < field.bottom && field.top < bottom)
    })
  assert.equal(await covers(), false, "the reply")
  for (const size of [WIDE, PHONE]) {
    await writer.resize(size)
    if (size === PHONE) await writer.page.keyboard.press("Escape")
    await writer.page.locator("#target").evaluate((target) => target instanceof HTMLDetailsElement && (target.open = true))
    await writer.page.locator("#target-number").focus()
    assert.equal(await covers(), false, `the target at ${size.width} px`)
  }
})
