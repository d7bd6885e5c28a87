// @ts-check
/**
 * A real server, a real browser, and users of both.
 *
 * Each user is a browser context with its own cookies and storage. An exception or a violation of the
 * content security policy on a page fails the test that caused it.
 */

import assert from "node:assert/strict"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

import { buildSync } from "esbuild"
import { chromium } from "playwright-core"

import { Galley } from "../stock/galley.mjs"
import { Redis, freePort } from "../stock/redis.mjs"

export { Galley, Redis, freePort }

/** The browser's launcher, for tests that start another one. */
export const browserPath = process.env.GALLEY_CHROMIUM ?? "/usr/bin/chromium-headless-shell"

/** The folder of screenshots. Without it the harness takes none: they cost half of the time. */
const shots = process.env.GALLEY_SHOTS

/** The bound of every wait for a page, also on a busy machine. */
export const TIMEOUT_MS = 120_000
/** A page that does not answer has no picture. */
const SCREENSHOT_MS = 5_000

/** @typedef {import("playwright-core").BrowserContextOptions & { hasClock?: boolean }} UserOptions `hasClock`: the test stops and runs the page's timers */

/** Characters of a title, as in `static/js/start/main.ts`. */
const TITLE_MAX = 60

/**
 * Gives each page `source(NAME)`: a module of `static/js/lib`, which no bundle names. A module is loaded when
 * a test asks for it. `i18n` is the page's own, among the modules of its bundle.
 */
const SOURCE = buildSync({
  bundle: true,
  format: "iife",
  stdin: {
    resolveDir: fileURLToPath(new URL("../../static/js/lib", import.meta.url)),
    contents: `
      const modules = {
        announce: () => import("./announce.ts"),
        api: () => import("./api.ts"),
        notify_api: () => import("./notify_api.ts"),
        offers_api: () => import("./offers_api.ts"),
        partners_api: () => import("./partners_api.ts"),
        async i18n() {
          for (const { href } of document.querySelectorAll("link[rel=modulepreload]")) {
            const i18n = Object.values(await import(href)).find((it) => typeof it?.setLanguage === "function")
            if (i18n) return { i18n }
          }
        },
      }
      globalThis.source = (name) => modules[name]()
    `,
  },
  write: false,
}).outputFiles[0]?.text

export class Browser {
  static async start() {
    return new Browser(
      await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] }),
    )
  }

  /** @param {import("playwright-core").Browser} chromium */
  constructor(chromium) {
    this.chromium = chromium
    /** @type {string[]} */
    this.errors = []
    /** The messages of the pages of this test to their consoles. @type {string[]} */
    this.said = []
  }

  /**
   * A new user with a window of its own.
   *
   * @param {Galley} galley
   * @param {UserOptions} [options]
   */
  async newUser(galley, { hasClock = false, ...options } = {}) {
    const context = await this.chromium.newContext({
      locale: "en-GB",
      viewport: { width: 1440, height: 900 },
      reducedMotion: "reduce",
      permissions: ["clipboard-read", "clipboard-write"],
      ...options,
    })
    context.setDefaultTimeout(TIMEOUT_MS)
    context.on("console", (message) => this.said.push(`${message.type()}: ${message.text()}`))
    if (process.env.GALLEY_TRACE) await context.tracing.start({ screenshots: true, snapshots: true })
    await context.addInitScript({ content: SOURCE })
    await context.exposeBinding("complain", (_source, what) => this.errors.push(what))
    await context.addInitScript(() => {
      document.addEventListener("securitypolicyviolation", (event) => {
        const { violatedDirective, blockedURI, sourceFile, lineNumber } = event
        // @ts-expect-error -- the binding above
        globalThis.complain(`policy: ${violatedDirective} ${blockedURI} ${sourceFile}:${lineNumber}`)
      })
    })
    context.on("weberror", (error) => this.errors.push(`page: ${error.error().stack}`))
    if (hasClock) await context.clock.install()
    return new User(galley, await context.newPage())
  }

  /**
   * Writes for the reader of a failure what each page shows and has said, what the servers have logged, and with
   * `GALLEY_TRACE` its trace for `npx playwright show-trace`.
   *
   * @param {string} folder
   */
  async report(folder) {
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, "console.txt"), `${this.said.join("\n")}\n`)
    for (const { port, log } of Galley.started) writeFileSync(join(folder, `server-${port}.log`), log)
    for (const [user, context] of this.chromium.contexts().entries()) {
      for (const [at, page] of context.pages().entries()) {
        await page.screenshot({ path: join(folder, `${user}-${at}.png`), timeout: SCREENSHOT_MS }).catch(() => undefined)
      }
      if (process.env.GALLEY_TRACE) await context.tracing.stop({ path: join(folder, `${user}.zip`) }).catch(() => undefined)
    }
  }

  /** Closes every window. An open window keeps working and slows the next tests. */
  async clear() {
    this.said.length = 0
    await Promise.all(this.chromium.contexts().map((context) => context.close()))
  }

  async stop() {
    await this.chromium.close()
  }

  /** Fails on any error that a page has reported so far. */
  assertContent() {
    const errors = this.errors.splice(0)
    assert.deepEqual(errors, [])
  }
}

