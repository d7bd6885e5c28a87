// @ts-check
/** The questions of a cover letter: a meter below each heading, the list in the foot, and the limits of the writer. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { assertUntouched, inputMethod, watchComposed } from "./composing.mjs"
import { openMenu, until } from "./harness.mjs"
import { assertAccessible, assertFits, bothSeated, withGalley } from "./support.mjs"

withGalley()

/** @typedef {import("./harness.mjs").User} User */

const ANSWERS = [
  "저는 물류가 좋습니다. 대학교 2학년 여름, 택배 상하차 아르바이트를 했습니다.",
  "저의 장점은 꼼꼼함입니다. 설문 1,240건을 하나하나 대조하여 중복을 찾았습니다.",
]
const LETTER = `1. 지원동기와 입사 후 포부를 기술해 주십시오. (700자 이내)\n\n${ANSWERS[0]}\n\n2. 본인의 성격의 장단점을 기술해 주십시오. (30자 이내)\n\n${ANSWERS[1]}`
const [FIRST, SECOND] = ANSWERS.map((answer) => answer.length)

/** @param {import("playwright-core").BrowserContextOptions} [options] */
async function both(options = {}) {
  const given = { locale: "ko-KR", ...options }
  const { writer, reviewer } = await bothSeated(LETTER, given)
  return { writer, reviewer }
}

/** @param {User} user @param {string} quote @param {string} suggestion */
const suggest = (user, quote, suggestion) => user.createReviews(LETTER, [{ quote, suggestion }])

/** @param {User} user @param {string} selector @param {readonly string[]} wanted */
async function reads({ page }, selector, wanted) {
  const texts = () => page.locator(selector).allTextContents()
  await until(async () => JSON.stringify(await texts()) === JSON.stringify(wanted), `${selector} reads ${wanted.join(" · ")}`)
}

const METERS = ".question-count"
const LIST = "#questions .question-link"

test("each question has a meter, which follows the text for both", async () => {
  const { writer, reviewer } = await both()
  for (const user of [writer, reviewer]) {
    await reads(user, METERS, [`${FIRST} / 700자`, `${SECOND} / 30자${Number(SECOND) - 30}자 초과`])
    await reads(user, LIST, [`1번${FIRST} / 700`, `2번${SECOND} / 30${Number(SECOND) - 30} 초과`])
  }
  await writer.typeAtEnd(" 끝.")
  for (const user of [writer, reviewer]) {
    await reads(user, METERS, [`${FIRST} / 700자`, `${Number(SECOND) + 3} / 30자${Number(SECOND) - 27}자 초과`])
  }
  // The list marks the question of the caret, and leads to another.
  assert.equal(await writer.page.locator(`${LIST}[aria-current=true]`).textContent(), await writer.page.locator(LIST).nth(1).textContent())
  await writer.page.locator(LIST).first().click()
  await writer.page.keyboard.type("늘 ")
  await writer.waitForText(LETTER.replace("저는 물류가", "늘 저는 물류가") + " 끝.")
  await reads(reviewer, METERS, [`${Number(FIRST) + 2} / 700자`, `${Number(SECOND) + 3} / 30자${Number(SECOND) - 27}자 초과`])
})

test("a suggestion shows what the answer would count with it", async () => {
  const { writer, reviewer } = await both()
  await suggest(reviewer, "하나하나 대조하여 ", "대조해 ")
  const shorter = Number(SECOND) - 6
  for (const user of [writer, reviewer]) {
    await reads(user, METERS, [`${FIRST} / 700자`, `${SECOND} / 30자${Number(SECOND) - 30}자 초과 제안 반영하면 ${shorter}`])
  }
})

test("suggestions that break a limit are said in meter and foot, both open the dialog, and a struck heading stays one", async () => {
  const text = "1. 지원동기 (10자)\n\n가나다라마바\n\n2. 포부 (10자)\n\n사아자차"
  const { writer, reviewer } = await bothSeated(text, { locale: "ko-KR" }, { locale: "ko-KR" })
  await reviewer.page.locator(".cm-content:not([aria-readonly=true])").waitFor()
  await reviewer.select("가나다라마바")
  await reviewer.page.keyboard.press("ArrowRight")
  await reviewer.page.keyboard.insertText("일이삼사오육")
  for (const user of [writer, reviewer]) {
    await reads(user, METERS, ["6 / 10자 제안 반영하면 12", "4 / 10자"])
    await reads(user, LIST, ["1번6 / 10제안 반영하면 2 초과", "2번4 / 10"])
    assert.equal(await user.page.locator(".question-accepted").getAttribute("data-over"), "true")
  }
  await reviewer.select("2. 포부 (10자)")
  await reviewer.page.keyboard.press("Delete")
  await writer.page.locator(".passage-old", { hasText: "포부" }).waitFor()
  await reads(reviewer, LIST, ["1번6 / 10", "2번4 / 10"])
  await writer.page.locator(METERS).first().click()
  await writer.page.locator("#section-dialog[open] .section-heading", { hasText: "지원동기" }).waitFor()
  await writer.page.keyboard.press("Escape")
  await writer.page.locator(LIST).first().click()
  await writer.page.locator("#section-dialog[open]").waitFor()
})

