// @ts-check
/** A suggestion in a line that the writer deletes, takes back, and moves, beside a twin of the line. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { until } from "./harness.mjs"
import { assertAccessible, assertFits, bothSeated, inEachLook, withGalley } from "./support.mjs"

/** @typedef {import("./harness.mjs").User} User */

withGalley()

const line = (/** @type {string} */ name) => `${name} 팀은 지난 분기에 물류 체계를 처음부터 새로 설계하여 모든 지역의 평균 배송 시간을 크게 줄였다고 보고했습니다.`
const [OWN, TWIN] = [line("가"), line("나")]
const QUOTE = "배송 시간을 크게 줄였다고"
const WIDE = { width: 1280, height: 720 }

/** A writer and a reviewer, who suggests other words for the first line. */
async function desk() {
  const { writer, reviewer } = await bothSeated(`${OWN}\n${TWIN}\n끝`, { locale: "ko-KR", viewport: WIDE })
  await reviewer.page.evaluate(async ([quote, text]) => {
    const start = text.indexOf(quote)
    const anchor = { start, end: start + quote.length, quote }
    const body = JSON.stringify({ anchor, body: "for the first line", suggestion: "배송 시간을 대폭 줄였다고" })
    const link = location.pathname.split("/").at(-1)
    const answer = await fetch(`/api/share-links/${link}/reviews`, { method: "POST", headers: { "content-type": "application/json" }, body })
    if (answer.status !== 201) throw new Error(await answer.text())
  }, /** @type {const} */ ([QUOTE, OWN]))
  await writer.card("for the first line").waitFor()
  return { writer, reviewer }
}

/** @param {User} user @param {string} state */
const waitForState = (user, state) => user.page.locator(`.card[data-state=${state}]`, { hasText: "for the first line" }).waitFor({ state: "attached" })

test("a suggestion in a deleted line goes to no twin of it, and an undo brings it back", async () => {
  const { writer, reviewer } = await desk()
  await writer.select(OWN)
  await writer.page.keyboard.press("Backspace")
  await writer.waitForText(`\n${TWIN}\n끝`)
  for (const user of [writer, reviewer]) {
    await waitForState(user, "orphaned")
    await until(async () => (await user.page.locator(".cm-content .passage").count()) === 0, "no passage is marked")
  }
  // A second read of each page stores nothing.
  await writer.page.reload()
  await writer.seated()
  await waitForState(writer, "orphaned")
  assert.equal(await writer.page.locator("[data-decide-all=accept]:visible").count(), 0)

  await writer.select(TWIN)
  await writer.page.keyboard.press("ArrowLeft")
  await writer.page.keyboard.press("ArrowUp")
  await writer.page.keyboard.insertText(OWN)
  await writer.waitForText(`${OWN}\n${TWIN}\n끝`)
  for (const user of [writer, reviewer]) {
    await waitForState(user, "exact")
    // An answer draws the marks anew.
    const marked = () => user.page.evaluate(() => document.querySelector(".cm-line .passage-old")?.closest(".cm-line")?.textContent ?? "")
    await until(async () => (await marked()).includes("가 팀은"), "the line is marked", marked)
  }
})

test("a moved passage is a guess that the writer looks at", async () => {
  const { writer, reviewer } = await desk()
  const { page } = writer
  await writer.select(OWN)
  await page.keyboard.press("Control+x")
  await writer.waitForText(`\n${TWIN}\n끝`)
  await page.keyboard.press("Control+End")
  await page.keyboard.press("Control+v")
  const moved = `\n${TWIN}\n끝${OWN}`
  await writer.waitForText(moved)
  for (const user of [writer, reviewer]) {
    await waitForState(user, "moved")
    await user.card("for the first line").click()
    await user.card("for the first line").getByText("옮겨진 듯합니다.").waitFor()
  }
  await inEachLook(writer, async ({ width, scheme }) => {
    const open = page.locator("#sheet-open")
    const isOpen = await page.evaluate(() => document.body.dataset.sheet === "open")
    if (!isOpen && (await open.isVisible())) await open.click()
    await writer.card("for the first line").click()
    await assertFits(writer, `moved-card-${width}-${scheme}`)
    const close = page.locator("#sheet-close")
    if (await close.isVisible()) await close.click()
  })
  await assertAccessible(writer, "a moved card")
  await writer.card("for the first line").getByRole("button", { name: "옮겨진 곳 보기" }).click()
  await writer.card("for the first line").locator("[data-decision=accept]").click()
  await page.locator("#confirm").getByText("여기에 반영할까요?").waitFor()
  await writer.shot("moved-question")
  await page.locator("#confirm").getByRole("button", { name: "취소" }).click()
  assert.equal(await writer.text(), moved)
  await writer.card("for the first line").locator("[data-decision=accept]").click()
  await page.locator("#confirm").getByRole("button", { name: "여기에 반영" }).click()
  await writer.waitForText(moved.replace(OWN, OWN.replace("크게", "대폭")))
})
