/**
 * Puts the open cards of a wide window beside their passages, folds those that crowd, scrolls to the
 * active one, and draws the connectors. `layout.ts` has the arithmetic.
 */

import type { Editor } from "../desk/editor.ts"
import { byId, el } from "../lib/dom.ts"
import { number, t } from "../lib/i18n.ts"
import { Connectors } from "./connectors.ts"
import { arrange, crowded, scrollInto, type Box } from "./layout.ts"
import { bottomOf } from "./new_text.ts"
import { PassageTops } from "./passage_tops.ts"
import type { Reviews } from "./reviews.ts"

/** The id under which the card of a new review stands among the others. */
export const DRAFT = "draft"
/** Between two cards, in px. */
const GAP = 2
/** How far below the top of the active card its first line stands, in px. */
const CONNECTOR_AT = 24
/** The height of a card that is folded to one line, in px; cards.css has it too. */
const FOLDED = 32
/** How far a card may reach under the head, in px: its words are not covered yet. */
const COVERED = 12
/** How far from its line a card may stand before its neighbours fold, in px. */
const AWAY_MAX = 240
/** How far outside the window a card is drawn, and is moved to where it stands, in px. */
const NEAR = 800
/** The free space between the active card and the bars above and below it, in px. */
const CLEARANCE = 12

export class Placement {
  declare editor: Editor
  declare reviews: Reviews
  declare show: (id: string, near: boolean) => void
  declare desk
  declare list
  declare connectors: Connectors
  declare tops: PassageTops
  #active: string | null = null
  /** The card under the pointer. */
  #hovered: string | null = null
  /** The last arrangement. */
  #placed: { boxes: Box[], tops: Map<string, number> } = { boxes: [], tops: new Map() }
  /** How far the column is scrolled down by itself, over the cards that left it at its top, in px. */
  #scrolled = 0
  /** The heights of the cards when they are not folded, in px. */
  #heights: Map<string, number> = new Map()
  /** How far the top of the text is below that of the column, in px. */
  #offset = 0
  #width = 0
  #folded: Set<string> = new Set()
  /** The cards that are drawn. */
  #near: Set<string> = new Set()
  /** The boxes of the last arrangement before cards folded. */
  #full: Box[] = []
  #cards: Map<string, HTMLElement> = new Map()
  /** Where the cards were moved to, and where they stand without their translation, in px. */
  #moved: WeakMap<HTMLElement, { top: number, anchor: number }> = new WeakMap()
  /** Whether the cards stand beside their passages, or follow each other. */
  #isPlaced = false
  #above = 0
  /** Above the column in its panel: a line that cards may cover, in px. */
  #room = 0

