// @ts-check
/**
 * The browser and the server of a test file, and the checks of a page in each width and color scheme.
 *
 * Node runs each test file in a process of its own, so a module can hold both.
 */

import assert from "node:assert/strict"
import { basename, join } from "node:path"
import { after, afterEach, before, beforeEach } from "node:test"
import { setTimeout } from "node:timers/promises"

import { Browser, Galley, drawn, until } from "./harness.mjs"
import { violationsNow } from "./looks.mjs"

/** @typedef {import("./harness.mjs").User} User */

/** The browser of this file. @type {Browser} */
export let browser
/** The server of this file or of this test. @type {Galley} */
export let galley

/**
 * Starts a browser for the file, and a server for the file or for each test. Closes all windows after
 * each test. A test fails if one of its pages threw an exception or violated its content security policy.
 *
 * @param {{ per?: "file" | "test", settings?: Record<string, string> }} [options]
 */
export function withGalley({ per = "file", settings = {} } = {}) {
  const [start, stop] = per === "file" ? [before, after] : [beforeEach, afterEach]
  before(async () => {
    browser = await Browser.start()
  })
  start(async () => {
    galley = await Galley.start(settings)
  })
  afterEach((test) => /** @type {any} */ (test).passed || browser.report(failureOf(test.name)))
  afterEach(() => browser.clear())
  stop(() => galley.stop())
  // The last hook of a test: a failed hook skips those behind it.
  afterEach(() => browser.assertContent())
  after(() => browser.stop())
}

/** The folder of a failed test; `tests/run` names its own. @param {string} name */
export const failureOf = (name) => {
  const file = basename(process.argv[1] ?? "").split(".")[0] ?? ""
  return join(process.env.GALLEY_FAILURES ?? "target/failures", `${file}-${name}`.replaceAll(/[^\w가-힣.-]+/g, "_").slice(0, 120))
}

/** Stops the server of this test and takes another in its place. @param {Galley} server */
export async function replaceGalley(server) {
  await galley.stop()
  galley = server
}

/**
 * A document with its writer and its reviewer at their desks.
 *
 * @param {string} text
 * @param {import("./harness.mjs").UserOptions} [ofWriter]
 * @param {import("./harness.mjs").UserOptions} [ofReviewer]
 * @param {[string, string]} [names]
 */
export async function bothSeated(text, ofWriter = {}, ofReviewer = ofWriter, names = ["김민수", "이서연"]) {
  const [writer, reviewer] = [await browser.newUser(galley, ofWriter), await browser.newUser(galley, ofReviewer)]
  await writer.begin(names[0], text)
  await reviewer.join(writer, names[1])
  return { writer, reviewer }
}

/** Each width and each scheme: no layout depends on the scheme. The other tests have a wide and light window. */
const LOOKS = /** @type {const} */ ([[360, "dark"], [768, "light"], [1440, "dark"]]).slice(0, process.env.GALLEY_SHORT ? 1 : 3)

/**
 * Shows a page in each of them, one after the other, and leaves it as it was.
 *
 * @param {User} user
 * @param {(look: { width: number, scheme: "light" | "dark" }) => Promise<void>} each
 */
export async function inEachLook(user, each) {
  const { page } = user
  const before = page.viewportSize()
  for (const [width, scheme] of LOOKS) {
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" })
    await user.resize({ width, height: width < 600 ? 740 : 900 })
    await each({ width, scheme })
  }
  await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" })
  if (before) await user.resize(before)
}

/** Holds that no element overflows the window, or `selector`. @param {User} user @param {string} name @param {string} [selector] */
export async function assertFits(user, name, selector = "html") {
  await user.shot(name)
  const tooWide = () =>
    user.page.locator(selector).evaluate((element) => {
      const room = element === document.documentElement ? innerWidth : element.clientWidth
      return element.scrollWidth - room
    })
  // The page lays out absolute positions one frame after the narrower one.
  await until(async () => (await tooWide()) <= 0, `${name} fits`, () => outside(user, selector))
}

/** The elements that end to the right of `selector`, for the message of a failure. @param {User} user @param {string} selector */
async function outside({ page }, selector) {
  const found = await page.locator(selector).evaluate((element) => {
    const edge = element === document.documentElement ? innerWidth : element.getBoundingClientRect().left + element.clientLeft + element.clientWidth
    return [...element.querySelectorAll("*")]
      .filter((inner) => inner.checkVisibility() && edge < inner.getBoundingClientRect().right)
      .map((inner) => `${inner.outerHTML.slice(0, 120)} ends at ${inner.getBoundingClientRect().right} of ${edge} px`)
  })
  return found.slice(0, 12).join("\n")
}

/** How many presses of Tab lead once through a page of these tests, at most. */
const TABS_MAX = 80

/** Tabs until that has the focus, once it is there. @param {User} user @param {string} selector */
export async function tabTo({ page }, selector) {
  await page.locator(selector).filter({ visible: true }).first().waitFor()
  for (let step = 0; step < TABS_MAX; step++) {
    if (await page.evaluate((wanted) => document.activeElement?.matches(wanted), selector)) return
    await page.keyboard.press("Tab")
  }
  assert.fail(`Tab does not lead to ${selector}`)
}

/** A background tab draws no frame for seconds, and a stopped clock none at all. In ms. */
const FRAMES_WITHIN = 250

/** Axe reports no violation. @param {User} user @param {string} name */
export async function assertAccessible({ page }, name) {
  // Axe reads computed colors, and a look has them after its next frames.
  await Promise.race([drawn({ page }).catch(() => undefined), setTimeout(FRAMES_WITHIN)])
  assert.deepEqual(await violationsNow(page), [], name)
}
