/**
 * The local edits that `document.saved` does not yet cover. The journal stores them (`journal.ts`), so that
 * a closed tab loses none:
 *
 * - **J1** The stored rows and the pending edits together are the unsaved edits, at any moment.
 * - **J2** The journal merges rows only while no write is in flight. So it knows the key of each row that
 *   the merged one replaces.
 * - **J3** When the seat is lost, the journal queues a row that says so behind all pending writes, however
 *   slow the disk is. A later page applies the edits only if their writer confirms.
 *
 * # How an edit becomes safe
 *
 * `document.saved` names a state vector: for each client how far its insertions survive any crash.
 * An edit that inserts is safe when the vector covers it. A deletion moves no clock, so no vector says
 * anything about it. But the server stores in the order it receives, so an edit that is safe makes
 * all before it safe.
 *
 * An event that covers nothing new is about a deletion, and the page cannot tell which: one that was
 * made first, while those after it are still on their way. So it makes none of them safe. A deletion
 * that nothing follows is left over by this rule: `needsProof` says so after a while, and the caller
 * makes an edit whose safety can be seen.
 *
 * The rule needs a server that took the deletion. A server that denies an edit (a lease that is uncertain,
 * a full backlog) may take an insertion after a deletion that it denied. So a denial suspends the rule
 * for all deletions made so far, until the page has answered a sync step 1, which sends all deletions
 * anew, and an insertion made after that answer is safe.
 *
 * Pure, tested with `node --test`.
 */

/** Client → how far. */
export type Clocks = ReadonlyMap<number, number>
/** No clocks: it only deleted. */
type Edit = { clocks: Clocks, at: number }

/** How long a deletion may wait for an edit that makes it safe before one is made, in ms. */
const PROOF_DELAY = 1_500

export function covers(have: Clocks, need: Clocks) {
  for (const [client, clock] of need) {
    if ((have.get(client) ?? 0) < clock) return false
  }
  return true
}

export class Unsaved {
  #edits: Edit[] = []
  /** How many were called safe: always the first of all. */
  #savedCount = 0
  #savedClocks: Map<number, number> = new Map()
  /** The server may lack deletions up to this edit; 0 for none. */
  #denied = 0
  /** The last edit when all deletions were sent anew; `null`: they were not, since the last denial. */
  #resent = null as number | null

  /**
   * @param before the clocks of the clients it advanced, before
   * @param after and after
   * @returns of this edit: each has one more than the one before
   */
  edited(before: Clocks, after: Clocks, at: number): number {
    for (const client of after.keys()) {
      if (!this.#savedClocks.has(client)) this.#savedClocks.set(client, before.get(client) ?? 0)
    }
    return this.#savedCount + this.#edits.push({ clocks: after, at })
  }

  /** The server called everything up to there safe. */
  saved(clocks: Clocks) {
    for (const client of this.#savedClocks.keys()) {
      this.#savedClocks.set(client, Math.max(this.#savedClocks.get(client) ?? 0, clocks.get(client) ?? 0))
    }
    const last = this.#edits.findLastIndex(
      ({ clocks: need }) => 0 < need.size && covers(this.#savedClocks, need),
    )
    const isProof = this.#resent !== null && this.#resent <= this.#savedCount + last
    if (isProof) this.#denied = 0
    // The pieces of an answer (`seat/update_pieces.ts`) may bring an insertion before an older one of another client.
    const stays = this.#edits.findIndex(({ clocks: need }, index) =>
      need.size === 0 ? this.#savedCount + index < this.#denied : !covers(this.#savedClocks, need),
    )
    const end = stays === -1 ? last + 1 : Math.min(last + 1, stays)
    this.#edits = this.#edits.slice(end)
    this.#savedCount += end
  }

  /** The server denied an edit. The event does not name it. */
  denied() {
    this.#denied = this.#last
    this.#resent = null
  }

  /** The page answered a sync step 1: the server was sent every deletion. */
  resent() {
    if (this.#denied !== 0) this.#resent = this.#last
  }

  /** The number of the last edit. */
  get #last() {
    return this.#savedCount + this.#edits.length
  }

  /** The number of the last edit that is safe with all before it; 0 for none. */
  get savedTo() {
    return this.#savedCount
  }

  get count() {
    return this.#edits.length
  }

  /** When the oldest of them was made, in ms. */
  get since(): number | null {
    return this.#edits[0]?.at ?? null
  }

  get deletions() {
    return this.#edits.filter(({ clocks }) => clocks.size === 0).length
  }

  /** How far each of our clients is safe; what it holds beyond is not. */
  get savedClocks(): Clocks {
    return this.#savedClocks
  }

  /**
   * Nothing but deletions waits, and for too long. After a denial an insertion proves nothing before the
   * deletions were sent anew.
   *
   * @param now in ms
   */
  needsProof(now: number) {
    const first = this.#edits[0]
    return (
      first !== undefined &&
      PROOF_DELAY <= now - first.at &&
      (this.#denied === 0 || this.#resent !== null) &&
      this.#edits.every(({ clocks }) => covers(this.#savedClocks, clocks))
    )
  }
}

/** So much of a line on both sides of a range is looked through for where a sentence ends. */
const AROUND = 1_000
/** More than this at once is not divided into sentences: that takes longer with its square. */
const DIVIDED_MAX = 20_000

/**
 * The sentences that hold any of these ranges, each once, in order.
 *
 * @param ranges in UTF-16 units, in order
 */
export function sentencesAt(text: string, ranges: readonly { from: number, to: number }[], language: string): string[] {
  const segmenter = new Intl.Segmenter(language, { granularity: "sentence" })
  const found = []
  let done = 0
  for (const { from: start, to: end } of linesAround(text, ranges)) {
    const part = text.slice(start, end)
    const segments = DIVIDED_MAX < part.length ? [{ index: 0, segment: part }] : segmenter.segment(part)
    const near = ranges.filter(({ from, to }) => from < end && start < to)
    for (const { index, segment } of segments) {
      const [from, to] = [start + index, start + index + segment.length]
      // A space typed after a sentence belongs to it here, and does not make it unsaved.
      const isIn = near.some((range) => text.slice(Math.max(range.from, from), Math.min(range.to, to)).trim() !== "")
      if (isIn && done <= from) found.push(segment.trim())
      if (isIn) done = to
    }
  }
  return found
}

/** The lines that hold any of these ranges, or what is near them in a very long one. */
function linesAround(text: string, ranges: readonly { from: number, to: number }[]) {
  const found: { from: number, to: number }[] = []
  for (const { from, to } of ranges) {
    const first = Math.max(text.lastIndexOf("\n", from - 1) + 1, from - AROUND, 0)
    const newline = text.indexOf("\n", to)
    const last = Math.min(newline === -1 ? text.length : newline, to + AROUND)
    const before = found.at(-1)
    if (before && first <= before.to) before.to = Math.max(before.to, last)
    else found.push({ from: first, to: last })
  }
  return found
}
