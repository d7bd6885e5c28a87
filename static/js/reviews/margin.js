// @ts-check
/**
 * The margin: every review as a card, beside its text.
 *
 * Three places: above, in a list, what is no longer found in the text and what is done; below, each
 * card level with its passage. On a narrow window the same element is a sheet from below and the
 * cards simply follow each other.
 */

import { byId, el } from "../lib/dom.js"
import { number, t } from "../lib/i18n.js"
import { ReviewCard } from "./card.js"
import { Connectors } from "./connectors.js"
import { arrange } from "./layout.js"

/**
 * @typedef {import("../lib/api.js").Review} Review
 * @typedef {import("./layout.js").Box} Box
 */

/** Between two cards, in px. */
const GAP = 12
/** How far below the top of a card its connector ends, in px. */
const CONNECTOR_AT = 22
/** The id under which the card of a new review stands among the others. */
export const DRAFT = "draft"

export class Margin {
  /** @type {Map<string, ReviewCard>} */
  #cards = new Map()
  /** @type {HTMLElement | null} */
  #draft = null
  #frame = 0
  #stale = false
  #stopped = new AbortController()
  #narrow = window.matchMedia("(max-width: 899px)")
  /** @type {string | null} */
  active = null

  /**
   * @param {import("../desk/editor.js").Editor} editor
   * @param {import("./reviews.js").Reviews} reviews
   * @param {import("../store.js").Store} store
   * @param {import("./card.js").Actions} actions
   */
  constructor(editor, reviews, store, actions) {
    this.editor = editor
    this.reviews = reviews
    this.store = store
    this.actions = actions
    this.desk = byId("desk")
    this.element = byId("margin")
    this.list = byId("cards")
    this.orphans = byId("orphans")
    this.done = byId("done", HTMLDetailsElement)
    this.connectors = new Connectors(this.desk)
  }

  start() {
    const { signal } = this.#stopped
    const redraw = () => this.#drawSoon()
    this.reviews.addEventListener("change", redraw, { signal })
    this.store.addEventListener("change", redraw, { signal })
    this.editor.addEventListener("geometry", () => this.arrangeSoon(), { signal })
    this.element.addEventListener("resized", () => this.arrangeSoon(), { signal })
    this.element.addEventListener("input", () => this.arrangeSoon(), { signal })
    this.done.addEventListener("toggle", () => this.arrangeSoon(), { signal })
    this.#narrow.addEventListener("change", () => this.#resized(), { signal })
    const sizes = new ResizeObserver(() => this.arrangeSoon())
    for (const element of [this.desk, this.list, this.orphans]) sizes.observe(element)
    signal.addEventListener("abort", () => sizes.disconnect())
    byId("sheet-close").addEventListener("click", () => this.closeSheet(), { signal })
    byId("sheet-open").addEventListener("click", () => this.openSheet(), { signal })
    document.fonts.ready.then(() => this.arrangeSoon())
    this.draw()
  }

