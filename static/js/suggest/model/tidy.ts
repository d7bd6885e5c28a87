/**
 * The smallest changes between two texts, for hunks that say more than what differs.
 *
 * A hunk grows when a reviewer deletes a word and types it again, when a corrected text is pasted over the
 * old one, and when the writer accepts a part of it. `tidy` makes it as fine as if each letter had been
 * typed, and changes neither text.
 */

import { ChangeSet, Text } from "../../lib/vendor.ts"
import { wordHunks, type HunkPosition, type Range } from "../../reviews/word_diff.ts"
import { meetsOneOf } from "./ranges.ts"
import { isGraphemeBreak, isWordBreak } from "./words.ts"

type Spec = { from: number, to: number, insert: Text }

const ONE_WORD = /^[0-9A-Za-z가-힣]*$/

/**
 * The same changes, without what a replacement has in common with the text that it replaces.
 *
 * @param isTouched selects ranges of the view
 */
export function tidy(changes: ChangeSet, base: Text, view: Text, isTouched: (range: Range) => boolean) {
  /** The remains of a hunk, by its start. */
  const finer: Map<number, HunkPosition | null> = new Map()
  changes.iterChangedRanges((from, to, newFrom, newTo) => {
    if (from === to || newFrom === newTo || !isTouched({ from: newFrom, to: newTo })) return
    const [hunk = null] = trimmed(base.sliceString(from, to), view.sliceString(newFrom, newTo))
    if (hunk?.old.to !== to - from || hunk.new.to !== newTo - newFrom || hunk.old.from !== 0) finer.set(from, hunk)
  })
  // A key rarely makes a hunk finer, and a new change set costs more than the key.
  if (finer.size === 0) return changes
  const specs: Spec[] = []
  changes.iterChanges((from, to, _newFrom, _newTo, insert) => {
    const hunk = finer.get(from)
    if (hunk === undefined) specs.push({ from, to, insert })
    else if (hunk) specs.push({ from: from + hunk.old.from, to: from + hunk.old.to, insert: insert.slice(hunk.new.from, hunk.new.to) })
  })
  return ChangeSet.of(specs, changes.length)
}

/**
 * Other changes in place of those that meet some ranges of the base.
 *
 * @param inOrder the ranges
 */
export function replacedIn(changes: ChangeSet, inOrder: readonly Range[], specs: readonly Spec[]) {
  const isReplaced = meetsOneOf(inOrder)
  const all = [...specs]
  changes.iterChanges((from, to, _newFrom, _newTo, insert) => {
    if (!isReplaced({ from, to })) all.push({ from, to, insert })
  })
  return ChangeSet.of(all.sort((one, other) => one.from - other.from || one.to - other.to), changes.length)
}

/** The finest changes that turn one text into another, the first of which stands at an offset. */
export const specsWithin = (at: number, before: string, after: string): Spec[] =>
  within(before, after).map(({ old, new: fresh }) => ({
    from: at + old.from,
    to: at + old.to,
    insert: textOf(after.slice(fresh.from, fresh.to)),
  }))

/** Only "\n" breaks a line: the editor counts as Yjs does. */
export const textOf = (text: string) => Text.of(text.split("\n"))

/** The difference between the common ends of two texts, as one hunk. A hunk never ends inside a grapheme. */
export function trimmed(before: string, after: string): HunkPosition[] {
  const shorter = Math.min(before.length, after.length)
  let head = 0
  while (head < shorter && before[head] === after[head]) head++
  while (!isGraphemeBreak(before, head) || !isGraphemeBreak(after, head)) head--
  let tail = 0
  while (tail < shorter - head && before.at(-1 - tail) === after.at(-1 - tail)) tail++
  while (!isGraphemeBreak(before, before.length - tail) || !isGraphemeBreak(after, after.length - tail)) tail--
  const [removed, added] = [before.length - tail - head, after.length - tail - head]
  if (removed === 0 && added === 0) return []
  const from = removed === 0 ? wordStart(after, head, added) : added === 0 ? wordStart(before, head, removed) : head
  return [{ old: { from, to: from + removed }, new: { from, to: from + added } }]
}

/**
 * Where a deletion or an insertion begins. `two ` in `one two three` could as well be `wo t`: of the ranges that
 * give the same texts, the function prefers one of whole words.
 *
 * @param text with the letters that the other text does not have
 * @param last offset that gives the texts
 * @param length of the range
 */
function wordStart(text: string, last: number, length: number) {
  for (let from = last; ; from--) {
    if (isWordBreak(text, from) && isWordBreak(text, from + length)) return from
    if (from === 0 || text[from - 1] !== text[from + length - 1]) return last
  }
}

/**
 * The differences word by word, trimmed to letters. Texts with as many paragraphs are compared paragraph by
 * paragraph, so a change of one never reaches into the next.
 */
export function within(before: string, after: string): HunkPosition[] {
  if (before === "" || after === "") return trimmed(before, after)
  const [lines, newLines] = [before.split("\n"), after.split("\n")]
  if (lines.length !== newLines.length) return wordsWithin(before, after)
  const found: HunkPosition[] = []
  let [oldAt, newAt] = [0, 0]
  for (const [index, line] of lines.entries()) {
    const newLine = newLines[index] ?? ""
    found.push(...shifted(wordsWithin(line, newLine), oldAt, newAt))
    oldAt += line.length + 1
    newAt += newLine.length + 1
  }
  return found
}

function wordsWithin(before: string, after: string): HunkPosition[] {
  const found = trimmed(before, after)
  const [rough] = found
  if (!rough || rough.old.from === rough.old.to || rough.new.from === rough.new.to) return found
  // The words at both ends stay whole, or the comparison would read halves of them.
  let { from } = rough.old
  while (!isWordBreak(before, from) || !isWordBreak(after, from)) from--
  let tail = before.length - rough.old.to
  while (!isWordBreak(before, before.length - tail) || !isWordBreak(after, after.length - tail)) tail--
  const [old, fresh] = [before.slice(from, before.length - tail), after.slice(from, after.length - tail)]
  // A comparison of words, which costs more, would find nothing finer.
  if (ONE_WORD.test(old) && ONE_WORD.test(fresh)) return found
  const hunks = wordHunks(old, fresh).flatMap((hunk) => {
    const inWord = trimmed(old.slice(hunk.old.from, hunk.old.to), fresh.slice(hunk.new.from, hunk.new.to))
    return shifted(inWord, hunk.old.from, hunk.new.from)
  })
  return shifted(hunks, from, from)
}

export const shifted = (hunks: HunkPosition[], oldBy: number, newBy: number): HunkPosition[] =>
  hunks.map((hunk) => ({
    old: { from: hunk.old.from + oldBy, to: hunk.old.to + oldBy },
    new: { from: hunk.new.from + newBy, to: hunk.new.to + newBy },
  }))
