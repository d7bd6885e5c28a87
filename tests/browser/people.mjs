// @ts-check
/** Users of the start page, and their partners, for tests in the browser. */

import assert from "node:assert/strict"
import { setTimeout } from "node:timers/promises"

import { until } from "./harness.mjs"
import { browser, galley } from "./support.mjs"

/** @typedef {import("./harness.mjs").User} User */

/** Handles are the server's: each test has its own. */
export let pairs = 0

/**
 * A guest on the start page.
 *
 * @param {string} name
 * @param {import("playwright-core").BrowserContextOptions} [options]
 */
export async function newUser(name, options = {}) {
  const user = await browser.newUser(galley, { viewport: { width: 1280, height: 720 }, ...options })
  const headers = { origin: galley.url }
  const entered = await user.page.context().request.post(`${galley.url}/api/auth/guest`, { data: { name }, headers })
  assert.ok(entered.ok(), await entered.text())
  await user.page.goto(galley.url)
  await user.page.locator("#partners-none").waitFor()
  return user
}

/** A call of the user's page. @param {User} user @param {string} name @param {...unknown} given @returns {Promise<any>} */
export const call = (user, name, ...given) =>
  user.page.evaluate(async ([name, given]) => {
    const api = await source("api")
    const people = await source("partners_api")
    return (people[name] ?? api[name])(...given)
  }, /** @type {[string, any[]]} */ ([name, given]))

/** @param {User} user @param {string} handle */
export async function choose({ page }, handle) {
  await page.locator("#address-open").click()
  await page.locator("#address-handle").fill(handle)
  await page.locator("#address-save").click()
}

/** Two users with handles. @param {import("playwright-core").BrowserContextOptions} [options] */
export async function two(options) {
  pairs += 1
  const [kim, lee] = await Promise.all([newUser("Kim", options), newUser("Lee", options)])
  const handles = { kim: `kim_${pairs}`, lee: `서연_${pairs}` }
  await Promise.all([call(kim, "setHandle", handles.kim), call(lee, "setHandle", handles.lee)])
  return { kim, lee, handles }
}

/** Fills the form. @param {User} user @param {string} to */
export async function write(user, to) {
  const { page } = user
  await askIsIdle(user)
  await page.locator("#ask-open").click()
  await page.locator("#ask-to").fill(to)
}

/** Waits until the form of requests is not sending: a press before that has no effect. @param {User} user */
export const askIsIdle = ({ page }) => page.locator("#ask-go:not([aria-busy])").waitFor({ state: "attached" })

/** Waits for a passing sentence: from before what causes it, it goes soon. @param {User} user @param {string} sentence */
export const says = ({ page }, sentence) => page.locator("#toast").getByText(sentence).first().waitFor()

/** @param {User} user @param {string} selector */
export const hasFocus = ({ page }, selector) =>
  until(() => page.evaluate((wanted) => document.activeElement?.matches(wanted) ?? false, selector), `the focus is on ${selector}`)

/** @param {User} user @param {string} name */
export const partner = ({ page }, name) => page.locator("#partners-list li", { hasText: name })

/** @param {User} sender @param {User} receiver @param {string} to the handle of the receiver */
export async function becomePartners(sender, receiver, to) {
  const { id } = await call(sender, "sendRequest", { to: `@${to}`, as: "writer" })
  await call(receiver, "acceptRequest", id)
}

/** The page reads its lists, as a window does that is in front again. @param {User} user */
export const readAgain = ({ page }) => page.evaluate(() => void document.dispatchEvent(new Event("visibilitychange")))

/**
 * Waits for what the other's page has sent, and reads the lists meanwhile: the page itself would read them with its
 * next poll, seconds later.
 *
 * @template T @param {User} user @param {Promise<T>} arrival @returns {Promise<T>}
 */
export async function reading(user, arrival) {
  let isOver = false
  const over = arrival.finally(() => (isOver = true))
  // A failure is the caller's.
  over.catch(() => undefined)
  while (!isOver) {
    await readAgain(user)
    await Promise.race([over, setTimeout(READ_EVERY)]).catch(() => undefined)
  }
  return over
}

/** In ms. */
const READ_EVERY = 300

/**
 * Holds the next answer from an address.
 *
 * @param {User} user
 * @param {RegExp} address
 * @param {() => Promise<unknown>} act causes the request
 * @returns {Promise<() => Promise<void> | undefined>} releases the answer
 */
export async function holdAnswer({ page }, address, act) {
  /** @type {(() => Promise<void>)[]} */
  const held = []
  const hold = async (/** @type {import("playwright-core").Route} */ route) => {
    const response = await route.fetch()
    held.push(() => route.fulfill({ response }))
  }
  await page.route(address, hold, { times: 1 })
  await act()
  await until(async () => held.length === 1, "the answer is held")
  return () => held[0]?.()
}
