/**
 * From offsets in the server's text to offsets in ours.
 *
 * The last resort, for a page that shows a copy of the server's text or lacks a letter of the passage
 * (`shared_positions.ts`). The two may be a keystroke apart when an answer arrives. A passage that is called exact must
 * stand on its quote, so the nearest occurrence of the quote is taken; of two equally near, the one
 * with the right text before it. Pure, tested with `node --test`.
 */

import type { Anchor } from "../lib/api.ts"

export type Range = { from: number, to: number }
/** The text as the editor has it. */
export type Tree = { length: number, sliceString: (from: number, to: number) => string }

/** How far two texts can be apart by what is on the wire, in UTF-16 units. */
const NEAR = 2_000

export function locate(text: string, anchor: Anchor): Range {
  const { start, end, state, quote, prefix } = anchor
  const served = { from: Math.min(start, text.length), to: Math.min(end, text.length) }
  const mustMatch = state === "exact" || state === "moved"
  if (!mustMatch || quote === "" || text.slice(start, end) === quote) return served
  // Found nowhere near: it stands nowhere, until the server says more.
  let best = { from: served.from, to: served.from }
  let distance = Number.POSITIVE_INFINITY
  let at = text.indexOf(quote, Math.max(start - NEAR, 0))
  for (; at !== -1 && at <= start + NEAR; at = text.indexOf(quote, at + 1)) {
    const context = prefix.slice(-8)
    const away = Math.abs(at - start) + (text.slice(0, at).endsWith(context) ? 0 : 40)
    if (away < distance) [best, distance] = [{ from: at, to: at + quote.length }, away]
  }
  return best
}

/** How much of each side finds a gap again, in UTF-16 units. */
const SIDE = 8
export const besideGap = ({ prefix, suffix }: { prefix: string, suffix: string }): [before: string, after: string] =>
  [prefix.slice(-SIDE), suffix.slice(0, SIDE)]
/** How far from a gap, over white space, a word is beside it, in UTF-16 units. */
export const BESIDE = 80

/**
 * Whether a word beside a gap is the one it was made beside: the last before it, or the first after it, over white space. White
 * space alone is no neighbour; the edge of the text is one. The server decides alike (`src/yjs/parts.rs`).
 */
export function gapHolds(text: Tree, at: number, { prefix, suffix }: { prefix: string, suffix: string }) {
  const before = text.sliceString(Math.max(at - BESIDE, 0), at).trimEnd()
  const last = /\S*$/.exec(prefix.trimEnd())?.[0] ?? ""
  if (last === "" ? before === "" : before.endsWith(last) && (last === prefix || /^$|\s$/.test(before.slice(0, -last.length)))) return true
  const after = text.sliceString(at, Math.min(at + BESIDE, text.length)).trimStart()
  const first = /^\S*/.exec(suffix.trimStart())?.[0] ?? ""
  return first === "" ? after === "" : after.startsWith(first) && (first === suffix || /^$|^\s/.test(after.slice(first.length)))
}

/** The gap of an insertion: where the server has it, if one of its words is there, or where its context is nearest to that. */
export function locateGap(text: string, { start, state, prefix, suffix }: Anchor): Range {
  const served = Math.min(start, text.length)
  const [before, after] = besideGap({ prefix, suffix })
  const tree = { length: text.length, sliceString: (from: number, to: number) => text.slice(from, to) }
  const isServed = state === "orphaned" || gapHolds(tree, served, { prefix, suffix })
  const at = (isServed ? null : nearestOf(text, before + after, before.length, served)) ?? served
  return { from: at, to: at }
}

/** The occurrence nearest to the offset `around`, within `NEAR` of it, moved by `shift`. */
function nearestOf(text: string, words: string, shift: number, around: number) {
  if (words.trim() === "") return null
  let best = null
  let distance = Number.POSITIVE_INFINITY
  let at = text.indexOf(words, Math.max(around - NEAR, 0))
  for (; at !== -1 && at <= around + NEAR; at = text.indexOf(words, at + 1)) {
    const away = Math.abs(at + shift - around)
    if (away < distance) [best, distance] = [at + shift, away]
  }
  return best
}

/**
 * A lost gap between the same words in what an edit inserted. `null`: it is not there.
 *
 * @param text after the edit
 */
export function locateInsertedGap(text: Tree, inserted: readonly Range[], { prefix, suffix }: { prefix: string, suffix: string }): Range | null {
  const words = besideGap({ prefix, suffix }).join("")
  const found = locateInserted(text, inserted, { from: 0, to: 0, quote: words, prefix: prefix.slice(0, -SIDE) })
  const at = found && found.from + Math.min(prefix.length, SIDE)
  return at === null ? null : { from: at, to: at }
}

/**
 * A collapsed passage's quote in what an edit inserted: a paste, or the undo of a deletion. Of several
 * occurrences the one with the right text before it, or else the nearest. `null`: it is not there.
 *
 * @param text after the edit
 */
export function locateInserted(
  text: Tree,
  inserted: readonly Range[],
  { from, quote, prefix }: Range & { quote: string, prefix: string },
): Range | null {
  if (quote === "") return null
  const context = prefix.slice(-8)
  let best: Range | null = null
  let distance = Number.POSITIVE_INFINITY
  for (const range of inserted) {
    const start = Math.max(range.from - quote.length + 1, 0)
    const piece = text.sliceString(start, Math.min(range.to + quote.length - 1, text.length))
    for (let at = piece.indexOf(quote); at !== -1; at = piece.indexOf(quote, at + 1)) {
      const found = start + at
      const isInContext = text.sliceString(Math.max(found - context.length, 0), found) === context
      const away = Math.abs(found - from) + (isInContext ? 0 : text.length)
      if (away < distance) [best, distance] = [{ from: found, to: found + quote.length }, away]
    }
  }
  return best
}
