// @ts-check
/** One user of the fuzz: a page, its way to the server, and an input method. */

import { fileURLToPath } from "node:url"

import { buildSync } from "esbuild"

import { until } from "./harness.mjs"
import { Path } from "./fuzz_path.mjs"
import { difference } from "./fuzz_rest.mjs"

/**
 * @typedef {import("./fuzz_acts.mjs").Role} Role
 * @typedef {import("./fuzz_acts.mjs").Target} Target
 * @typedef {import("./harness.mjs").User} User
 */

const READER = buildSync({ entryPoints: [fileURLToPath(new URL("./fuzz_page.mjs", import.meta.url))], bundle: true, format: "iife", write: false }).outputFiles[0]?.text

/** Batches in a report. */
const BATCHES = 12

/** An editor that has other letters than were entered. */
export class EntryFault extends Error {}

export class Hand {
  /** Whether no change of the other user, nor a decision, can reach the text of this page. */
  isAlone = true
  /** Groups of acts and checks that are left out. @type {readonly string[]} */
  without = []
  /** The last batches of suggestions and their answers, for a report. @type {string[]} */
  batches = []

  /** @param {Role} role @param {User} user @param {Path} path @param {import("playwright-core").CDPSession} session */
  constructor(role, user, path, session) {
    this.role = role
    this.user = user
    this.page = user.page
    this.path = path
    this.session = session
  }

  /** @param {Role} role @param {import("./harness.mjs").Browser} browser @param {import("./harness.mjs").Galley} galley */
  static async start(role, browser, galley) {
    const path = new Path()
    // Without the rule a browser uses no proxy for the loopback.
    const user = await browser.newUser(galley, { proxy: { server: await path.start(), bypass: "<-loopback>" } })
    await user.page.addInitScript({ content: READER })
    user.page.on("dialog", (dialog) => dialog.accept())
    const hand = new Hand(role, user, path, await user.page.context().newCDPSession(user.page))
    user.page.on("requestfinished", (request) => void (request.url().endsWith("/suggestions") && hand.#report(request)))
    return hand
  }

  /** @param {import("playwright-core").Request} request */
  async #report(request) {
    const answer = await request.response().then((response) => response?.text()).catch(() => "")
    this.batches = [...this.batches.slice(1 - BATCHES), `${request.postData()}\n  ${answer}`]
  }

  async stop() {
    await this.page.context().close()
    this.path.stop()
  }

  read() {
    return this.page.evaluate(() => fuzz.read())
  }

  /** Takes the focus out of the text. */
  leave() {
    return this.page.evaluate(() => fuzz.leave())
  }

  /** Puts the caret somewhere, or selects, by the document's selection, the mouse or keys. @param {Target} target */
  async select(target) {
    const { mouse, keyboard } = this.page
    const { how, length } = target
    const [start, end] = await this.page.evaluate((place) => fuzz.select(place), how === "keys" ? { ...target, length: 0 } : target)
    if (how === "keys") for (let step = 0; step < length; step += 1) await keyboard.press("Shift+ArrowRight")
    if (how !== "mouse" || !start || !end) return
    await this.page.evaluate(() => fuzz.holdPresses(true))
    await mouse.click(start.x, start.y)
    if (0 < length) {
      await keyboard.down("Shift")
      await mouse.click(end.x, end.y)
      await keyboard.up("Shift")
    }
    // Where an edit of the other user moved the text, the press went beside it, or selects once more.
    await this.page.evaluate(() => fuzz.settled().finally(() => fuzz.holdPresses(false)))
  }

  /** @param {string} text */
  paste(text) {
    return this.page.evaluate((text) => fuzz.paste(text), text)
  }

  selection() {
    return this.page.evaluate(() => fuzz.selection())
  }

  /** Enters a text at the selection, and holds that it alone is there then. @param {string} entered @param {() => Promise<unknown>} act */
  async enter(entered, act) {
    const { text, from, to } = await this.selection()
    await act()
    const wanted = text.slice(0, from) + entered + text.slice(to)
    const { text: seen, trace } = await this.selection()
    if (this.isAlone && seen !== wanted) throw new EntryFault(`the ${this.role} entered ${JSON.stringify(entered)} at ${from} to ${to}: ${difference(seen, wanted)}\n${trace}`)
  }

  /** Moves letters, and holds that none is lost. @param {() => Promise<unknown>} act */
  async keep(act) {
    const { text } = await this.selection()
    await act()
    const { text: seen } = await this.selection()
    if (this.isAlone && [...seen].sort().join("") !== [...text].sort().join("")) throw new EntryFault(`the ${this.role} moved letters: ${difference(seen, text)}`)
  }

  focus() {
    return this.page.evaluate(() => fuzz.focus())
  }

  /** @param {readonly (readonly string[])[]} syllables the steps of each @param {"commit" | "cancel" | "key"} ends */
  compose(syllables, ends) {
    const texts = syllables.map((steps) => steps.at(-1) ?? "")
    const entered = (ends === "cancel" ? texts.slice(0, -1) : texts).join("") + (ends === "key" ? " " : "")
    return this.enter(entered, () => this.#composeAll(syllables, ends))
  }

  /** @param {readonly (readonly string[])[]} syllables @param {"commit" | "cancel" | "key"} ends */
  async #composeAll(syllables, ends) {
    for (const [number, steps] of syllables.entries()) {
      for (const text of steps) await this.#composed(text)
      const isLast = number === syllables.length - 1
      if (isLast && ends === "cancel") await this.#composed("")
      else await this.session.send("Input.insertText", { text: steps.at(-1) ?? "" })
    }
    if (ends === "key") await this.page.keyboard.press("Space")
  }

  /** @param {string} text */
  #composed(text) {
    return this.session.send("Input.imeSetComposition", { text, selectionStart: text.length, selectionEnd: text.length })
  }

