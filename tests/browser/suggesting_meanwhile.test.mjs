// @ts-check
/** The writer edits what the reviewer suggests to change: both pages, the server and a reload agree, and no word is lost. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { until } from "./harness.mjs"
import { accepted, caretBehind, decideFirst, desk, serverHas, struck } from "./suggesting_desk.mjs"
import { withGalley } from "./support.mjs"
import { suggest } from "./typed.mjs"

withGalley()

/** The reviewer replaces a noun, and the writer takes its last letter out. @param {import("./harness.mjs").UserOptions} [options] */
async function shortened(options) {
  const { writer, reviewer } = await desk("저는 물류를 배웠습니다.", options)
  await reviewer.select("물류를")
  await reviewer.page.keyboard.insertText("유통을")
  await serverHas(writer, [["물류를", "유통을"]])
  await writer.page.locator(".passage-old", { hasText: "물류를" }).waitFor()
  await caretBehind(writer, "물류")
  await writer.page.keyboard.press("Backspace")
  return { writer, reviewer }
}

test("the writer types another letter in a quote: what the reviewer types beside it is sent, and a reload shows the same", async () => {
  const { writer, reviewer } = await shortened({ locale: "ko-KR" })
  await writer.page.keyboard.insertText("품")
  await writer.waitForText("저는 물품를 배웠습니다.")
  await reviewer.waitForText("저는 물품를 배웠습니다.")
  await reviewer.card("이 부분을 고쳤습니다").waitFor()
  await caretBehind(reviewer, "배웠습니다")
  await reviewer.page.keyboard.insertText("만")
  await reviewer.select("저는")
  await reviewer.page.keyboard.insertText("나는")
  await serverHas(writer, [["저는", "나는"], ["물류를", "유통을"], ["배웠습니다", "배웠습니다만"]])
  await reviewer.page.locator("#saved[data-kind=saved]", { hasText: "제안 저장됨" }).waitFor()
  await reviewer.shot("suggesting-hidden")
  const text = "나는 물품를 배웠습니다만."
  await reviewer.waitForText(text)
  assert.equal(await accepted(writer), text)
  await reviewer.page.reload()
  await reviewer.seated()
  await reviewer.waitForText(text)
  await until(async () => (await struck(reviewer)).join() === "저는,배웠습니다", "whole words are struck")
})

test("the words of a suggestion whose quote the writer edited can be put in, and taken out again", async () => {
  const { writer, reviewer } = await desk("저는 물류를 배웠습니다.", { locale: "ko-KR" })
  await reviewer.select("물류를")
  await reviewer.page.keyboard.insertText("유통을")
  await writer.card("유통을").waitFor()
  await caretBehind(writer, "물류")
  await writer.page.keyboard.press("Backspace")
  await writer.page.keyboard.insertText("품")
  const card = writer.card("With these words")
  await card.locator("del", { hasText: "물품를" }).waitFor()
  await card.locator("ins", { hasText: "유통을" }).waitFor()
  await card.click()
  await writer.shot("card-put-in")
  await card.getByRole("button", { name: /^Put these words in/ }).click()
  await reviewer.waitForBase("저는 유통을 배웠습니다.")
  await reviewer.waitForText("저는 유통을 배웠습니다.")
  await serverHas(writer, [])
  await writer.page.locator("#toast", { hasText: "The words are in the text." }).getByRole("button", { name: "Undo" }).click()
  await reviewer.waitForBase("저는 물품를 배웠습니다.")
  await serverHas(writer, [["물류를", "유통을"]])
})

test("the writer deletes a letter of a quote and types it again: the reviewer reads what will be accepted", async () => {
  const { writer, reviewer } = await shortened()
  await reviewer.waitForText("저는 물를 배웠습니다.")
  await writer.page.keyboard.insertText("류")
  await reviewer.waitForText("저는 유통을 배웠습니다.")
  assert.deepEqual(await struck(reviewer), ["물류를"])
  await reviewer.page.locator("#saved[data-kind=saved]").waitFor()
  assert.equal(await accepted(writer), "저는 유통을 배웠습니다.")
  await decideFirst(writer, "accept")
  await writer.waitForText("저는 유통을 배웠습니다.")
  await until(async () => (await struck(reviewer)).length === 0, "nothing is struck")
  await reviewer.waitForText("저는 유통을 배웠습니다.")
})

