// @ts-check
/** Keys in the middle of a text: the time of each from its event to the first task behind the next frame, for benchmarks of the page. */

const TYPED = "typed in the middle of it all, one letter after the other"

/** @param {number[]} values @param {number} share */
export const quantile = (values, share) => {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}

/** Measures each key of a page, and its long tasks. */
export function watch() {
  const measured = { keys: /** @type {number[]} */ ([]), long: /** @type {number[]} */ ([]) }
  Object.assign(globalThis, { measured })
  new PerformanceObserver((list) => measured.long.push(...list.getEntries().map(({ duration }) => duration))).observe({ type: "longtask" })
  const measure = (/** @type {KeyboardEvent} */ { timeStamp }) => {
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel()
      port1.onmessage = () => measured.keys.push(performance.now() - timeStamp)
      port2.postMessage(null)
    })
  }
  addEventListener("keydown", measure, { capture: true })
}

/** Types in a page that is watched, and returns what was measured meanwhile. @param {import("playwright-core").Page} page @returns {Promise<{ keys: number[], long: number[] }>} */
export async function typed(page) {
  const taken = () => page.evaluate(() => {
    const { keys, long } = Reflect.get(globalThis, "measured")
    return { keys: keys.splice(0), long: long.splice(0) }
  })
  await page.locator(".cm-content").click()
  for (let down = 0; down < 12; down++) await page.keyboard.press("PageDown")
  await page.waitForTimeout(700)
  await taken()
  for (const letter of TYPED) {
    await page.keyboard.type(letter)
    await page.waitForTimeout(60)
  }
  return taken()
}
