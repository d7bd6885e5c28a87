// @ts-check
/**
 * Axe in each look of a page: both languages, both color schemes, forced colors, a wide window and a
 * phone. One look of each kind, and not their product: a rule depends on words and colors, or on the layout.
 */

import assert from "node:assert/strict"

import axe from "axe-core"

/** @typedef {import("./harness.mjs").User} User */
/** @typedef {{ language: "en" | "ko", scheme: "light" | "dark", forced?: boolean, width: number, height: number }} Look */

const WIDE = { width: 1280, height: 720 }
const PHONE = { width: 360, height: 740 }

/** Where the state has colors and widgets of its own. @type {readonly Look[]} */
export const ALL = [
  { language: "ko", scheme: "light", ...WIDE },
  { language: "en", scheme: "dark", ...WIDE },
  { language: "en", scheme: "light", forced: true, ...WIDE },
  { language: "en", scheme: "light", ...PHONE },
  { language: "ko", scheme: "dark", ...PHONE },
]

/** Where it differs from others by its words only. @type {readonly Look[]} */
export const WORDS = [
  { language: "en", scheme: "light", ...WIDE },
  { language: "ko", scheme: "dark", ...PHONE },
]

/** Holds that a place shows a text as it was written. @param {import("playwright-core").Locator} place */
export async function assertAsWritten(place) {
  const style = await place.evaluate((element) => {
    const { whiteSpace, fontFamily } = getComputedStyle(element)
    return { whiteSpace, isSerif: fontFamily.endsWith("serif") && !fontFamily.endsWith("sans-serif") }
  })
  assert.deepEqual(style, { whiteSpace: "pre-wrap", isSerif: true })
}

/**
 * Holds that axe reports nothing in any of the looks. The page stays in its state: a switch of the
 * language needs no reload.
 *
 * @param {User} user
 * @param {string} name
 * @param {readonly Look[]} [looks]
 */
export async function assertAccessibleIn(user, name, looks = ALL) {
  const { page } = user
  const before = page.viewportSize() ?? WIDE
  for (const { language, scheme, forced = false, width, height } of looks) {
    await page.emulateMedia({ colorScheme: scheme, forcedColors: forced ? "active" : "none", reducedMotion: "reduce" })
    await user.resize({ width, height })
    const look = `${name} (${language}, ${forced ? "forced colors" : scheme}, ${width})`
    const found = await violations(page, language)
    await user.shot(`axe-${look.replace(/[^\w가-힣]+/g, "-")}`)
    assert.deepEqual(found, [], look)
  }
  await page.emulateMedia({ colorScheme: "light", forcedColors: "none", reducedMotion: "reduce" })
  await user.resize(before)
}

/** @param {import("playwright-core").Page} page @param {"en" | "ko"} language */
async function violations(page, language) {
  await page.evaluate(async (chosen) => {
    // The page of an unknown address has both languages, and no module.
    await (await source("i18n"))?.i18n.setLanguage(chosen)
    for (let frames = 0; frames < 3; frames += 1) await new Promise(requestAnimationFrame)
    // A version that the page loads again is faint until its text is there.
    while (document.querySelector('.history-text[aria-busy="true"]')) await new Promise(requestAnimationFrame)
  }, language)
  return violationsNow(page)
}

/** A visible label that its name lacks. Axe calls the check of a sign, such as “Aa”, incomplete: a label has words. */
const MISMATCH = "label-content-name-mismatch"

/**
 * The violations that axe reports of the page as it is. A document gets axe once: its source is half a megabyte.
 *
 * @param {import("playwright-core").Page} page @returns {Promise<string[]>}
 */
export async function violationsNow(page) {
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axe.source)
  return page.evaluate(async (mismatch) => {
    const tool = /** @type {import("axe-core")} */ (Reflect.get(globalThis, "axe"))
    const rules = { [mismatch]: { enabled: true } }
    const { violations, incomplete } = await tool.run(document, { resultTypes: ["violations", "incomplete"], rules })
    const found = [...violations, ...incomplete.filter(({ id }) => id === mismatch)]
    return found.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`)
  }, MISMATCH)
}
