// @ts-check
/**
 * Puts the open cards of a wide window beside their passages, folds those that crowd, scrolls to the
 * active one, and draws the connectors. `layout.js` has the arithmetic.
 */

import { byId, el } from "../lib/dom.js"
import { number, t } from "../lib/i18n.js"
import { Connectors } from "./connectors.js"
import { arrange, crowded, scrollInto } from "./layout.js"

/** @typedef {import("./layout.js").Box} Box */

/** The id under which the card of a new review stands among the others. */
export const DRAFT = "draft"
/** Between two cards, in px. */
const GAP = 2
/** How far below the top of a card its connector ends, in px. */
const CONNECTOR_AT = 24
/** The height of a card that is folded to one line, in px; cards.css has it too. */
const FOLDED = 32
/** How far from its line a card may stand before its neighbours fold, in px. */
const AWAY_MAX = 240
/** The free space between the active card and the bars above and below it, in px. */
const CLEARANCE = 12

export class Placement {
  /** @type {string | null} */
  #active = null
  /** The card under the pointer. @type {string | null} */
  #hovered = null
  /** The last arrangement. @type {{ boxes: Box[], tops: Map<string, number> }} */
  #placed = { boxes: [], tops: new Map() }
  /** How far the column is scrolled down by itself, over the cards that left it at its top, in px. */
  #scrolled = 0
  /** The heights of the cards when they are not folded, in px. @type {Map<string, number>} */
  #heights = new Map()

  /**
   * @param {import("../desk/editor.js").Editor} editor
   * @param {import("./reviews.js").Reviews} reviews
   */
  constructor(editor, reviews) {
    this.editor = editor
    this.reviews = reviews
    this.desk = byId("desk")
    this.list = byId("cards")
    this.connectors = new Connectors(this.desk)
  }

