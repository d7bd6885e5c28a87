// @ts-check
/**
 * The writer's page with open suggestions in a text of 100 kB, in Chromium: the time to open it, from a key to its frame, from
 * a letter of the reviewer's to the writer's screen, and of a decision about all.
 *
 *     GALLEY_BIN=target/release/galley node tests/bench/suggestions.mjs [COUNT]
 *
 * A key counts from the browser's time stamp of its event to the first task behind the next frame. A letter counts from the
 * request of the reviewer's page to the frame in which the writer's text has it; both pages share a clock. The keys are
 * typed between the suggestions, in the middle of the text.
 */

import { Browser, Galley } from "../browser/harness.mjs"
import { quantile, typed, watch } from "./keys.mjs"

const COUNT = Number(process.argv[2] ?? 2_000)
const ROUNDS = 5
/** The server takes so many in one request. */
const BATCH = 200
const SENTENCE = "물류 현장에서 배운 점을 한 문장으로 적었습니다."
const TEXT = Array.from({ length: 2_000 }, (_, at) => `${at + 1}번째 문단. ${SENTENCE}`).join("\n\n").slice(0, 100_000)

/** Suggests through the page of the reviewer. @param {import("../browser/harness.mjs").User} reviewer @param {object[]} put */
const suggest = ({ page }, put) =>
  page.evaluate(async (put) => {
    const link = location.pathname.split("/").at(-1)
    const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ put, withdraw: [] }) }
    const sent = performance.timeOrigin + performance.now()
    const answer = await fetch(`/api/share-links/${link}/suggestions`, init)
    const { items } = await answer.json()
    const refused = items.find((/** @type {{ state: string }} */ { state }) => state !== "kept")
    if (!answer.ok || refused) throw new Error(`${answer.status} ${JSON.stringify(refused)}`)
    return { sent, items }
  }, put)

/** @param {number} at @param {string} text @param {number | null} [version] */
function suggestionAt(at, text, version = null) {
  const quote = "배운 점을"
  let start = -1
  for (let found = 0; found <= at; found++) start = TEXT.indexOf(quote, start + 1)
  return { id: `bench-suggestion-${String(at).padStart(6, "0")}`, version, parts: [{ start, end: start + quote.length, quote, text }] }
}

/** Until the last frame that has the words. @param {import("../browser/harness.mjs").User} writer @param {string} words */
const shown = ({ page }, words) =>
  page.evaluate(async (words) => {
    while (![...document.querySelectorAll(".passage-new")].some(({ textContent }) => textContent === words)) await new Promise(requestAnimationFrame)
    return performance.timeOrigin + performance.now()
  }, words)

const browser = await Browser.start()
const galley = await Galley.start()
const [writer, reviewer] = [await browser.newUser(galley), await browser.newUser(galley)]
await writer.page.addInitScript(watch)
await writer.paste("김민수", TEXT)
await reviewer.follow(await writer.invite(), "이서연")
await reviewer.seated()
for (let at = 0; at < COUNT; at += BATCH) {
  await suggest(reviewer, Array.from({ length: Math.min(BATCH, COUNT - at) }, (_, index) => suggestionAt(at + index, "깨달은 점을")))
}

/** @type {Record<"opened" | "keys" | "letters" | "long", number[]>} */
const found = { opened: [], keys: [], letters: [], long: [] }
let version = 1
for (let round = 0; round < ROUNDS; round++) {
  const start = performance.now()
  await writer.page.reload()
  await writer.seated()
  await writer.page.locator(".passage-new").first().waitFor()
  found.opened.push(performance.now() - start)
  await writer.page.waitForTimeout(1_500)
  await writer.page.locator(".cm-content").click()
  for (let letter = 0; letter < 10; letter++) {
    const words = `깨달은 점을 ${round}${letter}`
    const [seen, { sent, items }] = await Promise.all([shown(writer, words), suggest(reviewer, [suggestionAt(0, words, version)])])
    version = items[0].version
    found.letters.push(seen - sent)
  }
  const { keys, long } = await typed(writer.page)
  found.keys.push(...keys)
  found.long.push(...long)
}
const ms = (/** @type {number[]} */ values) => `p50 ${quantile(values, 0.5).toFixed(1)} ms, p95 ${quantile(values, 0.95).toFixed(1)} ms, max ${quantile(values, 1).toFixed(1)} ms`
console.log(`${COUNT} suggestions in ${TEXT.length} units`)
console.log(`opened: ${ms(found.opened)}`)
console.log(`key to frame: ${ms(found.keys)}; tasks over 50 ms: ${found.long.map((task) => task.toFixed(0)).join(", ") || "none"}`)
console.log(`letter to screen: ${ms(found.letters)}`)

await writer.page.keyboard.press("Control+Alt+a")
const asked = performance.now()
await writer.page.locator(".passage-new").first().waitFor({ state: "detached" })
console.log(`accept all, from the press to no mark in the window: ${(performance.now() - asked).toFixed(0)} ms`)
await browser.stop()
await galley.stop()
