/**
 * The margin: every review as a card, beside its text.
 *
 * Three tabs: the open reviews, each card level with its passage; the done ones and the lost ones,
 * whose passage is gone, as plain lists. On a narrow window the same element is a sheet from below
 * and the open cards simply follow each other, too.
 */

import { refusalOf } from "../desk/banner.ts"
import type { Editor } from "../desk/editor.ts"
import type { Review } from "../lib/api.ts"
import { byId, el, refuse, write } from "../lib/dom.ts"
import { number, t } from "../lib/i18n.ts"
import type { Store } from "../store.ts"
import type { CardContext, ReviewCard } from "./card.ts"
import { CardKeys } from "./card_keys.ts"
import type { Decisions } from "./decisions.ts"
import { MarginTabs } from "./margin_tabs.ts"
import { isSuggestion } from "./parts.ts"
import { DRAFT, Placement } from "./placement.ts"
import type { Reviews } from "./reviews.ts"
import { Sheet } from "./sheet.ts"
import type { Unread } from "./unread.ts"

type MakeCard = (review: Review, context: CardContext) => ReviewCard

/** The part of the state that a card shows. */
const SHOWN = ["phase", "link", "role", "me"]

export class Margin {
  declare editor: Editor
  declare reviews: Reviews
  declare store: Store
  declare decisions: Decisions
  declare unread: Unread
  declare makeCard: MakeCard
  declare desk
  declare element
  declare list
  declare tabs: MarginTabs
  declare placement: Placement
  #cards: Map<string, ReviewCard> = new Map()
  #draft: HTMLElement | null = null
  #frame = 0
  #stale = false
  /** Whether the next arrangement brings the active card into the window. */
  #reveals = false
  #narrow = window.matchMedia("(max-width: 899px)")
  active: string | null = null

