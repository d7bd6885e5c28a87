// @ts-check
/**
 * The reviewer's own suggestions between three sides: the text of the editor, the list of reviews, and the server.
 *
 * The model (`suggesting.js`) knows which suggestions stand in the text. This module gives it what the server decided,
 * deleted, took back or moved, and what came of another page. A suggestion that cannot stand in the text is drawn as on
 * the writer's page.
 *
 * Fires `change` when the set of suggestions in the text changes.
 */

import { Suggesting } from "./suggesting.js"
import { isSuggestion } from "../reviews/parts.js"
import { partsIn, verdictOf } from "./served_parts.js"

/**
 * @typedef {import("./suggesting.js").Suggestion} Suggestion
 * @typedef {import("../lib/api.js").Review} Review
 */

/** After a change of the base a suggestion that did not stand is tried again, in ms. */
const RETRY_DELAY = 300

/** A new id: 22 characters of 64, as the server takes them. */
function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").slice(0, 22)
}

export class OwnSuggestions extends EventTarget {
  /** @type {Suggesting | null} */
  model = null
  /** Whether an answer of the server is on its way, which events may overtake. */
  isSending = () => false
  /** The suggestions of which the list has known a review. @type {Set<string>} */
  #listed = new Set()
  /** The last version that was given to the model, or taken out of it by this page. @type {Map<string, string>} */
  #given = new Map()
  /** The suggestions of this moment. @type {Set<string> | null} */
  #ids = null
  #isDue = false
  #timer = 0

  /** @param {import("./mirror.js").Mirror} mirror @param {import("../reviews/reviews.js").Reviews} reviews */
  constructor(mirror, reviews) {
    super()
    this.mirror = mirror
    this.reviews = reviews
  }

  /** @param {AbortSignal} signal */
  start(signal) {
    this.reviews.addEventListener("change", () => this.syncSoon(), { signal })
    this.mirror.addEventListener("moved", () => this.#retrySoon(), { signal })
  }

  stop() {
    window.clearTimeout(this.#timer)
  }

  /** Whether the text contains the words of a suggestion. @param {string} id */
  isInView(id) {
    if (this.#ids === null) {
      // Asked for each of many reviews, one after the other.
      queueMicrotask(() => (this.#ids = null))
      this.#ids = new Set(this.model?.suggestions.map((suggestion) => suggestion.id))
    }
    return this.#ids.has(id)
  }

  /** The suggestion at a position of the editor. @param {number} at */
  idAt(at) {
    return this.model?.at(at)?.id ?? null
  }

  /** Takes a suggestion back. @param {string} id */
  remove(id) {
    this.mirror.change((model) => this.#changed([model.remove(id)]))
    this.dispatchEvent(new Event("change"))
  }

  /** The server deleted a suggestion that this page withdrew. @param {string} id */
  withdrew(id) {
    this.#given.set(id, "withdrawn")
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

  #retrySoon() {
    window.clearTimeout(this.#timer)
    if (this.model && this.#outside().length === 0) return
    this.#timer = window.setTimeout(() => {
      for (const { id } of this.#outside()) if (this.#given.get(id) !== "withdrawn") this.#given.delete(id)
      this.syncSoon()
    }, RETRY_DELAY)
  }

  /** The own open suggestions of the list, the oldest first. */
  get #open() {
    const { all, me } = this.reviews
    const own = all.filter((review) => review.author.id === me && review.status === "open" && isSuggestion(review))
    return own.sort((one, other) => one.created_at.localeCompare(other.created_at))
  }

  #outside() {
    return this.#open.filter(({ id }) => !this.isInView(id))
  }

  #sync() {
    if (this.model === null) return this.#begin()
    this.mirror.change((model) => this.#changed([...this.#closed(model), ...this.#opened(model)]))
    this.dispatchEvent(new Event("change"))
  }

  /** @param {import("@codemirror/state").ChangeSet[]} edits */
  #changed(edits) {
    this.#ids = null
    return edits
  }

  #begin() {
    const { base } = this.mirror.overlay
    const open = this.#open
    for (const review of open) this.#give(review)
    this.model = new Suggesting(base, open.flatMap((review) => suggestionOf(review, base.toString()) ?? []), newId)
    this.#ids = null
    this.mirror.begin(this.model)
    this.dispatchEvent(new Event("change"))
  }

  /** The edits of the view for suggestions that are closed, deleted or without a place. @param {Suggesting} model */
  #closed(model) {
    return model.suggestions.flatMap(({ id }) => {
      const review = this.reviews.get(id)
      if (!review) return this.#listed.has(id) ? [model.decided(id, "withdrawn")] : []
      this.#listed.add(id)
      if (review.status !== "open") return [model.decided(id, verdictOf(review))]
      return review.parts.some(({ anchor }) => anchor.state === "orphaned") ? [model.orphaned(id)] : []
    })
  }

  /** The edits of the view for suggestions that are new or newer. @param {Suggesting} model */
  #opened(model) {
    const text = model.overlay.base.toString()
    return this.#open.flatMap((review) => {
      const { id, version } = review
      this.#listed.add(id)
      const known = model.suggestions.find((suggestion) => suggestion.id === id)
      if (known && known.version !== null && version <= known.version && known.pinned === isPinned(review)) return []
      const suggestion = this.#isGiven(review) ? null : suggestionOf(review, text)
      this.#give(review)
      return suggestion ? [model.opened(suggestion)] : []
    })
  }

  /** @param {Review} review */
  #give(review) {
    this.#listed.add(review.id)
    if (this.#given.get(review.id) !== "withdrawn") this.#given.set(review.id, stamp(review))
  }

  /** @param {Review} review */
  #isGiven(review) {
    const given = this.#given.get(review.id)
    return given === "withdrawn" || given === stamp(review)
  }
}

/** @param {Review} review */
const stamp = (review) => `${review.version} ${isPinned(review)} ${review.anchor?.state}`

/** Whether it is more than its parts. @param {Review} review */
const isPinned = ({ body, replies }) => body !== "" || 0 < replies.length

/** @param {Review} review @param {string} base @returns {Suggestion | null} `null`: it does not stand */
function suggestionOf(review, base) {
  const parts = partsIn(review, base)
  return parts && { id: review.id, version: review.version, parts, pinned: isPinned(review) }
}
