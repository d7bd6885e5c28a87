/**
 * The panel that searches the text and replaces in it, for both roles: what a reviewer replaces is a suggestion. The
 * browser's own search finds only the lines that the editor draws.
 */

import type { StateEffectType } from "@codemirror/state"
import type { ViewUpdate } from "@codemirror/view"
import { showToast } from "../lib/announce.ts"
import { el, translatedButton } from "../lib/dom.ts"
import { i18n, number, t, type Sentence } from "../lib/i18n.ts"
import {
  closeSearchPanel,
  EditorSelection,
  EditorView,
  findNext,
  findPrevious,
  keymap,
  openSearchPanel,
  replaceAll,
  replaceNext,
  search,
  searchPanelOpen,
  setSearchQuery,
  StateEffect,
} from "../lib/vendor.ts"
import { MATCHES_MAX, matchesOf, matchFrom, queryOf, type Match } from "./find_query.ts"

/** Does an edit as one undo step; answers what takes it back. */
type AsOneStep = (act: () => void) => () => void

/** Matches are counted when the hands rest for so long, in ms. */
const PAUSE = 150
/** The longest selection that becomes the words to search for, in UTF-16 units. */
const SELECTION_MAX = 100

/** A search selects a match, perhaps with a change of the text: the view has positions of the text before. */
const found: StateEffectType<null> = StateEffect.define()

class FindPanel {
  declare view: EditorView
  declare asOneStep: AsOneStep
  declare query
  declare anchor: number
  declare field
  declare other
  declare count
  declare replacing
  declare dom
  top = true
  #stopped = new AbortController()
  #timer = 0
  #matches: Match[] = []

  constructor(view: EditorView, asOneStep: AsOneStep) {
    this.view = view
    this.asOneStep = asOneStep
    this.query = queryOf({ search: "", replace: "", caseSensitive: false })
    this.anchor = 0
    const given = { type: "text", autocomplete: "off", spellcheck: "false" }
    this.field = el("input", { ...given, ...named("find.field"), "main-field": "true", enterkeyhint: "search" })
    this.other = el("input", { ...given, ...named("find.other") })
    this.count = el("output", { class: "find-count", role: "status" })
    const matchCase = translatedButton("find.case", {}, () => {
      this.#commit({ caseSensitive: !this.query.caseSensitive })
      matchCase.ariaPressed = String(this.query.caseSensitive)
    })
    matchCase.ariaPressed = "false"
    const find = el(
      "div",
      { class: "find-row" },
      this.field,
      this.count,
      matchCase,
      translatedButton("find.previous", {}, () => void findPrevious(view)),
      translatedButton("find.next", {}, () => void findNext(view)),
      translatedButton("common.close", {}, () => void closeSearchPanel(view)),
    )
    const replace = translatedButton("find.replace", {}, () => this.#replace())
    const every = translatedButton("find.replace.all", {}, () => this.#replaceAll())
    this.replacing = el("div", { class: "find-row" }, this.other, replace, every)
    this.replacing.hidden = view.state.readOnly
    const title = { "data-t-label": "find.title", "aria-label": t("find.title") }
    this.dom = el("div", { class: "find", role: "search", ...title }, find, this.replacing)
    this.#draw()
    this.#listen()
  }

  mount() {
    this.field.focus()
    this.field.select()
  }

  /** The selection becomes what is searched for. Not at `mount`: the editor is in the middle of an update. */
  begin() {
    this.anchor = this.view.state.selection.main.from
    this.field.value = selected(this.view) || this.field.value
    this.#commit()
    this.mount()
  }

  update(update: ViewUpdate) {
    const mayReplace = !update.state.readOnly
    if (this.replacing.hidden === mayReplace) this.replacing.hidden = !mayReplace
    if (update.docChanged || update.selectionSet) this.#countSoon()
    this.anchor = update.changes.mapPos(this.anchor)
    const isFound = update.transactions.some(({ effects }) => effects.some((effect) => effect.is(found)))
    // The editor has the layout of the new text once the update is over.
    if (isFound) queueMicrotask(() => this.#showMatch())
  }

  destroy() {
    this.#stopped.abort()
    window.clearTimeout(this.#timer)
  }

  #listen() {
    const { signal } = this.#stopped
    this.field.addEventListener("input", () => this.#searched(), { signal })
    this.other.addEventListener("input", () => this.#commit(), { signal })
    this.dom.addEventListener("keydown", (event) => this.#key(event), { signal })
    i18n.addEventListener("change", () => this.#draw(), { signal })
  }

  #key(event: KeyboardEvent) {
    if (event.isComposing) return
    const isNext = event.key === "F3" || ((event.ctrlKey || event.metaKey) && event.code === "KeyG")
    const isEnter = event.key === "Enter" && event.target === this.field
    if (event.key === "Escape") closeSearchPanel(this.view)
    else if (isNext || isEnter) (event.shiftKey ? findPrevious : findNext)(this.view)
    else if (event.key === "Enter" && event.target === this.other) this.#replace()
    else return
    event.preventDefault()
  }

  #commit({ caseSensitive = this.query.caseSensitive }: { caseSensitive?: boolean } = {}) {
    this.query = queryOf({ search: this.field.value, replace: this.other.value, caseSensitive })
    this.view.dispatch({ effects: setSearchQuery.of(this.query) })
    this.#countSoon()
  }

  /** As the words are typed, the first match from where the search began is shown. */
  #searched() {
    this.#commit()
    const match = matchFrom(matchesOf(this.query, this.view.state), this.anchor)
    if (!match) return
    this.view.dispatch({ selection: EditorSelection.single(match.from, match.to), effects: found.of(null), userEvent: "select.search" })
  }

  /** In the middle of the window, unless it is in view. */
  #showMatch() {
    const range = this.view.state.selection.main
    const at = this.view.coordsAtPos(range.from)
    const isInView = at && this.dom.getBoundingClientRect().bottom < at.top && at.bottom < window.innerHeight - 90
    this.view.dispatch({ effects: EditorView.scrollIntoView(range, { y: isInView ? "nearest" : "center" }) })
  }

  #replace() {
    this.asOneStep(() => replaceNext(this.view))
  }

  #replaceAll() {
    const count = matchesOf(this.query, this.view.state).length
    if (count === 0) return
    const before = this.view.state.doc
    const takeBack = this.asOneStep(() => replaceAll(this.view))
    if (this.view.state.doc === before) return
    const sentence = t("find.replaced", { count: numberOf(count) })
    showToast(sentence, { text: t("common.undo"), act: takeBack })
  }

  #countSoon() {
    window.clearTimeout(this.#timer)
    this.#timer = window.setTimeout(() => {
      this.#matches = matchesOf(this.query, this.view.state)
      this.#draw()
    }, PAUSE)
  }

  #draw() {
    const { main } = this.view.state.selection
    const at = this.#matches.findIndex(({ from, to }) => from === main.from && to === main.to)
    const count = numberOf(this.#matches.length)
    const isEmpty = !this.query.valid
    this.count.textContent =
      isEmpty ? "" : this.#matches.length === 0 ? t("find.none") : at === -1 ? t("find.count", { count }) : t("find.at", { at: number(at + 1), count })
    this.count.dataset.none = String(!isEmpty && this.#matches.length === 0)
  }
}