export class User {
  /** @param {Galley} galley @param {import("playwright-core").Page} page */
  constructor(galley, page) {
    this.galley = galley
    this.page = page
  }

  /** From the start page to the desk, as a writer does. @param {string} name @param {string} text */
  async paste(name, text) {
    const { page } = this
    await page.goto(this.galley.url)
    await page.locator("#name").fill(name)
    await page.locator("#way-paste").click()
    await page.locator("#paste-text").fill(text)
    await page.locator("#paste button[type=submit]").click()
    await this.seated()
  }

  /**
   * A new guest's document at its desk: what `paste` leaves, without a load of the start page.
   *
   * @param {string} name @param {string} text
   */
  async begin(name, text) {
    await this.#post("/api/auth/guest", { name })
    const { id } = await this.#post("/api/documents", { title: titleOf(text), text })
    await this.page.goto(`${this.galley.url}/d/${id}`)
    await this.seated()
  }

  /** The reviewer at the desk of a document: what `follow` leaves, without the menu of the writer and the gate. @param {User} writer @param {string} name */
  async join(writer, name) {
    const { id, invite } = await writer.#post(`/api/documents/${writer.id}/share-link`, {})
    await this.#post("/api/auth/guest", { name })
    await this.#post(`/api/share-links/${id}/join`, { invite: invite.token })
    await this.page.goto(invite.url)
    await this.seated()
  }