  constructor(editor: Editor, reviews: Reviews, store: Store, decisions: Decisions, unread: Unread, makeCard: MakeCard) {
    this.editor = editor
    this.reviews = reviews
    this.store = store
    this.decisions = decisions
    this.unread = unread
    this.makeCard = makeCard
    this.desk = byId("desk")
    this.element = byId("margin")
    this.list = byId("cards")
    this.tabs = new MarginTabs()
    this.placement = new Placement(editor, reviews, (id, near) => this.#show(id, near))
  }

  start(signal: AbortSignal) {
    const redraw = () => this.#drawSoon()
    const [bar, head] = [byId("bar"), byId("margin-head")]
    this.reviews.addEventListener("change", redraw, { signal })
    // Not for each key: the count of unsaved edits is of no card.
    const isOfCards = (event: Event) => SHOWN.some((name) => name in (event as CustomEvent).detail)
    this.store.addEventListener("change", (event) => isOfCards(event) && redraw(), { signal })
    this.unread.addEventListener("change", redraw, { signal })
    this.editor.addEventListener("geometry", () => this.arrangeSoon(), { signal })
    this.element.addEventListener("resized", () => this.arrangeSoon(), { signal })
    this.element.addEventListener("input", () => this.#revealSoon(), { signal })
    this.tabs.addEventListener("change", () => this.arrangeSoon(), { signal })
    this.tabs.start(signal)
    this.element.addEventListener("wheel", (event) => this.#wheel(event), { signal, passive: false })
    // Not `click`: a pressed card moves to its passage, and the click is then one beside it.
    this.desk.addEventListener("mousedown", ({ target }) => this.#release(target), { signal })
    new CardKeys(this.element, (id) => this.focusCard(id)).start(signal)
    byId("cards-above").addEventListener("click", () => this.#showAbove(), { signal })
    this.placement.start(signal)
    new Sheet(this.editor, {
      isOpen: () => this.#narrow.matches && this.sheetIsOpen,
      isDrafting: () => this.isDrafting,
      close: () => this.closeSheet(),
      resized: () => this.sheetIsOpen && this.#revealSoon(),
    }).start(signal)
    this.#narrow.addEventListener("change", () => this.#resized(), { signal })
    const sizes = new ResizeObserver(() => {
      this.#measure()
      this.arrangeSoon()
    })
    for (const element of [bar, head, this.desk, this.list]) sizes.observe(element)
    signal.addEventListener("abort", () => sizes.disconnect())
    byId("sheet-close").addEventListener("click", () => this.closeSheet(), { signal })
    byId("sheet-open").addEventListener("click", () => this.openSheet(), { signal })
    document.fonts.ready.then(() => this.arrangeSoon())
    this.draw()
  }

  activate(id: string | null) {
    if (id !== null) this.tabs.show(this.#tabOf(id))
    if (id === this.active) return
    this.active = id
    this.#reveals = true
    this.editor.activate(id === DRAFT ? null : id)
    this.draw()
    if (this.#narrow.matches && id !== null) this.cardOf(id)?.scrollIntoView({ block: "nearest" })
  }

  cardOf(id: string): HTMLElement | null {
    return id === DRAFT ? this.#draft : (this.#cards.get(id)?.element ?? null)
  }

  /** Whether a card, with its buttons, is shown beside the text. */
  isBeside(id: string) {
    return !this.#narrow.matches && (this.cardOf(id)?.checkVisibility() ?? false)
  }

  focusCard(id: string) {
    this.openSheet()
    this.tabs.show(this.#tabOf(id))
    const isPlaced = this.tabs.shown === "open" && !this.#narrow.matches
    // The arrangement scrolls to a placed card: the browser does not know where it will stand.
    this.cardOf(id)?.focus({ preventScroll: isPlaced })
    this.#revealSoon()
  }

  /** Goes with a card into the tab of its review, where the card keeps the focus. */
  follow(id: string) {
    this.activate(id)
    this.draw()
  }

  /** Opens the form of a card. */
  edit(id: string) {
    this.activate(id)
    this.openSheet()
    this.#cards.get(id)?.edit()
  }

  #tabOf(id: string) {
    const review = this.reviews.get(id)
    if (id === DRAFT || !review) return "open"
    if (review.status !== "open") return "done"
    return this.reviews.isLost(id) ? "lost" : "open"
  }

  /** Whether a new review is being written. */
  get isDrafting() {
    return this.#draft !== null
  }

  /** A card for a new review, or none any more. */
  showDraft(form: HTMLElement | null) {
    this.#draft = form && el("li", { class: "card card-draft", "data-active": "true" }, form)
    this.active = form ? DRAFT : null
    this.editor.activate(null)
    this.element.dataset.drafting = String(form !== null)
    if (form) {
      this.tabs.show("open")
      this.openSheet()
      this.#reveals = true
    }
    this.draw()
  }

  get sheetIsOpen() {
    return document.body.dataset.sheet === "open"
  }

  openSheet() {
    if (!this.#narrow.matches) return
    document.body.dataset.sheet = "open"
    this.#revealSoon()
    requestAnimationFrame(() => {
      // The head is higher once a form has left the sheet: the card stands below it.
      this.#measure()
      this.cardOf(this.active ?? "")?.scrollIntoView({ block: "start" })
    })
  }

  /** The heights that the style of the cards needs. */
  #measure() {
    const bar = byId("bar")
    // In a low window the bar scrolls away with the text.
    const height = getComputedStyle(bar).position === "sticky" ? bar.offsetHeight : 0
    this.desk.style.setProperty("--bar-height", `${height}px`)
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
    const cards = (reviews: Review[]) =>
      reviews.map((review) => {
        shown.add(review.id)
        return this.#card(review).element
      })
    const placed: HTMLElement[] = cards(open)
    if (this.#draft) placed.splice(this.#draftIndex(open), 0, this.#draft)
    inOrder(this.list, placed)
    this.placement.setCards(placed)
    const listed = [cards(orphans), cards(done)]
    const refusal = refusalOf(this.store.state)
    if (refusal !== "") for (const form of this.element.querySelectorAll("form")) refuse(form, refusal)
    inOrder(byId("lost-cards"), listed[0] ?? [])
    inOrder(byId("done-cards"), listed[1] ?? [])
    this.tabs.draw({ open: open.length, done: done.length, lost: orphans.length }, {
      open: this.#countUnread(open), done: this.#countUnread(done), lost: this.#countUnread(orphans),
    })
    write(byId("sheet-count"), number(open.length + orphans.length))
    byId("no-reviews").hidden = open.length !== 0 || this.#draft !== null
    write(byId("no-reviews"), t(this.#emptyText(done.length + orphans.length)))
    for (const [id, card] of this.#cards) {
      if (shown.has(id)) continue
      card.element.remove()
      this.#cards.delete(id)
    }
    this.#restoreFocus(focused)
    this.arrangeSoon()
  }

  #countUnread = (reviews: Review[]) => reviews.filter((review) => this.unread.has(review)).length

  /** @param others reviews of the other tabs */
  #emptyText(others: number) {
    if (0 < others) return "review.none.open"
    const { role, link } = this.store.state
    if (role === "reviewer") return "review.none.reader"
    return link?.reviewer ? "review.none" : "review.none.alone"
  }

  #card(review: Review) {
    const { role, me, link } = this.store.state
    const state = review.status === "open" ? this.reviews.stateOf(review) : (review.anchor?.state ?? "exact")
    const isChanged = role === "writer" && state === "edited" && isSuggestion(review)
    const context = {
      state,
      texts: isChanged ? this.reviews.textsAt(review.id) : null,
      active: this.active === review.id,
      unread: this.unread.has(review),
      role: role ?? "reviewer",
      seated: this.store.seated,
      me: me?.id ?? "",
      writer: link?.writer.name ?? t("role.writer"),
      undoable: this.decisions.undoableSize(review),
      roleOf: (author: Review["author"]) => this.reviews.roleOf(author),
    }
    const existing = this.#cards.get(review.id)
    if (existing) {
      existing.update(review, context)
      if (existing.isNear || context.active) this.unread.watch(review, existing.element, context.active)
      return existing
    }
    const card = this.makeCard(review, context)
    this.#cards.set(review.id, card)
    return card
  }

  /** Draws a card that is near the window; one far from it is not watched. */
  #show(id: string, near: boolean) {
    const card = this.#cards.get(id)
    if (!card || card.isNear === near) return
    card.show(near)
    if (near) this.unread.watch(card.review, card.element, card.context.active)
    else this.unread.forget(card.element)
  }

  #draftIndex(open: Review[]) {
    if (this.editor.marked.pending === null) return 0
    const at = this.editor.inView(this.editor.marked.pending).from
    const next = open.findIndex(({ id }) => at < (this.reviews.lastPassageOf(id)?.from ?? 0))
    return next === -1 ? open.length : next
  }

  #focusedCard() {
    const card = document.activeElement?.closest(".card")
    return card instanceof HTMLElement ? { card, index: [...this.list.children].indexOf(card) } : null
  }

  /** A card that went away with the focus in it hands it to its neighbour, or to the text. */
  #restoreFocus(focused: { card: HTMLElement, index: number } | null) {
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

  #revealSoon() {
    this.#reveals = true
    this.arrangeSoon()
  }

  #arrange() {
    if (this.#narrow.matches || this.tabs.shown !== "open") {
      this.placement.clear(this.active, this.#narrow.matches)
      if (this.#narrow.matches && this.#reveals && this.sheetIsOpen) this.placement.revealAbove(this.element, this.active)
      this.#reveals = false
      return
    }
    const hasGrown = this.placement.arrange(this.active)
    this.#reveals ||= hasGrown
    this.#reveals &&= this.placement.reveal()
  }

  /** Activates the first of the cards above the column. */
  #showAbove() {
    const first = this.placement.above[0]
    if (first === undefined) return
    this.activate(first)
    this.focusCard(first)
  }

  /** At the top of the page the column scrolls on by itself, and back before the page does. */
  #wheel(event: WheelEvent) {
    const isDown = 0 < event.deltaY
    if (this.#narrow.matches || this.tabs.shown !== "open" || event.ctrlKey || (!isDown && 0 < window.scrollY)) return
    if (this.placement.scroll(event.deltaY * (event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 20 : 1))) event.preventDefault()
  }

  /** A press beside the paper lets the active card go. */
  #release(target: EventTarget | null) {
    if (this.#draft || !(target instanceof Element) || target.closest("#paper, #margin-head, .card, button")) return
    this.activate(null)
  }
}

/**
 * Puts exactly these children in this order, without moving the one that has the focus: moving an
 * element takes the focus from it, and ends a composition in it.
 */
function inOrder(parent: HTMLElement, children: HTMLElement[]) {
  const now = [...parent.children]
  if (now.length === children.length && now.every((child, at) => child === children[at])) return
  const pivot = children.findIndex(
    (child) => child.parentElement === parent && child.contains(document.activeElement),
  )
  const focused = children[pivot]
  for (const child of now) if (!children.includes(child as HTMLElement)) child.remove()
  if (!focused) return parent.replaceChildren(...children)
  for (const child of children.slice(0, pivot)) parent.insertBefore(child, focused)
  for (const child of children.slice(pivot + 1)) parent.append(child)
}