test("the writer sets a limit, marks a line, and takes a question out; both see it, also after a reload", async () => {
  const { writer, reviewer } = await both()
  const { page } = writer
  const open = async () => {
    await openMenu({ page }, "#menu")
    await page.getByRole("button", { name: "문항 · 글자 수 제한" }).click()
    await page.locator("#section-dialog[open]").waitFor()
  }
  await writer.select("꼼꼼함")
  await open()
  assert.equal(await page.locator(".section-heading").textContent(), "2. 본인의 성격의 장단점을 기술해 주십시오. (30자 이내)")
  await assertAccessible(writer, "section-dialog")
  await assertFits(writer, "section-dialog")
  // Digits replace the limit of the heading; a limit that no question has is asked about.
  await page.keyboard.type("300600")
  await page.locator("#section-dialog").getByRole("button", { name: "저장" }).click()
  await page.locator("#confirm[open]", { hasText: "300,600까지로 제한할까요?" }).getByRole("button", { name: "취소" }).click()
  await page.getByLabel("글자 수 제한", { exact: true }).fill("90")
  await page.getByLabel("세는 방법").last().selectOption("euc-kr")
  await page.locator("#section-dialog").getByRole("button", { name: "저장" }).click()
  await page.locator("#section-dialog").waitFor({ state: "hidden" })
  const bytes = 77
  for (const user of [writer, reviewer]) await reads(user, METERS, [`${FIRST} / 700자`, `${bytes} / 90바이트`])
  await writer.select("꼼꼼함")
  await open()
  await page.getByLabel("세는 방법").last().selectOption("words")
  await page.locator("#section-dialog").getByRole("button", { name: "저장" }).click()
  const words = ANSWERS[1]?.split(" ").length
  for (const user of [writer, reviewer]) await reads(user, METERS, [`${FIRST} / 700자`, `${words} / 90단어`])
  await writer.select("지원동기")
  await open()
  await page.getByLabel("문항 아님").check()
  await page.locator("#section-dialog").getByRole("button", { name: "저장" }).click()
  for (const user of [writer, reviewer]) await reads(user, METERS, [`${words} / 90단어`])
  await reviewer.page.reload()
  await reviewer.seated()
  await reads(reviewer, METERS, [`${words} / 90단어`])
  assert.equal(await reviewer.page.getByText("문항 · 글자 수 제한").count(), 0, "the reviewer sets none")
})

test("an IME composition below a heading is whole while the counts change", async () => {
  const { writer, reviewer } = await both()
  await writer.toEnd()
  const ime = await inputMethod(writer)
  await ime.compose("ㅎ", "하", "한")
  await watchComposed(writer)
  await reads(reviewer, METERS, [`${FIRST} / 700자`, `${Number(SECOND) + 1} / 30자${Number(SECOND) - 29}자 초과`])
  await suggest(reviewer, "저는 물류가 좋습니다", "저는 물류를 좋아합니다")
  await reads(writer, METERS, [`${FIRST} / 700자 제안 반영하면 ${Number(FIRST) + 1}`, `${Number(SECOND) + 1} / 30자${Number(SECOND) - 29}자 초과`])
  await assertUntouched(writer)
  await ime.compose("한ㄱ", "한구", "한국")
  await ime.commit("한국")
  await writer.waitForText(`${LETTER}한국`)
  // The reviewer's text has the words of the suggestion.
  await reviewer.waitForText(`${LETTER.replace("물류가 좋습니다", "물류를 좋아합니다")}한국`)
})

for (const width of [1280, 768, 360]) {
  test(`the questions fit into a window of ${width} px, and axe finds nothing`, async () => {
    const { writer, reviewer } = await both({ viewport: { width, height: 740 } })
    for (const user of [writer, reviewer]) {
      await user.page.locator(METERS).first().waitFor()
      await assertFits(user, `questions-${width}`)
      await assertAccessible(user, `questions-${width}`)
    }
    const shown = await writer.page.locator(LIST).evaluateAll((links) => links.filter((link) => link.getClientRects().length !== 0).length)
    assert.equal(shown, width < 900 ? 1 : 2)
  })
}
