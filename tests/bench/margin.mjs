// @ts-check
/**
 * The time from a key to its frame in a text of 200 kB with 300 comments, in Chromium.
 *
 *     GALLEY_BEFORE=path/of/an/earlier/galley GALLEY_BIN=target/release/galley node tests/bench/margin.mjs
 *
 * Both servers take turns, so that the machine's other load falls on both. Each round opens the document, places the
 * caret in the middle and types a sentence. A key counts from the browser's time stamp of its event to the first task
 * behind the next frame.
 */

import { Browser, Galley } from "../browser/harness.mjs"
import { quantile, typed, watch } from "./keys.mjs"

const ROUNDS = 5
const COMMENTS = 300
const SENTENCE = "물류 현장에서 배운 점을 한 문장으로 적었습니다. "
const TEXT = Array.from({ length: 1_300 }, (_, at) => `${at + 1}번째 문단. ${SENTENCE.repeat(2)}`).join("\n\n")

/** @param {string} binary @param {Browser} browser */
async function prepare(binary, browser) {
  const galley = await Galley.start({}, "0", binary)
  const [writer, reviewer] = [await browser.newUser(galley), await browser.newUser(galley)]
  await writer.page.addInitScript(watch)
  await writer.paste("김민수", TEXT)
  await reviewer.follow(await writer.invite(), "이서연")
  await reviewer.seated()
  await reviewer.page.evaluate(
    async ({ text, count }) => {
      const api = await source("api")
      const link = location.pathname.split("/").pop()
      for (let at = 0; at < count; at++) {
        const quote = `${at * 4 + 1}번째 문단`
        const start = text.indexOf(at === 0 ? quote : `\n${quote}`) + (at === 0 ? 0 : 1)
        await api.createReview(link, { anchor: { start, end: start + quote.length, quote }, body: `${at + 1}번째 의견입니다. 근거를 더 써 주세요.` })
        if (at % 20 === 0) await new Promise((done) => setTimeout(done, 500))
      }
    },
    { text: TEXT, count: COMMENTS },
  )
  const url = writer.page.url()
  await reviewer.page.context().close()
  return { galley, writer, url, keys: /** @type {number[]} */ ([]), opened: /** @type {number[]} */ ([]) }
}

const browser = await Browser.start()
const names = { before: process.env.GALLEY_BEFORE, after: process.env.GALLEY_BIN }
/** @type {Record<string, Awaited<ReturnType<typeof prepare>>>} */
const runs = {}
for (const [name, binary] of Object.entries(names)) if (binary) runs[name] = await prepare(binary, browser)
for (let round = 0; round < ROUNDS; round++) {
  for (const run of Object.values(runs)) {
    const { page } = run.writer
    const start = performance.now()
    await page.goto(run.url)
    await run.writer.seated()
    run.opened.push(performance.now() - start)
    await page.waitForTimeout(1_500)
    run.keys.push(...(await typed(page)).keys)
  }
}
for (const [name, { keys, opened }] of Object.entries(runs)) {
  console.log(
    `${name}: ${keys.length} keys, p50 ${quantile(keys, 0.5).toFixed(1)} ms, p95 ${quantile(keys, 0.95).toFixed(1)} ms, ` +
      `max ${Math.max(...keys).toFixed(1)} ms; opened in ${quantile(opened, 0.5).toFixed(0)} ms`,
  )
}
await browser.stop()
for (const { galley } of Object.values(runs)) await galley.stop()
