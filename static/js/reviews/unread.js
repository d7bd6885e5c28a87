// @ts-check
/**
 * Marks the reviews with unseen changes of the other user, and stores how far they are seen.
 *
 * A change is seen when its card is active, or was at least half in the window for a second while the
 * page was visible. The page stores the number after a pause, and when the reader leaves.
 *
 * Fires `change` when a review becomes seen.
 */

import { announce } from "../lib/announce.js"
import * as api from "../lib/api.js"
import { byId } from "../lib/dom.js"
import { t } from "../lib/i18n.js"
import { changeMenu } from "./margin_tabs.js"
import { isUnread, seenUpTo } from "./seen.js"

/** How long a card must be in the window, in ms. */
const LOOK = 1_000
/** How much of a card must be in the window. */
const PART = 0.5
/** Between the last seen card and the request that stores it, in ms. */
const STORE_DELAY = 1_000

export class Unread extends EventTarget {
  /** @type {Map<string, number>} */
  #read = new Map()
  #seen = 0
  #stored = 0
  #storing = 0
  /** Unread cards, and the review of each. @type {Map<Element, string>} */
  #watched = new Map()
  /** @type {Map<Element, number>} */
  #looks = new Map()
  /** @type {IntersectionObserver | null} */
  #window = null

  /** @param {import("./reviews.js").Reviews} reviews @param {import("../store.js").Store} store */
  constructor(reviews, store) {
    super()
    this.reviews = reviews
    this.store = store
  }

  /** @param {AbortSignal} signal */
  start(signal) {
    // The bars above and below cover this much of the window.
    this.#window = new IntersectionObserver((entries) => this.#looked(entries), { threshold: PART, rootMargin: "-70px 0px -46px 0px" })
    this.store.addEventListener("change", () => this.#applySeen(), { signal })
    this.reviews.addEventListener("change", () => this.#count(), { signal })
    byId("read-all").addEventListener("click", () => this.#readAll(), { signal })
    document.addEventListener("visibilitychange", () => this.#visibilityChanged(), { signal })
    window.addEventListener("pagehide", () => this.#store({ keepalive: true }), { signal })
    this.#applySeen()
  }

  /** @param {api.Review} review */
  has(review) {
    return isUnread(review, this.#reader)
  }

  /** Watches the card of an unread review until it is seen. @param {api.Review} review @param {HTMLElement} card @param {boolean} active */
  watch(review, card, active) {
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

  /** @param {readonly api.Review[]} reviews */
  #markSeen(reviews) {
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

  /** @param {{ keepalive?: boolean }} [options] */
  #store({ keepalive = false } = {}) {
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

  /** @param {IntersectionObserverEntry[]} entries */
  #looked(entries) {
    for (const { target, isIntersecting, intersectionRatio } of entries) {
      window.clearTimeout(this.#looks.get(target))
      this.#looks.delete(target)
      if (!isIntersecting || intersectionRatio < PART || document.hidden) continue
      this.#looks.set(target, window.setTimeout(() => this.#looks.delete(target) && this.#sawCard(target), LOOK))
    }
  }

  /** @param {Element} card */
  #sawCard(card) {
    const review = this.reviews.get(this.#watched.get(card) ?? "")
    if (review && this.has(review)) this.#markSeen([review])
  }

  /** @param {Element} card */
  forget(card) {
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
