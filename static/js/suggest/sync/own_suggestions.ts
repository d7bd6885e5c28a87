/**
 * The reviewer's own suggestions between three sides: the text of the editor, the list of reviews, and the server.
 *
 * The model (`suggesting.ts`) knows which suggestions stand in the text. This module gives it what the server decided,
 * deleted, took back or moved, and what came of another page. A suggestion that cannot stand in the text is drawn as on
 * the writer's page.
 *
 * Fires `change` when the set of suggestions in the text changes.
 */

import type { Review } from "../../lib/api.ts"
import { isSuggestion, olderFirst } from "../../reviews/parts.ts"
import type { Reviews } from "../../reviews/reviews.ts"
import { isWhole } from "../../reviews/spots.ts"
import type { Mirror } from "./mirror.ts"
import { isElsewhere, isOrphaned, isPinned, suggestionOf, verdictOf } from "./served_parts.ts"
import { Suggesting } from "./suggesting.ts"

const WITHDRAWN = "withdrawn"
/** After a change of the base a suggestion that did not stand is tried again, in ms. */
const RETRY_DELAY = 300
/** The text of an accepted suggestion comes within this, in ms, or the writer changed it at once. */
const ARRIVAL_DELAY = 5_000

/** A new id: 22 characters of 64, as the server takes them. */
function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").slice(0, 22)
}

export class OwnSuggestions extends EventTarget {
  declare mirror: Mirror
  declare reviews: Reviews
  /** Whether an answer of the server is on its way, which events may overtake. */
  declare isSending: () => boolean
  /** The state of each review of the list that the model has; `WITHDRAWN`: this page withdrew it. */
  #given: Map<string, string> = new Map()
  /** The version of each suggestion that was renewed. */
  #renewed: Map<string, number> = new Map()
  #isDue = false
  #timer = 0
  #arrivalTimer = 0

  constructor(mirror: Mirror, reviews: Reviews, isSending: () => boolean) {
    super()
    this.mirror = mirror
    this.reviews = reviews
    this.isSending = isSending
  }

  start(signal: AbortSignal) {
    this.reviews.addEventListener("change", () => this.syncSoon(), { signal })
    // The server found a suggestion again in the state that the model has.
    this.reviews.addEventListener("change", () => this.#retrySoon(), { signal })
    for (const kind of ["moved", "own"]) this.mirror.addEventListener(kind, () => this.#retrySoon(), { signal })
  }

  stop() {
    window.clearTimeout(this.#timer)
    window.clearTimeout(this.#arrivalTimer)
  }

  get model() {
    return this.mirror.model
  }

  /** Takes a suggestion back. */
  remove(id: string) {
    this.mirror.change((model) => [model.remove(id)])
    this.dispatchEvent(new Event("change"))
  }

  /** The server deleted a suggestion that this page withdrew. */
  withdrew(id: string) {
    this.#given.set(id, WITHDRAWN)
  }

  /** A batch has its answer. The page takes over the events that waited for it, and retries suggestions that one which ended kept out. */
  sent() {
    this.syncSoon()
    this.#retrySoon()
  }

  /** The list of reviews changed, perhaps in the middle of an update of the editor. */
  syncSoon() {
    if (this.#isDue) return
    this.#isDue = true
    queueMicrotask(() => {
      this.#isDue = false
      // An event about a suggestion may come before the answer that it is of.
      if (this.reviews.isRead && !this.isSending()) this.#sync()
    })
  }

  /** A suggestion that did not stand in the text before a change may stand now, also one that the server did not find. */
  #retrySoon() {
    window.clearTimeout(this.#timer)
    const isHere = ({ id }: Review) => !this.mirror.isInView(id) && this.#given.get(id) !== WITHDRAWN && isWhole(this.#spots(id))
    const here = this.model ? this.#own.filter(isHere) : []
    if (here.length === 0) return
    this.#timer = window.setTimeout(() => {
      for (const { id } of here) if (this.#given.get(id) !== WITHDRAWN) this.#given.delete(id)
      this.syncSoon()
    }, RETRY_DELAY)
  }

  /** The spots of a suggestion in the base. */
  #spots(id: string) {
    return this.reviews.editor.marked.passages.get(id)?.spots ?? []
  }

  /** The own open suggestions of the list. */
  get #own() {
    const { all, me } = this.reviews
    return all.filter((review) => review.author.id === me && review.status === "open" && isSuggestion(review))
  }

  /** Those with a spot, the oldest first. */
  get #open() {
    const open = this.#own.filter((review) => !this.#isLost(review))
    return open.sort((one, other) => olderFirst({ id: one.id, since: one.created_at }, { id: other.id, since: other.created_at }))
  }

  /** Whether neither the server nor this page found a position: the writer may undo a deletion that the server read. */
  #isLost(review: Review) {
    return isOrphaned(review) && !isWhole(this.#spots(review.id))
  }

  #sync() {
    if (this.model === null) return this.#begin()
    this.mirror.change((model) => [...this.#closed(model), ...this.#opened(model)])
    this.#renew(this.model)
    window.clearTimeout(this.#arrivalTimer)
    if (this.model.isWaiting) this.#arrivalTimer = window.setTimeout(() => this.#endWaiting(), ARRIVAL_DELAY)
    this.dispatchEvent(new Event("change"))
  }

  #endWaiting() {
    this.mirror.change((model) => [model.endWaiting()])
    this.dispatchEvent(new Event("change"))
  }

  #begin() {
    const open = this.#open
    for (const review of open) this.#give(review)
    const suggestions = open.map((review) => suggestionOf(review, this.#spots(review.id)))
    this.mirror.begin(new Suggesting(this.mirror.overlay.base, suggestions, newId))
    this.dispatchEvent(new Event("change"))
  }

  /** The edits of the view for suggestions that are closed, deleted or without a spot. */
  #closed(model: Suggesting) {
    const listed = new Set([...this.#given.keys(), ...model.suggestions.map(({ id }) => id)])
    return [...listed].flatMap((id) => {
      const review = this.reviews.get(id)
      const given = this.#given.get(id)
      if (given === WITHDRAWN) return []
      if (review?.status === "open") return this.#isLost(review) ? [model.orphaned(id)] : []
      // One that is new here may have been acknowledged before its event comes.
      if (!review && given === undefined) return []
      this.#given.delete(id)
      return [model.decided(id, review ? verdictOf(review) : "withdrawn")]
    })
  }

  /** The edits of the view for suggestions that are new, newer, or open again. */
  #opened(model: Suggesting) {
    return this.#open.flatMap((review) => {
      const given = this.#given.get(review.id)
      if (given === WITHDRAWN || given === stampOf(review)) return []
      this.#give(review)
      return [model.opened(suggestionOf(review, this.#spots(review.id)))]
    })
  }

  /**
   * A passage that came back has other letters for the server than for this page, and a gap whose letters are gone may have
   * another position: each version is renewed once.
   */
  #renew(model: Suggesting) {
    for (const suggestion of model.suggestions) {
      const { id, version } = suggestion
      const review = this.reviews.get(id)
      if (!review || review.version !== version || this.#renewed.get(id) === version || this.#isLost(review)) continue
      const spots = this.#spots(id)
      if ((!isWhole(spots) || isElsewhere(suggestion, spots)) && model.renew(id)) this.#renewed.set(id, version)
    }
  }

  #give(review: Review) {
    this.#given.set(review.id, stampOf(review))
  }
}

/** The state of a review that the model has. */
const stampOf = (review: Review) => `${review.version} ${isPinned(review)} ${review.parts.map(({ anchor }) => anchor.state).join(" ")}`
