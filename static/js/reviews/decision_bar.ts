/**
 * The suggestion at the caret of the writer: a small bar that decides it, the sentence that says it, and the keys that decide it and
 * go on to the next. Owns one element.
 *
 * The bar comes when the caret is moved to a part whose card is not beside the text, and goes while the writer types: it would cover
 * the next line.
 */

import type { Editor } from "../desk/editor.ts"
import { chordOf } from "../desk/shortcuts.ts"
import { announce, showToast } from "../lib/announce.ts"
import type { Review, Verdict } from "../lib/api.ts"
import { byId, isDrawn, translatedButton } from "../lib/dom.ts"
import { i18n, number, t } from "../lib/i18n.ts"
import type { ReviewActions } from "./actions.ts"
import { moveBelow } from "./bar_position.ts"
import type { Decisions } from "./decisions.ts"
import { reviewsAt } from "./highlights.ts"
import type { Margin } from "./margin.ts"
import { bottomOf } from "./new_text.ts"
import { sayParts } from "./part_text.ts"
import { isSuggestion } from "./parts.ts"
import type { Spot } from "./spots.ts"
import { actName } from "./subject.ts"

export class DecisionBar {
  declare editor: Editor
  declare decisions: Decisions
  declare reviews
  declare margin: Margin
  declare actions: ReviewActions
  declare element
  declare accept
  declare reject
  declare reply
  #frame = 0
  /** Whether the writer typed since the caret was moved. */
  #typed = false
  /** Whether the next move of the caret is that of an edit. */
  #isEdit = false
  /** Counts the moves of the caret and the edits of the writer: after another one no decision moves the caret. */
  #moves = 0
  /** The suggestion that was said when the caret came to it. */
  #said: string | null = null
  /** Decided, and not answered yet. */
  #deciding: Set<string> = new Set()

  constructor(editor: Editor, decisions: Decisions, margin: Margin, actions: ReviewActions) {
    this.editor = editor
    this.decisions = decisions
    this.reviews = decisions.reviews
    this.margin = margin
    this.actions = actions
    this.element = byId("decision-bar")
    this.accept = translatedButton("review.accept", { icon: "check" }, () => this.decide("accept"))
    this.reject = translatedButton("review.reject", {}, () => this.decide("reject"))
    this.reply = translatedButton("review.reply", { icon: "comment" }, () => this.#reply())
    this.element.replaceChildren(this.accept, this.reject, this.reply)
  }

  start(signal: AbortSignal) {
    // Pressing a button must not take the caret away first.
    this.element.addEventListener("pointerdown", (event) => event.preventDefault(), { signal })
    this.editor.addEventListener("edit", (event) => this.#edited((event as CustomEvent).detail), { signal })
    this.editor.addEventListener("select", (event) => this.#selected((event as CustomEvent).detail), { signal })
    const draw = () => this.#drawSoon()
    for (const type of ["geometry", "pending"]) this.editor.addEventListener(type, draw, { signal })
    for (const type of ["focusin", "focusout"]) document.addEventListener(type, draw, { signal })
    for (const source of [this.reviews, this.decisions.store, i18n]) source.addEventListener("change", draw, { signal })
    window.addEventListener("scroll", draw, { signal, passive: true })
  }

  /**
   * Decides the suggestion at the caret, or the active one while a card has the focus, and goes on to the next; away from
   * both it only goes there.
   */
  async decide(verdict: Verdict) {
    const isInText = this.#isInText
    const review = this.#subject
    if (!this.decisions.mayDecide) return void showToast(t("suggestion.seat"))
    if (!review) return this.#goToNext()
    if (verdict === "accept" && !this.#isAcceptable(review)) return void showToast(this.#sentence(review))
    if (this.#deciding.has(review.id)) return
    const moves = this.#moves
    const order = this.#suggestions.map(({ id }) => id)
    this.#deciding.add(review.id)
    const failed = await this.actions.decide(review, verdict)
    this.#deciding.delete(review.id)
    if (failed !== null) return void showToast(failed)
    // The user looked at a moved passage, and left it.
    if (this.reviews.get(review.id)?.status === "open") return
    if (this.element.contains(document.activeElement)) this.editor.focus()
    if (isInText && moves === this.#moves) this.#goOn(order, review.id)
  }

  /** Shows the next suggestion behind the caret, or else the first. */
  #goToNext() {
    const caret = this.editor.selection.to
    const spots = this.#suggestions.flatMap(({ id }) => this.reviews.passageOf(id) ?? [])
    const next = spots.find(({ from }) => caret <= from) ?? spots[0]
    if (!next) return void showToast(t("suggestion.none"))
    this.editor.focus()
    this.editor.show(next)
  }

  /** The one after a decided suggestion, or else the last before it. */
  #goOn(order: string[], decided: string) {
    const at = order.indexOf(decided)
    const isOpen = (id: string) => this.reviews.get(id)?.status === "open" && this.reviews.passageOf(id) !== null
    const next = order.slice(at + 1).find(isOpen) ?? order.slice(0, Math.max(at, 0)).findLast(isOpen)
    const spot = next === undefined ? null : this.reviews.passageOf(next)
    if (spot) this.editor.show(spot)
    else announce(t("suggestion.last"))
  }

  /** Says the suggestion at the caret, or that of the card with the focus. */
  say() {
    const review = this.#subject
    announce(review ? this.#sentence(review) : t("suggestion.none"))
  }

  get #isInText() {
    return this.editor.view.hasFocus || this.element.contains(document.activeElement)
  }

  get #subject(): Review | undefined {
    const id = this.#isInText ? this.#here?.id : this.margin.active
    const review = this.reviews.get(id ?? "")
    return review && review.status === "open" && isSuggestion(review) ? review : undefined
  }

  /** The suggestion with a part in or beside which the caret stands; of several the active one. */
  get #here() {
    const { state } = this.editor.view
    const { empty, head } = state.selection.main
    if (!empty) return undefined
    const ids = reviewsAt(state, head).filter((id) => this.editor.marked.passages.get(id)?.suggests)
    const id = ids.find((id) => id === this.editor.marked.active) ?? ids[0]
    const spot = id && this.reviews.spotsOf(id).find(({ from, to }) => from <= head && head <= to)
    return id && spot ? { id, spot } : undefined
  }

  /** In the order of the text. */
  get #suggestions() {
    return this.reviews.open.filter(isSuggestion)
  }

  #isAcceptable = (review: Review) => ["exact", "moved"].includes(this.reviews.stateOf(review))

  #sentence(review: Review) {
    const suggestions = this.#suggestions
    const at = number(suggestions.findIndex(({ id }) => id === review.id) + 1)
    const facts = { at, count: number(suggestions.length), what: sayParts(review.parts), keys: chordOf("acceptNext") }
    if (this.reviews.hasMoved(review)) return t("suggestion.here.moved", facts)
    return t(this.#isAcceptable(review) ? "suggestion.here" : "suggestion.here.edited", facts)
  }

  #reply() {
    const id = this.#here?.id
    if (id === undefined) return
    this.margin.activate(id)
    this.margin.openSheet()
    const field = this.margin.cardOf(id)?.querySelector(".reply > .reply-field")
    if (field instanceof HTMLElement) field.focus()
  }

