// @ts-check
/**
 * How long a big document takes to open and a key in it to be seen, in Chromium: for
 * `tests/bench/RESULTS.md`.
 *
 *     cargo build --release && GALLEY_BIN=target/release/galley node tests/browser/measure_large_document.mjs
 *
 * A document of 200,000 pieces (`large_document.mjs`) and an empty one take turns, five times each. Opening is from
 * the navigation to the frame in which the text stands; a key is Chromium's own event timing, to
 * the next frame. Tasks of more than 50 ms are what Chromium calls long.
 */

import { writeLargeDocument } from "./large_document.mjs"
import { Browser, Galley, User } from "./harness.mjs"

const ROUNDS = 5
const TYPED = "typed in the middle of it all"

/** @param {number[]} values */
const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0

/** Watches a page from its beginning. */
function watch() {
  /** @type {{ shown: number, long: number[], keys: number[] }} */
  const seen = { shown: 0, long: [], keys: [] }
  Object.assign(globalThis, { seen })
  new PerformanceObserver((list) => seen.long.push(...list.getEntries().map(({ duration }) => Math.round(duration)))).observe({ type: "longtask", buffered: true })
  const keys = new PerformanceObserver((list) => {
    seen.keys.push(...list.getEntries().filter(({ name }) => name === "keydown").map(({ duration }) => duration))
  })
  // @ts-expect-error -- not in the types yet
  keys.observe({ type: "event", durationThreshold: 16 })
  const look = () => {
    if (document.body?.dataset.read === "true") seen.shown = Math.round(performance.now())
    else requestAnimationFrame(look)
  }
  requestAnimationFrame(look)
}

const galley = await Galley.start()
const browser = await Browser.start()
try {
  for (const operations of [0, 200_000]) {
    const desk = await galley.desk("")
    if (0 < operations) await writeLargeDocument(galley, desk, operations)
    const { page } = /** @type {User} */ (await browser.newUser(galley))
    await page.context().addCookies([{ name: "galley_token", value: desk.writer, url: galley.url }])
    await page.addInitScript(watch)
    /** @returns {Promise<{ shown: number, long: number[], keys: number[] }>} */
    // @ts-expect-error -- set above
    const seen = () => page.evaluate(() => globalThis.seen)
    const [shown, long] = [[0], [0]].map(() => /** @type {number[]} */ ([]))
    for (let round = 0; round < ROUNDS; round++) {
      await page.goto(`${galley.url}/d/${desk.document}`)
      // @ts-expect-error -- set above
      await page.waitForFunction(() => 0 < globalThis.seen.shown, null, { timeout: 60_000 })
      await page.waitForTimeout(1_500)
      const found = await seen()
      shown?.push(found.shown)
      long?.push(Math.max(0, ...found.long))
    }
    await page.locator(".cm-content").click()
    for (const letter of TYPED) {
      await page.keyboard.type(letter)
      await page.waitForTimeout(80)
    }
    await page.waitForTimeout(500)
    const { keys } = await seen()
    const client = await page.context().newCDPSession(page)
    await client.send("HeapProfiler.collectGarbage")
    const { usedSize } = await client.send("Runtime.getHeapUsage")
    console.log(
      `${operations} operations: opened in ${median(shown ?? [])} ms, longest task ${median(long ?? [])} ms; ` +
        `of ${TYPED.length} keys ${keys.length} took 16 ms or more, the longest ${Math.max(0, ...keys)} ms; ` +
        `${Math.round(usedSize / 2 ** 20)} MiB of JavaScript`,
    )
  }
} finally {
  await browser.stop()
  await galley.stop()
}