  /** @param {AbortSignal} signal */
  start(signal) {
    this.list.addEventListener("pointerover", (event) => this.#hover(event.target), { signal })
    this.list.addEventListener("pointerleave", () => this.#hover(null), { signal })
  }

  /** The cards follow each other, as in any list: the window is narrow, or another tab is shown. @param {boolean} folds */
  clear(folds) {
    byId("cards-above").hidden = true
    this.list.style.height = ""
    for (const card of this.#cards()) {
      unplace(card)
      if (folds) card.dataset.folded = String(card.dataset.active !== "true")
    }
    this.connectors.draw([])
  }

  /** @param {string | null} active */
  arrange(active) {
    if (active !== this.#active) this.#scrolled = 0
    this.#active = active
    const cards = this.#cards()
    const origin = this.list.getBoundingClientRect()
    const boxes = this.#boxes(cards, origin.top)
    const tops = arrange(boxes, { active: this.#active, gap: GAP, top: 0 })
    this.#placed = { boxes, tops }
    this.list.style.height = `${Math.max(0, ...boxes.map(({ id, height }) => (tops.get(id) ?? 0) + height))}px`
    if (!this.scroll(0)) this.#move()
  }

  /** Scrolls the column by itself. @param {number} by in px @returns {boolean} whether it has moved */
  scroll(by) {
    const before = this.#scrolled
    const highest = Math.min(0, ...this.#placed.tops.values())
    this.#scrolled = Math.min(Math.max(before - by, 0), -highest)
    if (before !== this.#scrolled) this.#move()
    return before !== this.#scrolled
  }

  #move() {
    for (const card of this.#cards()) card.style.translate = `0 ${Math.round(this.#topOf(card.dataset.card ?? DRAFT))}px`
    this.#connect()
    const above = this.above.length
    byId("cards-above").hidden = above === 0
    const sentence = el("span", { class: "hidden", text: t("review.above", { count: number(above) }) })
    byId("cards-above").replaceChildren(el("span", { "aria-hidden": "true", text: `↑ ${number(above)}` }), sentence)
  }

  /** @param {string} id */
  #topOf(id) {
    return (this.#placed.tops.get(id) ?? 0) + this.#scrolled
  }

  #cards() {
    return /** @type {HTMLElement[]} */ ([...this.list.children])
  }

  /** @param {string} id */
  #passageOf(id) {
    return id === DRAFT ? this.editor.marked.pending : this.reviews.lastPassageOf(id)
  }

  /**
   * The boxes of the cards, after the cards that crowd are folded. Reads the heights of all cards
   * before it writes to any: one layout a frame, and a second one only when cards fold or unfold.
   *
   * @param {HTMLElement[]} cards
   * @param {number} origin
   * @returns {Box[]}
   */
  #boxes(cards, origin) {
    const full = cards.map((card) => {
      const id = card.dataset.card ?? DRAFT
      const want = this.editor.coordinatesAt(this.#passageOf(id)?.from ?? 0).top - origin - 8
      if (card.dataset.folded !== "true") this.#heights.set(id, card.offsetHeight)
      return { id, want, height: this.#heights.get(id) ?? FOLDED }
    })
    const folded = crowded(full, { active: this.#active, gap: GAP, top: 0, limit: AWAY_MAX })
    let unfolds = false
    for (const card of cards) {
      const folds = folded.has(card.dataset.card ?? DRAFT)
      if ((card.dataset.folded === "true") === folds) continue
      card.dataset.folded = String(folds)
      unfolds ||= !folds
    }
    return full.map((box, at) => {
      if (folded.has(box.id)) return { ...box, height: FOLDED }
      return unfolds ? { ...box, height: cards[at]?.offsetHeight ?? box.height } : box
    })
  }

  /** Scrolls the page until the active card and its passage are inside the window. */
  reveal() {
    const { boxes, tops } = this.#placed
    const box = boxes.find(({ id }) => id === this.#active)
    if (!box) return
    const top = this.list.getBoundingClientRect().top + (tops.get(box.id) ?? 0)
    const { from, to } = this.#passageOf(box.id) ?? { from: 0, to: 0 }
    const passage = this.editor.coordinatesAt(from).top
    const ends = Math.min(this.editor.coordinatesAt(to, -1).bottom, top + box.height)
    const subject = { top: Math.min(top, passage), bottom: Math.max(top + box.height, ends) }
    const free = {
      top: byId("margin-head").getBoundingClientRect().bottom + CLEARANCE,
      bottom: byId("text-counts-bar").getBoundingClientRect().top - CLEARANCE,
    }
    const by = scrollInto(subject, free)
    if (by !== 0) window.scrollBy({ top: by, behavior: "instant" })
  }

  /**
   * Scrolls the page until the passage of the active card is visible above the sheet.
   *
   * @param {HTMLElement} sheet
   * @param {string | null} active
   */
  revealAbove(sheet, active) {
    const passage = active === null ? null : this.#passageOf(active)
    if (!passage) return
    const subject = { top: this.editor.coordinatesAt(passage.from).top, bottom: this.editor.coordinatesAt(passage.to, -1).bottom }
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

  /** The cards that leave the column at its top, to make room for the active one. */
  get above() {
    return this.#placed.boxes.map(({ id }) => id).filter((id) => this.#topOf(id) < 0)
  }

  /** @param {EventTarget | null} target */
  #hover(target) {
    const card = target instanceof Element ? target.closest(".card") : null
    const id = card instanceof HTMLElement ? (card.dataset.card ?? DRAFT) : null
    if (id === this.#hovered) return
    this.#hovered = id
    this.#connect()
  }

  /** The role that a review is by; a new one is the user's own. @param {string} id */
  #byOf(id) {
    const review = this.reviews.get(id)
    return review ? this.reviews.roleOf(review.author) : this.editor.role
  }

  /** Draws the connectors of the active card and of the one under the pointer. */
  #connect() {
    const { boxes } = this.#placed
    const isShown = (/** @type {string} */ id) => id === this.#active || id === this.#hovered
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
      const { top, bottom } = this.editor.coordinatesAt(this.#passageOf(id)?.from ?? 0)
      return {
        id,
        active: id === this.#active,
        by: this.#byOf(id),
        from: { x: edge, y: (top + bottom) / 2 - desk.top },
        to: { x, y: origin.top + this.#topOf(id) + CONNECTOR_AT - desk.top },
        turn,
      }
    })
    this.connectors.draw(connectors)
  }
}

/** A card that follows the others in a list, at its full height. @param {HTMLElement} card */
export function unplace(card) {
  card.style.translate = ""
  delete card.dataset.folded
}
