/**
 * The changes of a suggestion or of a version, word by word.
 *
 * Spaces separate words, so that a Korean eojeol (a noun with its particle) stays
 * whole; spaces are words of their own, and so are marks, each by itself. Where one Korean word
 * differs from another only in its particle, the noun stays: `회사는 → 회사가` shows `는 → 가`.
 *
 * The server compares versions, in whole words (`src/yjs/word_diff.rs`); the page compares a suggestion
 * at each key that is pressed, also without a connection. `pieces` makes both readable: it joins
 * fragments and narrows Korean words. `tests/data/word_diff.json` holds the cases of both sides.
 *
 * Touches no DOM, so it is tested with `node --test`.
 */

import type { Segment } from "../lib/api.ts"
import { graphemesOf } from "../lib/graphemes.ts"

type Kind = "same" | "removed" | "added"
export type Piece = { kind: Kind, text: string }
export type Range = { from: number, to: number }
/** A hunk in which the texts differ, in UTF-16 units. */
export type HunkPosition = { old: Range, new: Range }

/** Beyond this many comparisons the middle is shown as one removed and one added piece. */
const COMPARISONS_MAX = 4_000_000

/** Particles that are split from a noun: `나는 → 나를`, but not `대학 → 대회`. */
const PARTICLES = new Set(
  "은 는 이 가 을 를 의 에 도 로 와 과 만 에서 에게 으로 부터 까지 처럼 보다 이다 입니다".split(" ").concat(""),
)

/** No eojeol is longer, in UTF-16 units: a version may differ in a megabyte, which is not split here. */
const EOJEOL_MAX = 64

/** @returns words, spaces, and single marks and line breaks */
export function wordsOf(text: string): string[] {
  const found: string[] = []
  let before = "single"
  for (const grapheme of graphemesOf(text)) {
    const kind = kindOf(grapheme)
    if (kind === before && kind !== "single") found.push(`${found.pop() ?? ""}${grapheme}`)
    else found.push(grapheme)
    before = kind
  }
  return found
}