  #edited(isOurs: boolean) {
    this.#isEdit = isOurs
    if (!isOurs) return
    this.#typed = true
    this.#moves++
  }

  #selected(moved: boolean) {
    if (moved && !this.#isEdit) {
      this.#typed = false
      this.#moves++
    }
    this.#isEdit = false
    this.#drawSoon()
  }

  #drawSoon() {
    cancelAnimationFrame(this.#frame)
    this.#frame = requestAnimationFrame(() => this.#draw())
  }

  #draw() {
    const { view, marked } = this.editor
    const isFree = !this.#typed && !view.compositionStarted && marked.pending === null && document.body.dataset.sheet !== "open"
    const here = this.#isInText && isFree && this.decisions.mayDecide ? this.#here : undefined
    const review = here && this.reviews.get(here.id)
    const hadFocus = this.element.contains(document.activeElement)
    this.element.hidden = !review || this.margin.isBeside(review.id)
    if (this.element.hidden && hadFocus) this.editor.focus()
    if (!here || !review) {
      if (!this.#typed) this.#said = null
      return
    }
    if (!this.element.hidden) {
      this.#drawButtons(review)
      moveBelow(this.element, this.#subjectBox(here))
    }
    if (this.#said === here.id) return
    this.#said = here.id
    announce(this.#sentence(review))
  }

  #drawButtons(review: Review) {
    this.accept.hidden = !this.#isAcceptable(review)
    if (isDrawn(this.element, review.id, review.version)) return
    for (const [act, pressed] of [["accept", this.accept], ["reject", this.reject], ["reply", this.reply]] as const) {
      pressed.setAttribute("aria-label", actName(t(`review.${act}`), review))
    }
  }

  /** The part at the caret with its new words, as far as they are drawn. */
  #subjectBox({ id, spot }: { id: string, spot: Spot }) {
    const caret = this.editor.coordinatesAt(this.editor.selection.from, -1)
    const bottom = bottomOf(this.editor.view, id, this.editor.coordinatesAt(spot.to, -1).bottom)
    return { top: caret.top, bottom: Math.max(caret.bottom, bottom), left: caret.left }
  }
}
