/**
 * The choice between the views of the text, in the menu of the margin's head, and a note above the text while it is not
 * shown as it is. Owns both elements.
 */

import { base } from "../desk/base_text.ts"
import type { Editor } from "../desk/editor.ts"
import { announce, showToast } from "../lib/announce.ts"
import { byId, el, isDrawn, translatedButton } from "../lib/dom.ts"
import { i18n, number, t } from "../lib/i18n.ts"
import { marked } from "./highlights.ts"
import { changeMenu } from "./margin_tabs.ts"
import { isSuggestion } from "./parts.ts"
import type { Reviews } from "./reviews.ts"
import { setView, shownView, applicableSuggestions, VIEWS, type View } from "./text_view.ts"

export class ViewMenu {
  declare editor: Editor
  declare reviews: Reviews
  declare element
  declare note
  declare sentence
  declare choices

  constructor(editor: Editor, reviews: Reviews) {
    this.editor = editor
    this.reviews = reviews
    this.element = byId("view")
    this.note = byId("view-note")
    this.sentence = el("p")
    this.note.replaceChildren(this.sentence, translatedButton("view.back", {}, () => this.#back()))
    this.choices = VIEWS.map((value) => el("input", { type: "radio", name: "view", value }))
    const labels = this.choices.map((choice) => el("label", {}, choice, el("span", { "data-t": `view.${choice.value}`, text: t(`view.${choice.value as View}`) })))
    this.element.append(...labels)
  }

  start(signal: AbortSignal) {
    for (const choice of this.choices) choice.addEventListener("change", () => this.#choose(choice.value as View), { signal })
    this.reviews.addEventListener("change", () => this.#draw(), { signal })
    i18n.addEventListener("change", () => this.#draw(), { signal })
    this.editor.view.contentDOM.addEventListener("beforeinput", () => this.#refuse(), { signal })
    this.#draw()
  }

  /** Chooses the view after this one. */
  next() {
    if (this.element.hidden) return announce(t("suggestion.none"))
    this.#choose(VIEWS[(VIEWS.indexOf(this.view) + 1) % VIEWS.length] ?? "shown")
  }

  get view() {
    return this.editor.view.state.field(shownView)
  }

  #choose(view: View) {
    if (view !== this.view) this.editor.view.dispatch({ effects: setView.of(view) })
    this.#draw()
    announce(view === "shown" ? t("view.shown") : `${t(`view.${view}`)}. ${this.sentence.textContent}`)
  }

  #back() {
    this.#choose("shown")
    this.editor.focus()
  }

  /** The writer types into a text that is only shown. */
  #refuse() {
    if (this.view === "accepted") showToast(this.sentence.textContent, { text: t("view.back"), act: () => this.#back() })
  }

  /** The suggestions that the view shows in its way. */
  #count(view: View) {
    const { state } = this.editor.view
    const { isInView } = state.facet(base)
    // The reader's own ones are in the text already.
    const own = this.reviews.all.filter(({ id, status }) => status === "open" && isInView(id)).length
    if (view === "accepted") return applicableSuggestions(state, marked).length + own
    return this.reviews.all.filter((review) => review.status === "open" && isSuggestion(review) && this.reviews.passageOf(review.id)).length
  }

  #draw() {
    const [view, count] = [this.view, this.#count(this.view)]
    // After the last decision there is nothing to choose.
    if (count === 0 && view !== "shown") return this.#choose("shown")
    if (isDrawn(this, view, count)) return
    changeMenu(() => (this.element.hidden = count === 0))
    for (const choice of this.choices) choice.checked = choice.value === view
    this.note.hidden = view === "shown"
    if (view !== "shown") this.sentence.textContent = t(`view.note.${view}`, { count: number(count) })
  }
}