  /** A request of this user, beside the page. @param {string} path @param {object} data */
  async #post(path, data) {
    const headers = { origin: this.galley.url }
    const response = await this.page.context().request.post(this.galley.url + path, { data, headers })
    assert.ok(response.ok(), `${path}: ${response.status()}`)
    return response.json()
  }

  /** Copies the invite, by the menu. @returns {Promise<string>} */
  invite() {
    return this.copied(async () => {
      await openMenu(this, "#menu")
      await this.page.locator("#menu-panel").getByRole("button", { name: /Copy the invite|초대 링크 복사/ }).click()
    })
  }

  /** The text that the action copies. @param {() => Promise<unknown>} act @returns {Promise<string>} */
  async copied(act) {
    await this.page.evaluate(() => navigator.clipboard.writeText(""))
    await act()
    let text = ""
    await until(async () => (text = await this.page.evaluate(() => navigator.clipboard.readText())) !== "", "something is copied")
    return text
  }

  /** Follows an invite, as a guest does. @param {string} url @param {string} name */
  async follow(url, name) {
    await this.page.goto(url)
    await this.page.locator("#entry-name").fill(name)
    await this.page.locator("#entry-dialog button[type=submit]").click()
  }

  /** The id that ends the page's address: of the document, or of the share link. */
  get id() {
    return new URL(this.page.url()).pathname.split("/").pop() ?? ""
  }

  /** The text of the writer's document as the server has it. @param {string} [query] */
  async stored(query = "") {
    return (await this.page.request.get(`${this.galley.url}/api/documents/${this.id}/text${query}`)).text()
  }

  /** The caret stands at the end of the text. */
  async toEnd() {
    // In a background tab a click waits for frames that hardly come.
    await this.page.bringToFront()
    await this.page.locator(".cm-content").click()
    await this.page.keyboard.press("Control+End")
  }

  /** @param {string} text */
  async typeAtEnd(text) {
    await this.toEnd()
    await this.page.keyboard.type(text)
  }

  /** No timer of the page runs by itself until its clock resumes. It needs `hasClock`. */
  async stopClock() {
    await this.page.clock.pauseAt((await this.page.evaluate(() => Date.now())) + 1_000)
  }

  /** Waits until the page holds its seat and shows the text. */
  async seated() {
    await this.page.locator("#saved[data-kind=saved]").waitFor()
  }

  /** @returns {Promise<string>} the text as it stands in the editor */
  text() {
    return this.page.evaluate(() =>
      [...document.querySelectorAll(".cm-line")]
        .map((line) => {
          const copy = /** @type {HTMLElement} */ (line.cloneNode(true))
          // The other's caret, the new words of a suggestion, and all else that is drawn into the text and no part of it.
          for (const drawn of copy.querySelectorAll("[contenteditable=false], .cm-widgetBuffer")) drawn.remove()
          return copy.textContent
        })
        .join("\n"),
    )
  }

  /** @returns {Promise<string>} the writer's text, also on the page of a reviewer whose suggestions stand in it */
  base() {
    return this.page.evaluate(() =>
      [...document.querySelectorAll(".cm-line")]
        .map((line) => {
          const copy = /** @type {HTMLElement} */ (line.cloneNode(true))
          for (const drawn of copy.querySelectorAll("ins.passage-new, [contenteditable=false]:not(.passage-old), .cm-widgetBuffer")) drawn.remove()
          return copy.textContent
        })
        .join("\n"),
    )
  }

  /** Waits until the text is that. @param {string} wanted */
  waitForText(wanted) {
    return until(async () => (await this.text()) === wanted, wanted, () => this.text())
  }

  /** The same of the writer's text. @param {string} wanted */
  waitForBase(wanted) {
    return until(async () => (await this.base()) === wanted, wanted, () => this.base())
  }

  /**
   * Selects the first occurrence, as a mouse would. The editor receives a selection one task later,
   * and restores its own if it draws before that. So the harness reads it after the draw.
   *
   * @param {string} quote
   */
  async select(quote) {
    await until(async () => {
      const found = await this.#selectOnce(quote)
      assert.notEqual(found, "missing", `“${quote}” is not in the text`)
      return found === "selected"
    }, `“${quote}” is selected`)
  }

  /** @param {string} quote @returns {Promise<"missing" | "selected" | "undone">} */
  #selectOnce(quote) {
    return this.page.evaluate(async (wanted) => {
      const content = /** @type {HTMLElement} */ (document.querySelector(".cm-content"))
      content.focus()
      /** @type {{ node: Node, from: number }[]} */
      const pieces = []
      let text = ""
      const walker = document.createTreeWalker(content, NodeFilter.SHOW_TEXT)
      for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        if (node.parentElement?.closest("[contenteditable=false]")) continue
        pieces.push({ node, from: text.length })
        text += node.nodeValue
      }
      const from = text.indexOf(wanted)
      const [start, end] = [from, from + wanted.length].map((at, side) => {
        const piece = pieces.findLast((piece) => (side === 0 ? piece.from <= at : piece.from < at))
        return piece && { node: piece.node, at: at - piece.from }
      })
      if (from === -1 || !start || !end) return "missing"
      const selection = /** @type {Selection} */ (getSelection())
      selection.setBaseAndExtent(start.node, start.at, end.node, end.at)
      for (let frames = 0; frames < 3; frames += 1) await new Promise(requestAnimationFrame)
      // The editor may have restored another selection than an empty one.
      const selected = selection.rangeCount === 0 ? null : selection.getRangeAt(0).cloneContents()
      for (const drawn of selected?.querySelectorAll("[contenteditable=false]") ?? []) drawn.remove()
      return document.activeElement === content && selected?.textContent === wanted ? "selected" : "undone"
    }, quote)
  }

  /** @param {string} quote @param {{ body?: string, suggestion?: string }} review */
  async review(quote, { body, suggestion }) {
    const { page } = this
    await this.select(quote)
    const which = suggestion === undefined ? "Comment" : "Suggest"
    await page.locator("#selection-bar").getByRole("button", { name: which }).click()
    if (suggestion !== undefined) await page.locator(".review-form .prose").fill(suggestion)
    if (body !== undefined) await page.locator(".review-form textarea:not(.prose)").fill(body)
    await page.locator(".review-form button[type=submit]").click()
    await page.locator(".card-draft").waitFor({ state: "detached" })
  }

  /**
   * Creates reviews by the API, without the page's form.
   *
   * @param {string} text of the document @param {readonly { quote: string | null, body?: string, suggestion?: string }[]} reviews
   */
  async createReviews(text, reviews) {
    const placed = reviews.map(({ quote, ...words }) => {
      const start = text.indexOf(quote ?? "")
      return { body: "", ...words, anchor: quote === null ? null : { start, end: start + quote.length, quote } }
    })
    await this.page.evaluate(async (placed) => {
      const api = await source("api")
      const link = location.pathname.split("/").pop()
      for (let at = 0; at < placed.length; at += 20) await Promise.all(placed.slice(at, at + 20).map((review) => api.createReview(link, review)))
    }, placed)
  }

  /** The open card that says this. @param {string} text */
  card(text) {
    return this.page.locator("#cards .card", { hasText: text })
  }

  /** The notice below the bar. */
  get notice() {
    return this.page.locator("#notice")
  }

  /** Ends the renderer of the tab. @returns the protocol of the tab: Playwright drives no crashed page */
  async crash() {
    const crashed = this.page.waitForEvent("crash")
    const tab = await this.page.context().newCDPSession(this.page)
    tab.send("Page.crash").catch(() => undefined)
    await crashed
    return tab
  }

  /** Resizes the window, and waits until the page has followed: it hears of a media query with its next frame. @param {{ width: number, height: number }} size */
  async resize(size) {
    await this.page.setViewportSize(size)
    await drawn(this)
  }

  /** @param {string} name */
  async shot(name) {
    if (shots) await this.page.screenshot({ path: join(shots, `${name}.png`) })
  }
}

