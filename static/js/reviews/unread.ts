/**
 * Marks the reviews with unseen changes of the other user, and stores how far they are seen.
 *
 * A change is seen when its card is active, or was at least half in the window for a second while the
 * page was visible. The page stores the number after a pause, and when the reader leaves.
 *
 * Fires `change` when a review becomes seen.
 */

import { announce } from "../lib/announce.ts"
import * as api from "../lib/api.ts"
import { byId } from "../lib/dom.ts"
import { t } from "../lib/i18n.ts"
import type { Store } from "../store.ts"
import { changeMenu } from "./margin_tabs.ts"
import type { Reviews } from "./reviews.ts"
import { isUnread, seenUpTo } from "./seen.ts"

/** How long a card must be in the window, in ms. */
const LOOK = 1_000
/** How much of a card must be in the window. */
const PART = 0.5
/** Between the last seen card and the request that stores it, in ms. */
const STORE_DELAY = 1_000

export class Unread extends EventTarget {
  declare reviews: Reviews
  declare store: Store
  #read: Map<string, number> = new Map()
  #seen = 0
  #stored = 0
  #storing = 0
  /** Unread cards, and the review of each. */
  #watched: Map<Element, string> = new Map()
  #looks: Map<Element, number> = new Map()
  #window: IntersectionObserver | null = null

  constructor(reviews: Reviews, store: Store) {
    super()
    this.reviews = reviews
    this.store = store
  }

  start(signal: AbortSignal) {
    // The bars above and below cover this much of the window.
    this.#window = new IntersectionObserver((entries) => this.#looked(entries), { threshold: PART, rootMargin: "-70px 0px -46px 0px" })
    this.store.addEventListener("change", () => this.#applySeen(), { signal })
    this.reviews.addEventListener("change", () => this.#count(), { signal })
    byId("read-all").addEventListener("click", () => this.#readAll(), { signal })
    document.addEventListener("visibilitychange", () => this.#visibilityChanged(), { signal })
    window.addEventListener("pagehide", () => this.#store({ keepalive: true }), { signal })
    this.#applySeen()
  }

  has(review: api.Review) {
    return isUnread(review, this.#reader)
  }

  /** Watches the card of an unread review until it is seen. */
  watch(review: api.Review, card: HTMLElement, active: boolean) {
    if (!this.has(review)) return this.forget(card)
    const isLookedAt = active && !document.hidden && card.checkVisibility({ visibilityProperty: true })
    if (isLookedAt) return this.#markSeen([review])
    if (this.#watched.has(card)) return
    this.#watched.set(card, review.id)
    this.#window?.observe(card)
  }

  get #reader() {
    return { me: this.reviews.me, seen: this.#seen, read: this.#read }
  }

  #applySeen() {
    const { seen } = this.store.state.link ?? {}
    if (seen === undefined || seen <= this.#seen) return
    this.#seen = seen
    this.#stored = Math.max(this.#stored, seen)
    this.#count()
    this.dispatchEvent(new Event("change"))
  }

  #count() {
    const count = this.reviews.all.filter((review) => this.has(review)).length
    changeMenu(() => ["read-all", "sheet-unread"].forEach((id) => (byId(id).hidden = count === 0)))
    this.store.change({ unread: count })
  }

  #markSeen(reviews: readonly api.Review[]) {
    for (const { id, change } of reviews) if (change !== undefined) this.#read.set(id, change)
    this.#count()
    this.dispatchEvent(new Event("change"))
    window.clearTimeout(this.#storing)
    this.#storing = window.setTimeout(() => this.#store(), STORE_DELAY)
  }

  #readAll() {
    this.#markSeen(this.reviews.all.filter((review) => this.has(review)))
    announce(t("unread.none"))
  }

  #store({ keepalive = false }: { keepalive?: boolean } = {}) {
    window.clearTimeout(this.#storing)
    const last = seenUpTo(this.reviews.all, this.#reader)
    if (last <= this.#stored) return
    const before = this.#stored
    this.#stored = last
    api.setSeen(this.reviews.link, last, { keepalive }).catch(() => {
      // The next card that is seen stores it.
      this.#stored = Math.min(this.#stored, before)
    })
  }

  #looked(entries: IntersectionObserverEntry[]) {
    for (const { target, isIntersecting, intersectionRatio } of entries) {
      window.clearTimeout(this.#looks.get(target))
      this.#looks.delete(target)
      if (!isIntersecting || intersectionRatio < PART || document.hidden) continue
      this.#looks.set(target, window.setTimeout(() => this.#looks.delete(target) && this.#sawCard(target), LOOK))
    }
  }

  #sawCard(card: Element) {
    const review = this.reviews.get(this.#watched.get(card) ?? "")
    if (review && this.has(review)) this.#markSeen([review])
  }

  forget(card: Element) {
    if (!this.#watched.delete(card)) return
    this.#window?.unobserve(card)
    window.clearTimeout(this.#looks.get(card))
    this.#looks.delete(card)
  }

  #visibilityChanged() {
    if (document.hidden) {
      for (const timer of this.#looks.values()) window.clearTimeout(timer)
      this.#looks.clear()
      return this.#store({ keepalive: true })
    }
    // The observer reports a card again that is observed anew.
    for (const card of this.#watched.keys()) {
      this.#window?.unobserve(card)
      this.#window?.observe(card)
    }
    this.dispatchEvent(new Event("change"))
  }
}