  /** Drags a selection with the mouse. @param {Target} from @param {Target} to */
  async drag(from, to) {
    const { mouse } = this.page
    const [start, end] = await this.page.evaluate((place) => fuzz.select(place), from)
    const goal = await this.page.evaluate((place) => fuzz.pointOf(place), to)
    // A selection over several lines has no middle to press.
    if (!start || !end || !goal || start.y !== end.y) return
    await mouse.move((start.x + end.x) / 2, start.y)
    await mouse.down()
    await mouse.move((start.x + goal.x) / 2, (start.y + goal.y) / 2)
    await mouse.move(goal.x, goal.y)
    await mouse.up()
  }

  /** @param {string} button */
  press(button) {
    return this.page.evaluate((button) => fuzz.press(button), button)
  }

  /** @param {string} list @param {number} at a fraction @param {string} button @param {number} [presses] */
  onCard(list, at, button, presses = 1) {
    return this.page.evaluate(([list, at, button, presses]) => fuzz.pressOnCard(list, at, button, presses), /** @type {const} */ ([list, at, button, presses]))
  }

  /** @param {"accept" | "reject"} verdict */
  decideAll(verdict) {
    return this.press(`[data-decide-all=${verdict}]`)
  }

  /** Discards the words of closed pages that the page offers. */
  async discard() {
    const offers = this.page.locator("#recovered-drafts > *")
    for (let left = await offers.count(); 0 < left; left -= 1) {
      await offers.last().getByRole("button").last().click()
      await this.press("#confirm[open] .button-danger")
    }
  }

  /** @param {import("./fuzz_page.mjs").Place} place */
  comment(place) {
    return this.page.evaluate((place) => fuzz.comment(place), place)
  }

  /** The connection is here again, and the page hears of it as of a network. */
  async open() {
    this.path.open()
    await this.page.evaluate(() => void dispatchEvent(new Event("online")))
  }

  /** Opens the page anew, once it has its seat and its text. */
  async reload() {
    await this.open()
    await this.page.reload()
    await this.ready()
  }

  async ready() {
    const shown = this.page.locator("#saved:is([data-kind=saved], [data-kind=saving], [data-kind=late])")
    await shown.waitFor()
    await until(() => this.page.evaluate(() => document.querySelector(".cm-content:not([aria-readonly=true])") !== null), `the ${this.role} may type`)
  }
}
