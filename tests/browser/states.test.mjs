// @ts-check
/**
 * States of a page that are neither "writes" nor "reviews": a cut that is about to be pasted, a server
 * that is away or frozen, and a seat that another session holds.
 */

import assert from "node:assert/strict"
import { test } from "node:test"

import { until } from "./harness.mjs"
import { browser, galley, withGalley } from "./support.mjs"

/** @typedef {import("./harness.mjs").User} User */

withGalley({ per: "test" })

const WINDOW = { width: 1280, height: 720 }
const FIRST = "저는 물류 현장에서 배웠습니다."
const SECOND = "다음 문단은 더 짧습니다."
const TEXT = `${FIRST}\n\n${SECOND}\n\n끝.`

/** The writer and the reviewer of a document, in windows of one size. @param {string} [text] */
async function open(text = TEXT, viewport = WINDOW) {
  const [writer, reviewer] = [await browser.newUser(galley, { viewport }), await browser.newUser(galley, { viewport })]
  await writer.paste("김민수", text)
  await reviewer.follow(await writer.invite(), "이서연")
  await reviewer.seated()
  return { writer, reviewer }
}

/** Records each frame in which a card is not in the open list, or is said to be lost. @param {User} user @param {string} text */
async function watchCard(user, text) {
  await user.card(text).waitFor()
  await user.page.evaluate((text) => {
    const seen = { losses: 0, frames: 0 }
    Object.assign(globalThis, { seen })
    const look = () => {
      const card = [...document.querySelectorAll("#cards .card")].find((each) => each.textContent?.includes(text))
      const state = card instanceof HTMLElement ? card.dataset.state : "none"
      if (state === "none" || state === "orphaned") seen.losses++
      seen.frames++
      requestAnimationFrame(look)
    }
    look()
  }, text)
}

/** @param {User} user @returns {Promise<{ losses: number, frames: number }>} */
const seenOf = ({ page }) => page.evaluate(() => /** @type {any} */ (globalThis).seen)

/** The part of the text that is drawn as a passage. @param {User} user */
const passage = ({ page }) => page.locator(".passage").allTextContents()

test("s2-9: a paragraph that is cut and pasted keeps its card, and is never called deleted", async () => {
  const { writer, reviewer } = await open()
  await reviewer.review(FIRST, { body: "근거를 더 써 주세요." })
  for (const user of [writer, reviewer]) await watchCard(user, "근거를 더")
  await writer.select(FIRST)
  await writer.page.keyboard.press("Control+x")
  await writer.page.waitForTimeout(1_000)
  await writer.page.keyboard.press("Control+End")
  await writer.page.keyboard.press("Control+v")
  await writer.waitForText(`\n\n${SECOND}\n\n끝.${FIRST}`)
  for (const user of [writer, reviewer]) {
    await until(async () => (await passage(user)).join("") === FIRST, "the passage is marked where it was pasted")
    await user.page.waitForTimeout(3_500)
    const { losses, frames } = await seenOf(user)
    assert.ok(0 < frames)
    assert.equal(losses, 0, "no frame calls the passage lost")
    assert.equal(await user.page.locator("#tab-lost").isVisible(), false)
  }
})

test("s2-9: an undone deletion leaves the card beside its line", async () => {
  const { writer, reviewer } = await open()
  await reviewer.review(SECOND, { body: "짧아도 됩니다." })
  await watchCard(writer, "짧아도")
  await writer.select(SECOND)
  await writer.page.keyboard.press("Delete")
  await writer.page.waitForTimeout(800)
  await writer.page.keyboard.press("Control+z")
  await writer.waitForText(TEXT)
  assert.deepEqual(await passage(writer), [SECOND])
  await writer.page.waitForTimeout(3_500)
  assert.equal((await seenOf(writer)).losses, 0)
})

test("s2-9: a passage that stays away is called lost, three seconds after its deletion", async () => {
  const { writer, reviewer } = await open()
  await reviewer.review(SECOND, { body: "짧아도 됩니다." })
  await writer.card("짧아도").waitFor()
  await writer.select(SECOND)
  const deletedAt = Date.now()
  await writer.page.keyboard.press("Delete")
  await writer.page.locator("#tab-lost").waitFor()
  assert.ok(2_800 <= Date.now() - deletedAt, "not before")
  await reviewer.page.locator("#tab-lost").waitFor()
})
