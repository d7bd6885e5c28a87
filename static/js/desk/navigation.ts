/** Leads from the text to the cards and back: by the caret, by a press on a passage, and by keys. */

import { byId } from "../lib/dom.ts"
import { showToast } from "../lib/announce.ts"
import type { Review } from "../lib/api.ts"
import type { ReviewActions } from "../reviews/actions.ts"
import { reviewsAt } from "../reviews/highlights.ts"
import type { Margin } from "../reviews/margin.ts"
import type { Reviews } from "../reviews/reviews.ts"
import type { Store } from "../store.ts"
import type { Editor } from "./editor.ts"
import type { Presence } from "./presence.ts"

interface Parts {
  store: Store
  editor: Editor
  reviews: Reviews
  margin: Margin
  actions: ReviewActions
  presence: Presence
}

export class Navigation {
  declare store: Store
  declare editor: Editor
  declare reviews: Reviews
  declare margin: Margin
  declare actions: ReviewActions
  declare presence: Presence

  constructor({ store, editor, reviews, margin, actions, presence }: Parts) {
    this.store = store
    this.editor = editor
    this.reviews = reviews
    this.margin = margin
    this.actions = actions
    this.presence = presence
  }

  start(signal: AbortSignal) {
    this.editor.addEventListener("select", (event) => this.#selected((event as CustomEvent).detail), { signal })
    this.editor.addEventListener("press", (event) => this.#pressed((event as CustomEvent).detail), { signal })
    byId("summary-add").addEventListener("click", () => this.actions.beginSummary(), { signal })
    this.store.addEventListener("change", () => (byId("summary-add").hidden = !this.store.seated), { signal })
  }

  /** @param moved whether the caret moved, and not only the text under it */
  #selected(moved: boolean) {
    if (moved) this.presence.publish()
    else this.presence.publishSoon()
    if (!moved || this.margin.isDrafting || !this.editor.view.hasFocus) return
    const { from, to } = this.editor.selection
    this.margin.activate(from === to ? (reviewsAt(this.editor.view.state, from)[0] ?? null) : null)
  }

  #pressed(review: string) {
    if (this.margin.isDrafting) return
    this.margin.activate(review)
    this.margin.openSheet()
  }

  /** A comment on the selection; without one, on the whole text. */
  comment() {
    if (!this.store.seated) return
    const { from, to } = this.editor.selection
    if (from < to || this.margin.isDrafting) this.actions.begin({ suggests: false })
    else this.actions.beginSummary()
  }

  step(by: 1 | -1) {
    const order = [...this.reviews.orphans, ...this.reviews.open].map(({ id }) => id)
    if (order.length === 0) return
    const now = order.indexOf(this.margin.active ?? "")
    const next = now === -1 ? this.#nearest(by) : order[(now + by + order.length) % order.length]
    if (next !== undefined) this.show(next)
  }

  /** Leads to a review. */
  show(review: string) {
    const passage = this.reviews.passageOf(review)
    if (passage) this.editor.show(passage)
    this.margin.activate(review)
    this.margin.focusCard(review)
  }

  /** The review after the caret, or before it; at the end of the text the first again. */
  #nearest(by: 1 | -1) {
    const { open, orphans } = this.reviews
    const caret = this.editor.selection.from
    const from = ({ id }: Review) => this.reviews.passageOf(id)?.from ?? 0
    const after = open.findIndex((review) => caret <= from(review))
    const next = by === 1 ? open[after] : open[(after === -1 ? open.length : after) - 1]
    return (next ?? (by === 1 ? (open[0] ?? orphans[0]) : (open.at(-1) ?? orphans[0])))?.id
  }

  decide(decision: "accept" | "resolve") {
    const review = this.reviews.get(this.margin.active ?? "")
    if (!review || review.status !== "open" || this.editor.role !== "writer" || !this.store.seated) return
    const shown = this.margin.cardOf(review.id)?.querySelector(`[data-decision=${decision}]`)
    if (shown instanceof HTMLButtonElement) return shown.click()
    if (decision === "accept") return
    this.actions.decide(review, decision).then((failed) => failed && showToast(failed))
  }

  /** From the controls of a card to the card, from there to the text. */
  backToText() {
    const entered = document.activeElement?.closest(".card[data-card]")
    if (entered instanceof HTMLElement && entered !== document.activeElement) return entered.focus({ preventScroll: true })
    const passage = this.reviews.passageOf(this.margin.active ?? "")
    this.margin.closeSheet()
    const fromCard = document.activeElement?.closest(".card") && !this.margin.isDrafting
    if (passage && fromCard) this.editor.show(passage)
    this.editor.focus()
  }
}
