// @ts-check
/**
 * Which of our edits the server has not yet called safe.
 *
 * `document.saved` names a state vector: for each client how far its insertions survive any crash.
 * An edit that inserts is safe when the vector covers it. A deletion moves no clock, so a vector
 * alone says nothing about it. Two rules close that gap:
 *
 * - the server stores in the order it receives, so an edit that is safe makes all before it safe;
 * - a word that covers nothing new can only be about deletions: it makes those that lead safe.
 *   Except the first word on a connection, which only says how things stood before it.
 *
 * A deletion that shared its commit with an insertion may be left over by these rules. `needsProof`
 * says so after a while, and the caller makes an edit whose safety can be seen.
 *
 * Pure, tested with `node --test`.
 */

/**
 * @typedef {ReadonlyMap<number, number>} Clocks client → how far
 * @typedef {{ clocks: Clocks, at: number }} Edit no clocks: it only deleted
 */

/** How long a deletion may wait for the server's word before it is asked for, in ms. */
const PATIENCE = 1_500

/** @param {Clocks} have @param {Clocks} need */
export function covers(have, need) {
  for (const [client, clock] of need) {
    if ((have.get(client) ?? 0) < clock) return false
  }
  return true
}

export class Unsaved {
  /** @type {Edit[]} */
  #edits = []
  /** @type {Map<number, number>} */
  #safe = new Map()

  /**
   * @param {Clocks} before the clocks of the clients it advanced, before
   * @param {Clocks} after and after
   * @param {number} at
   */
  edited(before, after, at) {
    for (const client of after.keys()) {
      if (!this.#safe.has(client)) this.#safe.set(client, before.get(client) ?? 0)
    }
    this.#edits.push({ clocks: after, at })
  }

  /**
   * The server called everything up to there safe.
   *
   * @param {Clocks} clocks
   * @param {{ afterOurs: boolean }} options whether it was said after our edits had reached it
   */
  saved(clocks, { afterOurs }) {
    for (const client of this.#safe.keys()) {
      this.#safe.set(client, Math.max(this.#safe.get(client) ?? 0, clocks.get(client) ?? 0))
    }
    const last = this.#edits.findLastIndex(
      ({ clocks: need }) => 0 < need.size && covers(this.#safe, need),
    )
    const kept = this.#edits.slice(last + 1)
    const insertion = kept.findIndex(({ clocks: need }) => 0 < need.size)
    const leading = insertion === -1 ? kept.length : insertion
    this.#edits = last === -1 && afterOurs ? kept.slice(leading) : kept
  }

  get count() {
    return this.#edits.length
  }

  /** When the oldest of them was made, in ms. @returns {number | null} */
  get since() {
    return this.#edits[0]?.at ?? null
  }

  get deletions() {
    return this.#edits.filter(({ clocks }) => clocks.size === 0).length
  }

  /** How far each of our clients is safe; what it holds beyond is not. @returns {Clocks} */
  get safe() {
    return this.#safe
  }

  /** Nothing but deletions is left, and for too long. @param {number} now in ms */
  needsProof(now) {
    const first = this.#edits[0]
    return (
      first !== undefined &&
      PATIENCE <= now - first.at &&
      this.#edits.every(({ clocks }) => clocks.size === 0)
    )
  }
}

/**
 * The sentences that hold any of these ranges, each once, in order.
 *
 * @param {string} text
 * @param {readonly { from: number, to: number }[]} ranges in UTF-16 units, in order
 * @param {string} language
 * @returns {string[]}
 */
export function sentencesAt(text, ranges, language) {
  const segmenter = new Intl.Segmenter(language, { granularity: "sentence" })
  const found = []
  for (const { index, segment } of segmenter.segment(text)) {
    const end = index + segment.length
    // A space typed after a sentence belongs to it here, and does not make it unsaved.
    const isIn = ranges.some(
      ({ from, to }) => text.slice(Math.max(from, index), Math.min(to, end)).trim() !== "",
    )
    if (isIn) found.push(segment.trim())
  }
  return found
}