test("the writer deletes the whole text and takes it back: the own suggestions are text again", async () => {
  const { writer, reviewer } = await desk("저는 물류를 배웠습니다.\n둘째 줄입니다.")
  await reviewer.select("물류를")
  await reviewer.page.keyboard.insertText("유통을")
  await serverHas(writer, [["물류를", "유통을"]])
  await writer.page.locator(".cm-content").click()
  const asked = reviewer.page.waitForResponse((answer) => answer.url().includes("/reviews"))
  await writer.page.keyboard.press("Control+a")
  await writer.page.keyboard.press("Delete")
  await reviewer.waitForText("")
  await asked
  await writer.page.keyboard.press("Control+z")
  await writer.waitForText("저는 물류를 배웠습니다.\n둘째 줄입니다.")
  await reviewer.waitForText("저는 유통을 배웠습니다.\n둘째 줄입니다.")
  assert.deepEqual(await struck(reviewer), ["물류를"])
})

test("words that cannot enter the text of a later page stay in the browser until their author discards them", async () => {
  const { writer, reviewer } = await desk("저는 물류를 배웠습니다.\n둘째 줄입니다.")
  const { page } = reviewer
  const context = page.context()
  await page.route("**/suggestions", (route) => route.abort())
  await reviewer.select("물류를")
  await page.keyboard.insertText("유통을")
  await page.locator("#saved[data-kind=late]").waitFor()
  const url = page.url()
  await page.close({ runBeforeUnload: false })
  await writer.select("저는 물류를 배웠습니다.")
  await writer.page.keyboard.press("Delete")
  await until(async () => (await accepted(writer)) === "\n둘째 줄입니다.", "the passage is gone", () => accepted(writer))
  const again = Object.assign(Object.create(Object.getPrototypeOf(reviewer)), reviewer, { page: await context.newPage() })
  await again.page.goto(url)
  const offer = again.page.locator("#recovered-drafts")
  await offer.getByText("유통을", { exact: true }).waitFor()
  await again.page.reload()
  await offer.getByText("유통을", { exact: true }).waitFor()
  await offer.getByRole("button", { name: "Discard" }).click()
  await again.page.getByRole("button", { name: "Discard it" }).click()
  await offer.waitFor({ state: "hidden" })
  await again.page.reload()
  await again.page.locator("#saved[data-kind=saved]").waitFor()
  await offer.waitFor({ state: "hidden" })
})

test("words that are added behind replaced ones are drawn in the order of the acceptance, whichever came first", async () => {
  const text = "저는 물류를 배웠습니다. 저는 상자가 좋습니다."
  const { writer, reviewer } = await desk(text)
  const added = [{ after: "물류", text: "센터" }, { after: "상자", text: "들" }]
  const replaced = [{ quote: "물류", text: "유통" }, { quote: "상자", text: "짐" }]
  for (const change of [added[0], replaced[0], replaced[1], added[1]]) if (change) await suggest(reviewer, text, { changes: [change] })
  await writer.page.locator("#cards .card").nth(3).waitFor()
  const drawn = () => writer.page.locator(".cm-content").evaluate((content) => {
    const shown = /** @type {HTMLElement} */ (content.cloneNode(true))
    for (const old of shown.querySelectorAll(".passage-old, .peer-caret")) old.remove()
    return shown.textContent
  })
  const wanted = "저는 유통센터를 배웠습니다. 저는 짐들가 좋습니다."
  await until(async () => (await drawn()) === wanted, "the page draws the acceptance", drawn)
  assert.equal(await accepted(writer), wanted)
})

test("a reviewer who types on and on while each batch is answered reads of no unsaved suggestion", async () => {
  const { reviewer } = await desk("저는 물류를 배웠습니다.", { hasClock: true })
  const { page } = reviewer
  /** @type {((value: unknown) => void)[]} */
  const held = []
  await page.route("**/suggestions", async (route) => {
    await new Promise((resolve) => held.push(resolve))
    await route.continue()
  })
  await caretBehind(reviewer, "배웠습니다")
  await reviewer.stopClock()
  // Each batch is under way while the next letter is typed: something is always unsent, for longer than a page waits.
  for (let batch = 0; batch < 8; batch++) {
    await page.keyboard.insertText("만")
    await until(async () => {
      await page.clock.runFor(200)
      return held.length === 1
    }, "a batch is sent")
    await page.keyboard.insertText("은")
    await page.clock.runFor(800)
    const answered = page.waitForResponse("**/suggestions")
    held.pop()?.(undefined)
    await answered
    await page.clock.runFor(200)
    assert.notEqual(await page.locator("#saved").getAttribute("data-kind"), "late", `batch ${batch}`)
    assert.equal(await page.locator("#notice").isVisible(), false, `batch ${batch}`)
  }
  await page.unrouteAll({ behavior: "ignoreErrors" })
})