/** Words and runs of spaces are whole; all else is single. */
export function kindOf(grapheme: string): "single" | "space" | "word" {
  if (/^[\r\n\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/u.test(grapheme)) return "single"
  if (/^\p{White_Space}/u.test(grapheme)) return "space"
  return /^[\p{Alphabetic}\p{N}'’]/u.test(grapheme) ? "word" : "single"
}

/** @returns in reading order; removed before added */
export const wordDiff = (before: string, after: string): Piece[] => readable(before, after, compare(before, after))

/** Hunks in whole words, in order. */
export const wordHunks = (before: string, after: string): HunkPosition[] => hunksOf(compare(before, after))

const kinds = { equal: "same", delete: "removed", insert: "added" } as const

/** The server's comparison of two versions, as the page shows it. */
export function pieces(segments: Segment[]): Piece[] {
  const whole = segments.map(({ op, text }) => ({ kind: kinds[op], text }))
  const without = (side: Kind) => joined(whole.filter(({ kind }) => kind !== side).map(({ text }) => text))
  return readable(without("added"), without("removed"), whole)
}

/** @param whole the comparison in whole words */
function readable(before: string, after: string, whole: Piece[]) {
  const hunks = joinHunks(before, after, hunksOf(whole))
  const shown: Piece[] = []
  const push = (kind: Kind, text: string) => text !== "" && shown.push({ kind, text })
  let at = 0
  for (const hunk of hunks.map((hunk) => narrowHunk(before, after, hunk) ?? hunk)) {
    push("same", before.slice(at, hunk.old.from))
    push("removed", before.slice(hunk.old.from, hunk.old.to))
    push("added", after.slice(hunk.new.from, hunk.new.to))
    at = hunk.old.to
  }
  push("same", before.slice(at))
  return shown
}

/** @returns all but the common end */
function compare(before: string, after: string): Piece[] {
  const [from, to] = [wordsOf(before), wordsOf(after)]
  const { head, tail } = commonEnds(from, to)
  const commonHead = { kind: "same", text: joined(from.slice(0, head)) } as Piece
  return [commonHead, ...middle(from.slice(head, from.length - tail), to.slice(head, to.length - tail))]
}

function hunksOf(whole: Piece[]): HunkPosition[] {
  const hunks: HunkPosition[] = []
  let [oldAt, newAt, joins] = [0, 0, false]
  for (const { kind, text } of whole) {
    const [removed, added] = [kind === "added" ? 0 : text.length, kind === "removed" ? 0 : text.length]
    if (kind !== "same") {
      const last = joins ? hunks.at(-1) : undefined
      const hunk = last ?? { old: { from: oldAt, to: oldAt }, new: { from: newAt, to: newAt } }
      hunk.old.to = oldAt + removed
      hunk.new.to = newAt + added
      if (!last) hunks.push(hunk)
    }
    joins = kind !== "same"
    oldAt += removed
    newAt += added
  }
  return hunks
}

/** How much two lists have in common at their ends. */
function commonEnds(from: string[], to: string[]) {
  const shorter = Math.min(from.length, to.length)
  let head = 0
  while (head < shorter && from[head] === to[head]) head++
  let tail = 0
  while (tail < shorter - head && from.at(-1 - tail) === to.at(-1 - tail)) tail++
  return { head, tail }
}

const joined = (words: string[]) => words.join("")

/** Longest common subsequence of the words. */
function middle(from: string[], to: string[]): Piece[] {
  if (COMPARISONS_MAX < from.length * to.length) {
    return [
      { kind: "removed", text: joined(from) },
      { kind: "added", text: joined(to) },
    ]
  }
  const width = to.length + 1
  const lengths = new Uint32Array((from.length + 1) * width)
  const length = (i: number, j: number) => lengths[i * width + j] ?? 0
  for (let i = from.length - 1; 0 <= i; i--) {
    for (let j = to.length - 1; 0 <= j; j--) {
      lengths[i * width + j] =
        from[i] === to[j] ? length(i + 1, j + 1) + 1 : Math.max(length(i + 1, j), length(i, j + 1))
    }
  }
  const found: Piece[] = []
  let [i, j] = [0, 0]
  while (i < from.length || j < to.length) {
    if (i < from.length && j < to.length && from[i] === to[j]) {
      found.push({ kind: "same", text: from[i++] ?? "" })
      j++
    } else if (j === to.length || (i < from.length && length(i, j + 1) <= length(i + 1, j))) {
      found.push({ kind: "removed", text: from[i++] ?? "" })
    } else {
      found.push({ kind: "added", text: to[j++] ?? "" })
    }
  }
  return found
}

/**
 * Joins hunks that are one phrase (`isAcross`).
 *
 * @param isOne whether the space lies inside a phrase
 */
export function joinHunks(
  before: string,
  after: string,
  hunks: HunkPosition[],
  isOne: (last: HunkPosition, hunk: HunkPosition) => boolean = (last, hunk) => isAcross(before, after, last, hunk),
) {
  const apart: HunkPosition[] = []
  for (const hunk of hunks) {
    const last = apart.at(-1)
    if (last && isOne(last, hunk)) {
      last.old.to = hunk.old.to
      last.new.to = hunk.new.to
      // A join with a word that was only put in or taken out ends with one space on both sides.
      const end = endOf(before.slice(last.old.from, last.old.to))
      if (end === endOf(after.slice(last.new.from, last.new.to))) {
        last.old.to -= end.length
        last.new.to -= end.length
      }
    } else {
      apart.push(hunk)
    }
  }
  return apart
}

/**
 * A lone space between two changes would chop a phrase into confetti: it joins both sides, unless
 * each is a word whose ending changed.
 */
export function isAcross(before: string, after: string, last: HunkPosition, hunk: HunkPosition) {
  const changes = last.old.from < last.old.to && last.new.from < last.new.to
  const space = /^[^\S\n\r]+$/.test(before.slice(last.old.to, hunk.old.from))
  return changes && space && !(narrowHunk(before, after, last) && narrowHunk(before, after, hunk))
}

/** The white space at the end of a text. */
const endOf = (text: string) => text.slice(text.trimEnd().length)

/** The difference between two Korean words of a hunk; `null` where they are better shown whole. */
function narrowHunk(before: string, after: string, hunk: HunkPosition): HunkPosition | null {
  const [old, fresh] = [before.slice(hunk.old.from, hunk.old.to), after.slice(hunk.new.from, hunk.new.to)]
  if (!isEojeol(old) || !isEojeol(fresh)) return null
  const [from, to] = [[...graphemesOf(old)], [...graphemesOf(fresh)]]
  const endsInParticle = (word: string[]) => PARTICLES.has(joined(word.slice(head)))
  let { head } = commonEnds(from, to)
  // `에서` and `에게` begin alike.
  while (0 < head && !(endsInParticle(from) && endsInParticle(to))) head--
  if (head === 0) return null
  const begin = joined(from.slice(0, head)).length
  return {
    old: { from: hunk.old.from + begin, to: hunk.old.to },
    new: { from: hunk.new.from + begin, to: hunk.new.to },
  }
}

/** A Korean word, whose parts may be marked alone: an English word with a marked middle is harder to read than a whole one. */
const isEojeol = (text: string) =>
  text.length <= EOJEOL_MAX && /\p{Script=Hangul}/u.test(text) && wordsOf(text).length === 1