  stop() {
    this.#stopped.abort()
    cancelAnimationFrame(this.#frame)
  }

  /** @param {string | null} id */
  activate(id) {
    if (id === this.active) return
    this.active = id
    this.editor.activate(id === DRAFT ? null : id)
    this.draw()
    if (this.#narrow.matches && id !== null) this.cardOf(id)?.scrollIntoView({ block: "nearest" })
  }

  /** @param {string} id @returns {HTMLElement | null} */
  cardOf(id) {
    return id === DRAFT ? this.#draft : (this.#cards.get(id)?.element ?? null)
  }

  /** @param {string} id */
  focusCard(id) {
    this.openSheet()
    this.cardOf(id)?.focus({ preventScroll: !this.#narrow.matches })
  }

  /** A card for a new review, or none any more. @param {HTMLElement | null} form */
  showDraft(form) {
    this.#draft = form && el("li", { class: "card card-draft", "data-active": "true" }, form)
    this.active = form ? DRAFT : null
    this.editor.activate(null)
    if (form) this.openSheet()
    this.draw()
  }

  get sheetIsOpen() {
    return document.body.dataset.sheet === "open"
  }

  openSheet() {
    if (!this.#narrow.matches) return
    document.body.dataset.sheet = "open"
    this.arrangeSoon()
    requestAnimationFrame(() => this.cardOf(this.active ?? "")?.scrollIntoView({ block: "start" }))
  }

  /** The margin became a sheet, or the other way round: the element in use stays in view. */
  #resized() {
    if (this.#draft || this.element.contains(document.activeElement)) this.openSheet()
    this.arrangeSoon()
  }

  closeSheet() {
    delete document.body.dataset.sheet
    if (this.#narrow.matches && this.element.contains(document.activeElement)) this.editor.focus()
  }

  /** Says everything in the language of now. */
  retranslate() {
    for (const card of this.#cards.values()) card.retranslate()
    this.draw()
  }

  draw() {
    this.#stale = false
    const { open, orphans, done } = this.reviews
    const focused = this.#focusedCard()
    const shown = new Set()
    const cards = (/** @type {Review[]} */ reviews) =>
      reviews.map((review) => {
        shown.add(review.id)
        return this.#card(review).element
      })
    /** @type {HTMLElement[]} */
    const placed = cards(open)
    if (this.#draft) placed.splice(this.#draftIndex(open), 0, this.#draft)
    inOrder(this.list, placed)
    const listed = [cards(orphans), cards(done)]
    // In a list they follow each other; where they stood in the margin says nothing there.
    for (const card of listed.flat()) card.style.translate = ""
    inOrder(byId("orphan-cards"), listed[0] ?? [])
    inOrder(byId("done-cards"), listed[1] ?? [])
    this.orphans.hidden = orphans.length === 0
    this.done.hidden = done.length === 0
    byId("done-count").textContent = t("review.done", { count: number(done.length) })
    const count = open.length + orphans.length
    byId("open-count").textContent = count === 0 ? t("review.list") : t("review.count", { count: number(count) })
    byId("sheet-count").textContent = number(count)
    byId("no-reviews").hidden = count + done.length !== 0 || this.#draft !== null
    const reader = this.store.state.role === "reviewer"
    byId("no-reviews").textContent = t(reader ? "review.none.reader" : "review.none")
    for (const [id, card] of this.#cards) {
      if (shown.has(id)) continue
      card.element.remove()
      this.#cards.delete(id)
    }
    this.#restoreFocus(focused)
    this.arrangeSoon()
  }

  /** @param {Review} review */
  #card(review) {
    const { role, me } = this.store.state
    const context = {
      state: review.status === "open" ? this.reviews.stateOf(review) : review.anchor.state,
      active: this.active === review.id,
      role: role ?? "reviewer",
      seated: this.store.seated,
      me: me?.id ?? "",
    }
    const existing = this.#cards.get(review.id)
    if (existing) {
      existing.update(review, context)
      return existing
    }
    const card = new ReviewCard(review, context, this.actions)
    this.#cards.set(review.id, card)
    return card
  }

  /** @param {Review[]} open */
  #draftIndex(open) {
    const at = this.editor.marked.pending?.from ?? 0
    const next = open.findIndex(({ id }) => at < (this.reviews.passageOf(id)?.from ?? 0))
    return next === -1 ? open.length : next
  }

  #focusedCard() {
    const card = document.activeElement?.closest(".card")
    return card instanceof HTMLElement ? { card, index: [...this.list.children].indexOf(card) } : null
  }

  /**
   * A card that went away with the focus in it hands it to its neighbour, or to the text.
   *
   * @param {{ card: HTMLElement, index: number } | null} focused
   */
  #restoreFocus(focused) {
    if (!focused) return
    const { card, index } = focused
    const visible = card.isConnected && card.checkVisibility()
    if (visible && card.contains(document.activeElement)) return
    if (visible && card.parentElement !== byId("done-cards")) return card.focus({ preventScroll: true })
    const next = this.list.children[Math.min(Math.max(index, 0), this.list.children.length - 1)]
    if (next instanceof HTMLElement) next.focus({ preventScroll: true })
    else this.editor.focus()
  }

  /** Many changes, one drawing: a keystroke alone makes several. */
  #drawSoon() {
    this.#stale = true
    this.arrangeSoon()
  }

  arrangeSoon() {
    cancelAnimationFrame(this.#frame)
    this.#frame = requestAnimationFrame(() => {
      if (this.#stale) this.draw()
      cancelAnimationFrame(this.#frame)
      this.#arrange()
    })
  }

  /** @param {string} id */
  #passageOf(id) {
    return id === DRAFT ? this.editor.marked.pending : this.reviews.passageOf(id)
  }

  #arrange() {
    if (this.#narrow.matches) {
      this.list.style.height = ""
      for (const card of this.list.children) /** @type {HTMLElement} */ (card).style.translate = ""
      return this.connectors.draw([])
    }
    const origin = this.list.getBoundingClientRect()
    const cards = /** @type {HTMLElement[]} */ ([...this.list.children])
    /** @type {Box[]} */
    const boxes = cards.map((card) => {
      const id = card.dataset.card ?? DRAFT
      const want = this.editor.coordinatesAt(this.#passageOf(id)?.from ?? 0).top - origin.top - 4
      return { id, want, height: card.offsetHeight }
    })
    const tops = arrange(boxes, { active: this.active, gap: GAP, top: 0 })
    let height = 0
    for (const [at, card] of cards.entries()) {
      const box = boxes[at]
      const top = Math.round(tops.get(box?.id ?? "") ?? 0)
      card.style.translate = `0 ${top}px`
      height = Math.max(height, top + (box?.height ?? 0))
    }
    this.list.style.height = `${height}px`
    this.#connect(boxes, tops, origin)
  }

  /**
   * @param {Box[]} boxes
   * @param {Map<string, number>} tops
   * @param {DOMRect} origin
   */
  #connect(boxes, tops, origin) {
    const desk = this.desk.getBoundingClientRect()
    const paper = byId("paper").getBoundingClientRect()
    const edge = paper.right - desk.left - 18
    const connectors = boxes.map(({ id }) => {
      const coordinates = this.editor.coordinatesAt(this.#passageOf(id)?.to ?? 0, -1)
      const active = id === this.active
      return {
        id,
        active,
        // Only the active one runs under its line: beside the others it would look like a mark.
        from: { x: active ? coordinates.left - desk.left : edge - 14, y: coordinates.bottom - desk.top - 1 },
        edge,
        to: { x: origin.left - desk.left, y: origin.top + (tops.get(id) ?? 0) + CONNECTOR_AT - desk.top },
      }
    })
    this.connectors.draw(connectors)
  }
}

/**
 * Puts exactly these children in this order, without moving the one that has the focus: moving an
 * element takes the focus from it, and ends a composition in it.
 *
 * @param {HTMLElement} parent
 * @param {HTMLElement[]} children
 */
function inOrder(parent, children) {
  const now = [...parent.children]
  if (now.length === children.length && now.every((child, at) => child === children[at])) return
  const pivot = children.findIndex(
    (child) => child.parentElement === parent && child.contains(document.activeElement),
  )
  const focused = children[pivot]
  for (const child of now) if (!children.includes(/** @type {HTMLElement} */ (child))) child.remove()
  if (!focused) return parent.replaceChildren(...children)
  for (const child of children.slice(0, pivot)) parent.insertBefore(child, focused)
  for (const child of children.slice(pivot + 1)) parent.append(child)
}
