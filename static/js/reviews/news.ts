/**
 * New comments and replies of the other user: counted in the margin's head, and spoken, at most one sentence
 * in a while. Owns one element, which leads to the last of them.
 */

import { announce } from "../lib/announce.ts"
import type { Review } from "../lib/api.ts"
import { byId, drawWith, el, isDrawn } from "../lib/dom.ts"
import { number, t, tCount } from "../lib/i18n.ts"
import { now } from "../lib/server_clock.ts"
import type { Store } from "../store.ts"
import { sayParts } from "./part_text.ts"
import { isSuggestion } from "./parts.ts"
import type { Reviews } from "./reviews.ts"
import { isSummary, quoteOf } from "./summary.ts"
import type { Unread } from "./unread.ts"

type NewsItem = { name: string, review: Review, isReply: boolean }

/** How long the page collects before it speaks a sentence, in ms. */
const COLLECT = 400
/** How long the next sentence waits, in ms. */
const SPOKEN = 7_000

export class News {
  declare reviews: Reviews
  declare store: Store
  declare unread: Unread
  declare show: (review: string) => unknown
  #items: NewsItem[] = []
  #timer = 0
  #spokenAt = 0
  #last: string | undefined
  #element = byId("news")

  constructor(reviews: Reviews, store: Store, unread: Unread, show: (review: string) => unknown) {
    this.reviews = reviews
    this.store = store
    this.unread = unread
    this.show = show
  }

  start(signal: AbortSignal) {
    const came = (event: Event) => this.#add((event as CustomEvent<NewsItem>).detail)
    this.reviews.addEventListener("came", came, { signal })
    this.#element.addEventListener("click", () => this.#showLast(), { signal })
    drawWith([this.store], () => this.#draw(), signal)
  }

  #add(item: NewsItem) {
    this.#last = item.review.id
    this.#items.push(item)
    window.clearTimeout(this.#timer)
    this.#timer = window.setTimeout(() => {
      this.#spokenAt = now()
      announce(sentenceOf(this.#items.splice(0)))
    }, Math.max(COLLECT, this.#spokenAt + SPOKEN - now()))
  }

  #draw() {
    const count = this.store.state.unread
    if (isDrawn(this, count)) return
    const hadFocus = document.activeElement === this.#element
    this.#element.hidden = count === 0
    this.#element.replaceChildren(el("span", { class: "unread" }), t("unread.count", { count: number(count) }))
    this.#element.title = t("news.show")
    if (hadFocus && count === 0) byId("tab-open").focus({ preventScroll: true })
  }

  /** The last one that came, or the first that was not seen before this visit. */
  #showLast() {
    const unread = this.reviews.all.filter((review) => this.unread.has(review))
    const next = unread.find(({ id }) => id === this.#last) ?? unread[0]
    if (next) this.show(next.id)
  }
}

/** @param items at least one */
function sentenceOf(items: readonly NewsItem[]) {
  const { name, review, isReply } = items.at(-1) as NewsItem
  if (1 < items.length) return tCount("news.many", items.length, { name })
  if (isReply) return t("news.reply", { name })
  if (isSummary(review)) return t("review.new.summary", { name })
  if (isSuggestion(review)) return t("review.new.suggestion", { name, what: sayParts(review.parts) })
  return t("review.new", { name, quote: quoteOf(review).slice(0, 60) })
}
