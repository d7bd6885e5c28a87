// @ts-check
/** The menu of every page: language, appearance, and what the page adds. Owns one element. */

import { byId, el } from "../lib/dom.js"
import { i18n, languages, translateAll, t } from "../lib/i18n.js"
import { theme, useTheme } from "../lib/theme.js"

/**
 * @typedef {import("../lib/i18n.js").Language} Language
 * @typedef {import("../lib/theme.js").Theme} Theme
 */

export class Menu {
  #stopped = new AbortController()

  /** @param {HTMLElement[]} [extra] what the page adds, above the choices */
  constructor(extra = []) {
    this.element = byId("menu", HTMLDetailsElement)
    this.panel = byId("menu-panel")
    this.language = this.#choice("language.switch", Object.keys(languages), i18n.language)
    this.theme = this.#choice("theme.switch", ["auto", "light", "dark"], theme())
    this.panel.replaceChildren(...extra, this.language.parentElement ?? "", this.theme.parentElement ?? "")
  }

  start() {
    const { signal } = this.#stopped
    i18n.addEventListener("change", () => this.#translate(), { signal })
    this.language.addEventListener("change", () => i18n.setLanguage(/** @type {Language} */ (this.language.value)), { signal })
    this.theme.addEventListener("change", () => useTheme(/** @type {Theme} */ (this.theme.value)), { signal })
    document.addEventListener("pointerdown", (event) => this.#outside(event), { signal })
    this.element.addEventListener("keydown", (event) => this.#key(event), { signal })
    // Before the entry acts: a dialog that it opens gives the focus back to the menu, not to a hidden entry.
    this.panel.addEventListener("click", (event) => {
      if (!(event.target instanceof Element) || !event.target.closest("button, a")) return
      this.element.querySelector("summary")?.focus()
      this.element.open = false
    }, { signal, capture: true })
    this.#translate()
  }

  stop() {
    this.#stopped.abort()
  }

  /** @param {import("../lib/i18n.js").Sentence} label @param {string[]} values @param {string} now */
  #choice(label, values, now) {
    const select = el("select")
    select.append(...values.map((value) => el("option", { value })))
    select.value = now
    el("label", { class: "choice" }, el("span", { "data-t": label }), select)
    return select
  }

  #translate() {
    translateAll(document)
    for (const option of this.language.options) {
      option.textContent = languages[/** @type {Language} */ (option.value)]["language.name"]
      option.lang = option.value
    }
    for (const option of this.theme.options) {
      option.textContent = t(`theme.${/** @type {Theme} */ (option.value)}`)
    }
  }

  /** @param {Event} event */
  #outside(event) {
    if (event.target instanceof Node && !this.element.contains(event.target)) this.element.open = false
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.key !== "Escape" || !this.element.open) return
    event.stopPropagation()
    this.element.open = false
    this.element.querySelector("summary")?.focus()
  }
}