/** Its name and its placeholder. */
const named = (of: Sentence) => ({ "data-t-label": of, "aria-label": t(of), "data-t-hint": of, placeholder: t(of) })

const numberOf = (count: number) => (MATCHES_MAX < count ? `${number(MATCHES_MAX)}+` : number(count))

/** The selection, if it is words to search for. */
function selected({ state }: EditorView) {
  const { from, to } = state.selection.main
  const text = to - from <= SELECTION_MAX ? state.sliceDoc(from, to) : ""
  return text.includes("\n") ? "" : text
}

/** The search of one editor. */
export class Find {
  declare extension
  #panel: FindPanel | null = null
  /** The words of the last search. */
  #last = ""

  constructor(asOneStep: AsOneStep) {
    const step = (command: typeof findNext) => (view: EditorView) =>
      searchPanelOpen(view.state) ? command(view) : this.open(view)
    const both = { run: step(findNext), shift: step(findPrevious), preventDefault: true }
    const createPanel = (view: EditorView) => {
      this.#last = this.#panel?.query.search ?? this.#last
      this.#panel = new FindPanel(view, asOneStep)
      this.#panel.field.value = this.#last
      return this.#panel
    }
    this.extension = [
      search({ top: true, literal: true, createPanel, scrollToMatch: () => found.of(null) }),
      keymap.of([{ key: "F3", ...both }, { key: "Mod-g", ...both }, { key: "Escape", run: closeSearchPanel }]),
    ]
  }

  /** Opens the panel, or returns into it. */
  open(view: EditorView) {
    if (!searchPanelOpen(view.state)) openSearchPanel(view)
    this.#panel?.begin()
    return true
  }
}

/** The sentences of the library. */
export const findPhrases = () => ({
  "current match": t("find.phrase.match"),
  "on line": t("find.phrase.line"),
  "replaced match on line $": t("find.phrase.replaced"),
  "replaced $ matches": t("find.phrase.replaced.all"),
})
