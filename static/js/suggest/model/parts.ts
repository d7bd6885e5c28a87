/**
 * From the changes of an overlay to suggestions: each is a list of parts that the writer decides together.
 *
 * - **P1** The parts together, put into the base, give the view. Equal texts give no parts.
 * - **P2** Two parts of one overlay never meet, and none ends inside a word or a grapheme.
 * - **P3** The parts of a paragraph depend on this paragraph alone, but for moves (`moves.ts`).
 *
 * A change of single letters is unreadable, so a part has whole words. Widening each change by itself would
 * break P1 where two meet in one word; their union, read off both texts, does not.
 */

import { ChangeSet, type Text } from "../../lib/vendor.ts"
import { isAcross, joinHunks, type HunkPosition, type Range } from "../../reviews/word_diff.ts"
import { joinMoves } from "./moves.ts"
import type { Overlay } from "./overlay.ts"
import type { Mapping } from "./ranges.ts"
import { shifted, specsWithin, within } from "./tidy.ts"
import { isWordBreak } from "./words.ts"

/** In offsets of the base; a gap has no quote, and ends where it starts. */
export type Part = { start: number, end: number, quote: string, text: string }

/** A phrase whose words are compared anew may be several; the next round rarely changes that. */
const ROUNDS_MAX = 4

/** The mark at the end of a sentence, and quotes and brackets behind it. */
const SENTENCE_END = /[.!?…。！？]["'”’)\]」』]*$/

/**
 * The suggestions that the changes in some ranges of the base make, in the order of the text. Without ranges,
 * all of them.
 */
export function partsOf(overlay: Overlay, ranges: readonly Range[] = [{ from: 0, to: overlay.base.length }]): Part[][] {
  return joinMoves(scopesOf(overlay, ranges).flatMap((scope) => partsIn(overlay, scope).map((part) => [part])))
}

/** The whole paragraphs around some ranges of the base, disjoint and in order, so that no change crosses their edges. */
export function scopesOf(overlay: Overlay, ranges: readonly Range[]): Range[] {
  const scopes: Range[] = []
  for (const range of [...ranges].sort((one, other) => one.from - other.from)) {
    const last = scopes.at(-1)
    if (last && range.to <= last.to) continue
    const scope = paragraphsAround(overlay, range)
    if (last && scope.from <= last.to) scopes.splice(-1, 1, { from: Math.min(last.from, scope.from), to: scope.to })
    else scopes.push(scope)
  }
  return scopes
}

function paragraphsAround({ base, hunks }: Overlay, range: Range) {
  let { from, to } = range
  for (;;) {
    const [start, end] = [base.lineAt(from).from, base.lineAt(to).to]
    from = start
    to = end
    for (const { old } of hunks) {
      if (old.to < start || end < old.from) continue
      from = Math.min(from, old.from)
      to = Math.max(to, old.to)
    }
    if (from === start && to === end) return { from, to }
  }
}

/** @param scope whole paragraphs */
function partsIn(overlay: Overlay, scope: Range): Part[] {
  const viewFrom = overlay.toView(scope.from, -1)
  const base = overlay.base.sliceString(scope.from, scope.to)
  const view = overlay.view.sliceString(viewFrom, overlay.toView(scope.to, 1))
  const inside = overlay.hunks.filter(({ old }) => scope.from <= old.from && old.to <= scope.to)
  let whole = shifted(inside, -scope.from, -viewFrom)
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const next = phrases(base, view, whole)
    const isSame = next.length === whole.length && next.every((hunk, at) => isEqual(hunk, whole[at]))
    whole = next
    if (isSame) break
  }
  return whole.map((hunk) => {
    const [quote, text] = textsOf(base, view, hunk)
    return { start: scope.from + hunk.old.from, end: scope.from + hunk.old.to, quote, text }
  })
}

const isEqual = (one: HunkPosition, other: HunkPosition | undefined) =>
  one.old.from === other?.old.from && one.old.to === other.old.to && one.new.from === other.new.from && one.new.to === other.new.to

function phrases(base: string, view: string, hunks: readonly HunkPosition[]) {
  const fine = hunks.flatMap((hunk) => shifted(within(...textsOf(base, view, hunk)), hunk.old.from, hunk.new.from))
  const changed = unitedWords(base, view, fine).filter((hunk) => !isSame(base, view, hunk))
  const joined = joinHunks(base, view, changed, (last, hunk) => {
    const endsSentence = textsOf(base, view, last).some((text) => SENTENCE_END.test(text))
    return !endsSentence && isAcross(base, view, last, hunk)
  })
  // A join drops the space at its end, which may have an accent or a joiner.
  return unitedWords(base, view, joined)
}

const textsOf = (base: string, view: string, hunk: HunkPosition): [string, string] => [
  base.slice(hunk.old.from, hunk.old.to),
  view.slice(hunk.new.from, hunk.new.to),
]

function isSame(base: string, view: string, hunk: HunkPosition) {
  const [quote, text] = textsOf(base, view, hunk)
  return quote === text
}

/** Widens each hunk to the words that it touches in either text, and unites those that meet. */
function unitedWords(base: string, view: string, hunks: readonly HunkPosition[]) {
  const found: HunkPosition[] = []
  const isBreak = (old: number, fresh: number) =>
    isWordBreak(base, old) && isWordBreak(view, fresh)
  for (const [index, hunk] of hunks.entries()) {
    const last = found.at(-1)
    const bound = last?.old.to ?? 0
    let left = 0
    while (bound < hunk.old.from - left && !isBreak(hunk.old.from - left, hunk.new.from - left)) left++
    const next = hunks[index + 1]?.old.from ?? base.length
    let right = 0
    while (hunk.old.to + right < next && !isBreak(hunk.old.to + right, hunk.new.to + right)) right++
    const ends = { old: hunk.old.to + right, new: hunk.new.to + right }
    if (last && hunk.old.from - left <= bound) {
      last.old.to = ends.old
      last.new.to = ends.new
    } else {
      found.push({
        old: { from: hunk.old.from - left, to: ends.old },
        new: { from: hunk.new.from - left, to: ends.new },
      })
    }
  }
  return found
}

/** The change of a base that puts parts in, letter by letter. The parts do not overlap. */
export function applied(base: Text, parts: readonly Part[]) {
  const inOrder = [...parts].sort(byOffset)
  return ChangeSet.of(inOrder.flatMap(({ start, quote, text }) => specsWithin(start, quote, text)), base.length)
}

/** A gap comes before the quote that begins there. */
export const byOffset = (one: Part, other: Part) => one.start - other.start || one.end - other.end

/** Whether the base still has the quote of a part in its range. */
export const stands = (base: Text, { start, end, quote }: Part) =>
  end - start === quote.length && end <= base.length && base.sliceString(start, end) === quote

/**
 * Moves a part after an edit of the base. Its offsets equal those of Yjs relative positions at the letters beside
 * it: start and gap belong to the next letter (association 0), an end to the last one (−1).
 */
export function shiftPart(part: Part, map: Mapping) {
  const start = map(part.start, 1)
  part.end = part.start === part.end ? start : Math.max(start, map(part.end, -1))
  part.start = start
}
