/** The menu of every page: language, appearance, and what the page adds. Owns one element. */

import { byId, drawWith, el, sayAgain } from "../lib/dom.ts"
import { i18n, languages, translateAll, type Language, type Sentence } from "../lib/i18n.ts"
import { theme, useTheme, type Theme } from "../lib/theme.ts"

export type Group = [title: Sentence, ...entries: Element[]]

export class Menu {
  declare element
  declare panel
  declare language
  declare theme

  /**
   * @param groups what the page adds, above the choices
   * @param screen what it adds to the choices
   */
  constructor(groups: Group[] = [], screen: HTMLElement[] = []) {
    this.element = byId("menu", HTMLDetailsElement)
    this.panel = byId("menu-panel")
    const spoken = Object.entries(languages).map(([value, text]) => el("option", { value, lang: value, text }))
    this.language = this.#choice("language.switch", spoken, i18n.language)
    const themes = ["auto", "light", "dark"].map((value) => el("option", { value, "data-t": `theme.${value}` }))
    this.theme = this.#choice("theme.switch", themes, theme())
    const choices = [this.language, this.theme].map((select) => select.parentElement as Element)
    this.panel.replaceChildren(...groups.map(group), group(["menu.screen", ...choices, ...screen]))
  }

  start(signal?: AbortSignal) {
    this.language.addEventListener("change", () => void this.#speak(), { signal })
    this.theme.addEventListener("change", () => useTheme(this.theme.value as Theme), { signal })
    closeByItself(this.element, signal)
    const translate = () => {
      translateAll(document)
      sayAgain()
    }
    drawWith([], translate, signal)
  }

  #choice(label: Sentence, options: HTMLOptionElement[], now: string) {
    const select = el("select", {}, ...options)
    select.value = now
    el("label", { class: "choice" }, el("span", { "data-t": label }), select)
    return select
  }

  async #speak() {
    try {
      await i18n.setLanguage(this.language.value as Language)
    } catch {
      // The server did not send the sentences: the page stays in its language.
      this.language.value = i18n.language
    }
  }
}

function group([title, ...entries]: Group) {
  return el("div", { class: "menu-group", role: "group", "data-t-label": title }, el("p", { class: "menu-title", "data-t": title }), ...entries)
}

/** Closes a menu by a press outside, by Esc, and by its entries. */
export function closeByItself(menu: HTMLDetailsElement, signal?: AbortSignal) {
  const close = () => {
    menu.querySelector("summary")?.focus()
    menu.open = false
  }
  document.addEventListener("pointerdown", ({ target }) => {
    if (target instanceof Node && !menu.contains(target)) menu.open = false
  }, { signal })
  // The document receives the key: a list that is drawn again may take the focus out of the menu.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.isComposing || !menu.open) return
    event.stopPropagation()
    close()
  }, { signal, capture: true })
  // Before the entry acts: a dialog that it opens gives the focus back to the menu, not to a hidden entry.
  menu.addEventListener("click", ({ target }) => target instanceof Element && target.closest(".menu-panel :is(button, a)") && close(), { signal, capture: true })
}