  /** @param show draws a card that is near the window */
  constructor(editor: Editor, reviews: Reviews, show: (id: string, near: boolean) => void) {
    this.editor = editor
    this.reviews = reviews
    this.show = show
    this.desk = byId("desk")
    this.list = byId("cards")
    this.connectors = new Connectors(this.desk)
    this.tops = new PassageTops(editor, (id) => this.#passageOf(id)?.from ?? 0)
  }

  start(signal: AbortSignal) {
    this.list.addEventListener("pointerover", (event) => this.#hover(event.target), { signal })
    this.list.addEventListener("pointerleave", () => this.#hover(null), { signal })
    this.tops.start(signal)
    // Of the window, or of a list.
    window.addEventListener("scroll", () => this.#scrolledBy(), { signal, capture: true, passive: true })
  }

  /** After a change of reviews, which may have moved a passage. @param cards in the order of the text */
  setCards(cards: HTMLElement[]) {
    // A card that was made anew has the words alone, though its place is the same.
    if (cards.some((card) => this.#cards.get(idOf(card)) !== card)) this.#full = []
    this.#cards = new Map(cards.map((card) => [idOf(card), card]))
    this.tops.setOrder([...this.#cards.keys()])
  }

  /** The cards follow each other, as in any list: the window is narrow, or another tab is shown. */
  clear(active: string | null, folds: boolean) {
    this.#active = active
    this.#isPlaced = false
    this.#full = []
    this.#drawAbove(0)
    if (folds) this.#setFolded(new Set([...this.#cards.keys()].filter((id) => id !== this.#active)))
    this.connectors.draw([])
    this.#drawNear()
  }

  /** @returns whether the active card has grown over the foot, which it was above */
  arrange(active: string | null): boolean {
    const before = active === this.#active ? this.#bottomOfActive : Number.POSITIVE_INFINITY
    if (active !== this.#active) {
      this.#scrolled = 0
      this.#full = []
    }
    this.#active = active
    this.#isPlaced = true
    if (!this.#stack()) {
      this.#connect()
      return false
    }
    // A card that is drawn now has another height than its words alone.
    if (this.#drawNear()) this.#stack()
    if (!this.scroll(0)) this.#move()
    return before <= this.#foot && this.#foot < this.#bottomOfActive
  }

  /** Where the active card ends in the window, in px. */
  get #bottomOfActive() {
    const box = this.#placed.boxes.find(({ id }) => id === this.#active)
    return box ? this.list.getBoundingClientRect().top + this.#topOf(box.id) + box.height : 0
  }

  get #foot() {
    return byId("text-counts-bar").getBoundingClientRect().top
  }

  /** @returns whether a card or a passage has moved: a key seldom moves one */
  #stack(): boolean {
    const full = this.#boxes(this.list.getBoundingClientRect().top)
    const isSame = ({ id, want, height }: Box, before: Box | undefined) =>
      id === before?.id && want === before.want && height === before.height
    if (full.length === this.#full.length && full.every((box, at) => isSame(box, this.#full[at]))) return false
    const boxes = this.#fold(full)
    // A card that has unfolded is measured with the next frame.
    this.#full = full
    const tops = arrange(boxes, { active: this.#active, gap: GAP, top: 0 })
    this.#placed = { boxes, tops }
    this.list.style.height = `${Math.max(0, ...boxes.map(({ id, height }) => (tops.get(id) ?? 0) + height))}px`
    return true
  }

  /** Draws the cards near the window, and of the others their words alone. @returns whether one came near */
  #drawNear(): boolean {
    const origin = this.list.getBoundingClientRect().top
    const spans = this.#isPlaced
      ? this.#placed.boxes.map(({ id, height }) => ({ id, top: origin + this.#topOf(id), height }))
      : [...byId("margin").querySelectorAll("[role=tabpanel]:not([hidden]) .card")].map((card) => {
          const { top, height } = card.getBoundingClientRect()
          return { id: idOf(card), top, height }
        })
    const before = this.#near
    this.#near = new Set(spans.filter(({ top, height }) => isNear(top, height)).map(({ id }) => id))
    for (const { id } of spans) this.show(id, this.#near.has(id))
    return [...this.#near].some((id) => !before.has(id))
  }

  #scrolledBy() {
    const isNew = this.#drawNear()
    if (!this.#isPlaced) return
    if (isNew) this.#stack()
    this.#move()
  }

  /** Scrolls the column by itself. @param by in px @returns whether it has moved */
  scroll(by: number): boolean {
    const before = this.#scrolled
    const highest = Math.min(0, ...this.#placed.tops.values())
    this.#scrolled = Math.min(Math.max(before - by, 0), -highest)
    if (before !== this.#scrolled) this.#move()
    return before !== this.#scrolled
  }

  #move() {
    const origin = this.list.getBoundingClientRect().top
    for (const [id, card] of this.#cards) {
      const top = Math.round(this.#topOf(id))
      const before = this.#moved.get(card)
      const stays = before !== undefined && isNear(origin + before.top)
      if (top === before?.top || (before && !stays && !isNear(origin + top))) continue
      // A card in view is on its way for a moment. One that is not has no translation: the browser draws thousands of those slowly.
      const anchor = stays && isNear(origin + top) ? before.anchor : top
      this.#moved.set(card, { top, anchor })
      card.style.top = `${anchor}px`
      card.style.translate = top === anchor ? "none" : `0 ${top - anchor}px`
    }
    this.#connect()
    this.#drawAbove(this.above.length, this.#placed.boxes.some(({ id }) => this.#topOf(id) < 0))
  }

  /** @param covers whether a card stands on the line between head and column */
  #drawAbove(count: number, covers: boolean = false) {
    byId("summary-add").dataset.covered = String(covers)
    if (count === this.#above) return
    this.#above = count
    byId("cards-above").hidden = count === 0
    const sentence = el("span", { class: "hidden", text: t("review.above", { count: number(count) }) })
    byId("cards-above").replaceChildren(el("span", { "aria-hidden": "true", text: `↑ ${number(count)}` }), sentence)
  }

  #topOf(id: string) {
    return (this.#placed.tops.get(id) ?? 0) + this.#scrolled
  }

  #passageOf(id: string) {
    const { pending } = this.editor.marked
    return id === DRAFT ? pending && this.editor.inView(pending) : this.reviews.lastPassageOf(id)
  }

  /**
   * The boxes of the cards at their full heights. Reads the heights of all cards before `#fold` writes to
   * any: one layout a frame, and a second one only when cards fold or unfold.
   */
  #boxes(origin: number): Box[] {
    this.tops.follow()
    const text = this.editor.view.contentDOM.getBoundingClientRect()
    const isResized = this.#width !== this.list.clientWidth
    this.#width = this.list.clientWidth
    this.#room = this.list.offsetTop - byId("panel-open").offsetTop
    const mayHaveMoved = isResized || this.#offset !== text.top - origin
    this.#offset = text.top - origin
    return [...this.#cards].map(([id, card], index) => {
      const before = this.#full[index]
      if (!mayHaveMoved && before?.id === id && id !== this.#active && !this.#near.has(id) && this.tops.has(id)) return before
      const want = text.top + this.tops.of(id, text) - origin - this.#lineOf(id)
      // Far from the window only another width changes a card.
      const mayDiffer = isResized || id === this.#active || this.#near.has(id) || !this.#heights.has(id)
      if (mayDiffer && !this.#folded.has(id)) this.#heights.set(id, card.offsetHeight)
      return { id, want, height: this.#heights.get(id) ?? FOLDED }
    })
  }

  /**
   * Folds the cards that crowd, and returns the boxes with their heights. A summary folds only among others that crowd, or
   * where it would stand above the column.
   */
  #fold(full: Box[]) {
    const options = { active: this.#active, gap: GAP, top: 0, limit: AWAY_MAX }
    const summaries = full.filter(({ id }) => this.#cards.get(id)?.dataset.kind === "summary")
    const folded = crowded(full, options)
    const crowd = crowded(summaries, options)
    for (const { id } of summaries) if (!crowd.has(id)) folded.delete(id)
    const flat = (box: Box) => (folded.has(box.id) ? { ...box, height: FOLDED } : box)
    const tops = arrange(full.map(flat), options)
    for (const { id } of summaries) if ((tops.get(id) ?? 0) < 0 && id !== this.#active) folded.add(id)
    const unfolds = this.#setFolded(folded)
    const measured = (box: Box) => ({ ...box, height: this.#cards.get(box.id)?.offsetHeight ?? box.height })
    return full.map((box) => (unfolds && !folded.has(box.id) ? measured(box) : flat(box)))
  }

  /** @returns whether a card has unfolded */
  #setFolded(folded: Set<string>): boolean {
    const before = this.#folded
    this.#folded = folded
    for (const [id, card] of this.#cards) {
      const folds = String(folded.has(id))
      if (card.dataset.folded !== folds) card.dataset.folded = folds
    }
    return [...before].some((id) => !folded.has(id))
  }

  /**
   * Scrolls the page until the active card and its passage are inside the window.
   *
   * @returns whether the editor has yet to draw the passage, and says then where it stands
   */
  reveal(): boolean {
    const { boxes, tops } = this.#placed
    const box = boxes.find(({ id }) => id === this.#active)
    if (!box) return false
    const top = this.list.getBoundingClientRect().top + (tops.get(box.id) ?? 0)
    const { from, to } = this.#passageOf(box.id) ?? { from: 0, to: 0 }
    const passage = this.editor.coordinatesAt(from).top
    const ends = Math.min(bottomOf(this.editor.view, box.id, this.editor.coordinatesAt(to, -1).bottom), top + box.height)
    const subject = { top: Math.min(top, passage), bottom: Math.max(top + box.height, ends) }
    const free = { top: byId("margin-head").getBoundingClientRect().bottom + CLEARANCE, bottom: this.#foot - CLEARANCE }
    const by = scrollInto(subject, free)
    if (by !== 0) window.scrollBy({ top: by, behavior: "instant" })
    const { viewport } = this.editor.view
    return by !== 0 && (from < viewport.from || viewport.to < from)
  }

  /** Scrolls the page until the passage of the active card is visible above the sheet. */
  revealAbove(sheet: HTMLElement, active: string | null) {
    const passage = active === null ? null : this.#passageOf(active)
    if (!passage) return
    const bottom = bottomOf(this.editor.view, active ?? "", this.editor.coordinatesAt(passage.to, -1).bottom)
    const subject = { top: this.editor.coordinatesAt(passage.from).top, bottom }
    // its position after the transition: the sheet may still be on its way up.
    const keyboard = Number.parseFloat(getComputedStyle(sheet).bottom) || 0
    const bar = byId("bar")
    const covered = getComputedStyle(bar).position === "sticky" ? bar.offsetHeight : 0
    const free = {
      top: covered + CLEARANCE,
      bottom: window.innerHeight - keyboard - sheet.offsetHeight - CLEARANCE,
    }
    const by = scrollInto(subject, free)
    if (by !== 0) window.scrollBy({ top: by, behavior: "instant" })
  }

  /** The cards that leave the column at its top, to make room for the active one. The head covers them. */
  get above() {
    return this.#placed.boxes.map(({ id }) => id).filter((id) => this.#topOf(id) < -this.#room - COVERED)
  }

  /** How far below the top of a card its first line stands, in px. */
  #lineOf(id: string) {
    return id === this.#active ? CONNECTOR_AT : FOLDED / 2
  }

  #hover(target: EventTarget | null) {
    const card = target instanceof Element ? target.closest(".card") : null
    const id = card && idOf(card)
    if (id === this.#hovered) return
    this.#hovered = id
    this.#connect()
  }

  /** The role that a review is by; a new one is the user's own. */
  #byOf(id: string) {
    const review = this.reviews.get(id)
    return review ? this.reviews.roleOf(review.author) : this.editor.role
  }

  /** Draws the connectors of the active card and of the one under the pointer. */
  #connect() {
    const { boxes } = this.#placed
    const isShown = (id: string) => id === this.#active || id === this.#hovered
    // A review on the whole text has no passage to connect with.
    const shown = boxes.filter(({ id }) => isShown(id) && this.#passageOf(id) !== null)
    if (shown.length === 0) return this.connectors.draw([])
    const origin = this.list.getBoundingClientRect()
    const desk = this.desk.getBoundingClientRect()
    const paper = byId("paper").getBoundingClientRect()
    const text = this.editor.view.contentDOM.getBoundingClientRect()
    const edge = Math.min(text.right + 10, paper.right - 8) - desk.left
    const x = origin.left - desk.left
    const turn = (paper.right - desk.left + x) / 2
    const connectors = shown.map(({ id }) => {
      const line = middleOf(this.editor.coordinatesAt(this.#passageOf(id)?.from ?? 0))
      return {
        id,
        active: id === this.#active,
        by: this.#byOf(id),
        from: { x: edge, y: line - desk.top },
        to: { x, y: origin.top + this.#topOf(id) + this.#lineOf(id) - desk.top },
        turn,
      }
    })
    this.connectors.draw(connectors)
  }
}

const middleOf = ({ top, bottom }: { top: number, bottom: number }) => (top + bottom) / 2

const idOf = (card: Element) => card.getAttribute("data-card") ?? DRAFT

/** @param top in the window, in px */
const isNear = (top: number, height: number = 0) => -NEAR < top + height && top < window.innerHeight + NEAR
