// @ts-check
/** A page with an editor and no server: a case takes milliseconds, so a table of cases can have all of them. */

import { fileURLToPath } from "node:url"

import { buildSync } from "esbuild"

import { Browser } from "./harness.mjs"

/** @typedef {import("./editor_alone.page.mjs").Layout} Layout */

const SCRIPT = buildSync({ bundle: true, charset: "utf8", format: "iife", entryPoints: [fileURLToPath(new URL("editor_alone.page.mjs", import.meta.url))], write: false }).outputFiles[0]?.text ?? ""

export class EditorAlone {
  /** @param {Browser} browser @param {import("playwright-core").BrowserContextOptions} [options] */
  static async open(browser, options) {
    const { page } = await browser.newUser(/** @type {any} */ (null), options)
    await page.setContent('<meta charset="utf-8"><div id="bar"></div><div id="toast"></div><div id="announcer"></div><div id="peer-place"></div><div id="text-counts-bar"></div><div id="paper" style="width: 700px"></div>')
    await page.addStyleTag({ content: ".peer-caret { border-left: 6px solid; position: relative } .peer-name { display: none }" })
    await page.addScriptTag({ content: SCRIPT })
    return new EditorAlone(page, await page.context().newCDPSession(page))
  }

  /** @param {import("playwright-core").Page} page @param {import("playwright-core").CDPSession} session */
  constructor(page, session) {
    this.page = page
    this.session = session
  }

  /** @param {Layout} layout */
  begin(layout) {
    return this.page.evaluate((layout) => alone.begin(layout), layout)
  }

  /** @param {number} anchor @param {number} [head] */
  select(anchor, head = anchor) {
    return this.page.evaluate(([anchor, head]) => alone.select(anchor, head), [anchor, head])
  }

  /** Composes texts, each in place of the one before, and ends the composition with the last. @param {...string} texts */
  async compose(...texts) {
    for (const text of texts) await this.session.send("Input.imeSetComposition", { text, selectionStart: text.length, selectionEnd: text.length })
    const last = texts.at(-1)
    if (last) await this.session.send("Input.insertText", { text: last })
  }

  /** The text of the editor, as it is shown, the shared text, the parts of suggestions, and the selection. */
  state() {
    return this.page.evaluate(async () => {
      await alone.frame()
      const lines = [...document.querySelectorAll(".cm-line")].map((line) => {
        const copy = /** @type {HTMLElement} */ (line.cloneNode(true))
        for (const drawn of copy.querySelectorAll("[contenteditable=false], .cm-widgetBuffer")) drawn.remove()
        return copy.textContent
      })
      return {
        text: /** @type {string} */ (alone.text()),
        shown: lines.join("\n"),
        shared: /** @type {string} */ (alone.shared()),
        parts: /** @type {[string, string][] | undefined} */ (alone.parts()),
        selection: /** @type {[number, number]} */ (alone.selection()),
      }
    })
  }
}