/** The title that the start page gives a pasted text. @param {string} text */
function titleOf(text) {
  const line = text.split("\n").find((line) => line.trim() !== "")?.trim() ?? ""
  return line.length <= TITLE_MAX ? line : `${line.slice(0, TITLE_MAX - 1)}…`
}

/** Waits until the page has drawn several frames: one of them shows the effect of an event. @param {Pick<User, "page">} user @param {number} [frames] */
export const drawn = ({ page }, frames = 3) =>
  page.evaluate(async (frames) => {
    for (let frame = 0; frame < frames; frame += 1) await new Promise(requestAnimationFrame)
  }, frames)

/** Waits until the timers of the page that end within `ms` have run: a page runs them in the order of their ends. @param {Pick<User, "page">} user @param {number} ms */
export const timersRun = ({ page }, ms) => page.evaluate((ms) => new Promise((done) => setTimeout(done, ms)), ms)

/** The number of edits in the browser's journal, of all users. @param {Pick<User, "page">} user */
export const journaledEdits = async (user) => (await journaled(user, "unsaved")).reduce((sum, { count }) => sum + count, 0)

/** The rows of a store of the browser. @param {Pick<User, "page">} user @param {"unsaved" | "suggestions"} store @returns {Promise<any[]>} */
export const journaled = ({ page }, store) =>
  page.evaluate(
    (store) =>
      new Promise((resolve) => {
        const request = indexedDB.open("galley")
        request.onsuccess = () => {
          const rows = request.result.transaction(store).objectStore(store).getAll()
          rows.onsuccess = () => {
            request.result.close()
            resolve(rows.result)
          }
        }
      }),
    store,
  )

/**
 * The box of an element in the window, once the page has drawn several frames without a change of it: cards and the
 * sheet are arranged with a frame after their cause, and again when their sizes have changed by that.
 *
 * @param {import("playwright-core").Locator} locator
 */
export function steadyBox(locator) {
  return locator.evaluate(async (element) => {
    for (let before = ""; ; ) {
      const { x, y, width, height } = element.getBoundingClientRect()
      const now = JSON.stringify([x, y, width, height])
      if (now === before) return { x, y, width, height }
      before = now
      for (let frames = 0; frames < 3; frames += 1) await new Promise(requestAnimationFrame)
    }
  })
}

/** Presses the head of a menu. @param {import("playwright-core").Locator} summary */
const click = (summary) => summary.click()

/** The same by the keyboard. @param {import("playwright-core").Locator} summary */
export const enter = (summary) => summary.press("Enter")

/** Opens a menu, if it is closed: a press on an open one would close it, and one on a head that moves is lost. @param {Pick<User, "page">} user @param {string} menu */
export async function openMenu({ page }, menu, press = click) {
  const summary = page.locator(`${menu} > summary`)
  await summary.waitFor()
  const isOpen = () => summary.evaluate((summary) => summary.parentElement instanceof HTMLDetailsElement && summary.parentElement.open)
  await until(async () => {
    if (!(await isOpen())) await press(summary)
    return isOpen()
  }, `${menu} is open`)
}

/**
 * Waits until it is true.
 *
 * @param {() => Promise<boolean>} condition
 * @param {string} what
 * @param {() => Promise<string>} [found] what there is instead, for the message of a failure
 */
export async function until(condition, what, found) {
  const deadline = Date.now() + TIMEOUT_MS
  while (!(await condition())) {
    if (deadline <= Date.now()) assert.fail(`waited in vain: ${what}${found ? `\n${await found()}` : ""}`)
    await new Promise((done) => setTimeout(done, 50))
  }
}
