/** The drawing of a change on the reviewer's page: pure, tested with `node --test`. */

import type { Text } from "../../lib/vendor.ts"
import type { HunkPosition, Range } from "../../reviews/word_diff.ts"
import type { Progress, Suggestion } from "../model/entries.ts"

/** A part of a suggestion, in offsets of the base. At rest the server has it with these words. */
type Spot = { id: string, start: number, end: number, isAtRest?: boolean }
type Texts = Record<"base" | "view", Pick<Text, "sliceString">>
/** Drawn as one: `old` in the base and `new` in the view. */
type Change = HunkPosition & { id: string | null }

/** Letters of an alphabet. A syllable of Hangul, a Han sign and a Kana are read one by one. */
const LETTERS = /(?:(?!\p{Script=Hangul}|\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana})[\p{L}\p{N}\p{M}'’])+/u
const WORD_START = new RegExp(`^${LETTERS.source}`, "u")
const WORD_END = new RegExp(`${LETTERS.source}$`, "u")
/** The same of any script, as the writer's page draws a suggestion. */
const ANY_START = /^[\p{L}\p{N}\p{M}'’]+/u
const ANY_END = /[\p{L}\p{N}\p{M}'’]+$/u
/** Old words longer than this are folded, in UTF-16 units. */
const FOLDED_FROM = 400
/** How much of folded words is shown, in UTF-16 units. */
const SHOWN = 160

/**
 * Old words as they stand in the text. A line break is shown by its sign; one at an end breaks no line, since what
 * stands beside it is on the same line now.
 */
export function foldedText(text: string) {
  const isLong = FOLDED_FROM < text.length
  // A half of a pair would be shown as a sign of its own.
  const end = /[\uD800-\uDBFF]/.test(text[SHOWN - 1] ?? "") ? SHOWN - 1 : SHOWN
  const shown = isLong ? text.slice(0, end).trimEnd() : text
  const [, head = "", middle = "", tail = ""] = /^(\n*)(.*?)(\n*)$/s.exec(shown) ?? []
  const signs = (breaks: string) => breaks.replaceAll("\n", "¶")
  return `${signs(head)}${middle.replaceAll("\n", "¶\n")}${signs(tail)}${isLong ? " …" : ""}`
}

/** The parts of suggestions that meet a range of the base, in order. */
export function partsNear(suggestions: readonly (Suggestion & Partial<Progress>)[], { from, to }: Range) {
  const spots: Spot[] = []
  for (const { id, parts, state, isTouched } of suggestions) {
    const isAtRest = state === "stored" && !isTouched
    for (const { start, end } of parts) if (start <= to && from <= end) spots.push({ id, start, end, isAtRest })
  }
  return spots.sort((one, other) => one.start - other.start || one.end - other.end)
}

/** The part at a position of the base, its edges included. @param spots in order */
export function partAt(spots: readonly Spot[], at: number) {
  let [low, high] = [0, spots.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((spots[middle]?.start ?? 0) <= at) low = middle + 1
    else high = middle
  }
  const last = spots[low - 1]
  return last && at <= last.end ? last : undefined
}

/**
 * The changes as they are drawn: letters, where one spot of a part changed, and words from the first to the last change
 * where several did. Letters of both texts in turn are hard to read, and so is a half of a word in an alphabet. Once the
 * server has a part, its words are whole in every script.
 *
 * @param hunks in order
 * @param spots in order
 */
export function drawnChanges(hunks: readonly HunkPosition[], spots: readonly Spot[], texts: Texts): Change[] {
  const drawn: Change[] = []
  /** The part of the last one. */
  let before: Spot | undefined
  for (const hunk of hunks) {
    const spot = partAt(spots, hunk.old.from)
    const last = drawn.at(-1)
    const isShort = spot && spot.end - spot.start <= FOLDED_FROM
    if (last && isShort && spot === before && hunk.old.to <= spot.end) {
      last.old = { from: last.old.from, to: hunk.old.to }
      last.new = { from: last.new.from, to: hunk.new.to }
    } else {
      drawn.push({ old: { ...hunk.old }, new: { ...hunk.new }, id: spot?.id ?? null })
    }
    before = spot
  }
  for (const [index, change] of drawn.entries()) {
    const spot = partAt(spots, change.old.from)
    if (!spot || spot.end < change.old.to || FOLDED_FROM < spot.end - spot.start) continue
    // The letters up to another change stand in both texts.
    const from = Math.max(spot.start, drawn[index - 1]?.old.to ?? 0)
    const to = Math.min(spot.end, drawn[index + 1]?.old.from ?? spot.end)
    widen(change, { from, to }, spot.isAtRest ?? false, texts)
  }
  return drawn
}

/** Widens a replacement, and at rest each change, to whole words. @param range of the base */
function widen({ old, new: fresh }: Change, { from, to }: Range, isAtRest: boolean, { base, view }: Texts) {
  const isReplaced = old.from < old.to && fresh.from < fresh.to
  if (!isReplaced && !isAtRest) return
  const words = [base.sliceString(old.from, old.to), view.sliceString(fresh.from, fresh.to)]
  const [start, end] = isAtRest ? [ANY_START, ANY_END] : [WORD_START, WORD_END]
  const left = words.some((text) => start.test(text)) ? lengthOf(end, base.sliceString(from, old.from)) : 0
  const right = words.some((text) => end.test(text)) ? lengthOf(start, base.sliceString(old.to, to)) : 0
  old.from -= left
  fresh.from -= left
  old.to += right
  fresh.to += right
}

const lengthOf = (pattern: RegExp, text: string) => pattern.exec(text)?.[0].length ?? 0
