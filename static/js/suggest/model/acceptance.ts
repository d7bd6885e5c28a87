/**
 * The parts that an edit of the writer's text puts in.
 *
 * The server accepts a suggestion by an edit of the text, and the edit arrives before the event or after it, alone
 * or with others. Mapped like any other edit, it would show the words of the part twice. So the edit is split:
 * one half turns quotes into exactly the texts of their parts, and moves no letter of the view.
 */

import { ChangeSet, type Text } from "../../lib/vendor.ts"
import { byOffset, type Part } from "./parts.ts"
import { mappingOf, shiftWhole, type Mapping } from "./ranges.ts"
import { textOf } from "./tidy.ts"

type Spec = { from: number, to: number, insert: Text }
/** Of the edit; `isPut` once a part has it. */
type Hunk = Spec & { isPut: boolean }

/**
 * Splits an edit of the base in two: `put` puts the parts `done` in, and `rest` comes after it.
 *
 * @param lists parts that may be put in; those of one list are disjoint, and the first list with a fitting part has it
 */
export function splitFulfilled(edit: ChangeSet, base: Text, lists: readonly (readonly Part[])[]): { done: Part[], put: ChangeSet, rest: ChangeSet } {
  const hunks: Hunk[] = []
  edit.iterChanges((from, to, _from, _to, insert) => hunks.push({ from, to, insert, isPut: false }))
  const split = new Split(base, hunks)
  for (const parts of lists) split.take([...parts].sort(byOffset))
  const put = ChangeSet.of([...hunks.filter(({ isPut }) => isPut), ...split.cut], base.length)
  const map = mappingOf(put)
  const after = hunks
    .filter(({ isPut }) => !isPut)
    .map(({ from, to, insert }) => ({ ...shiftWhole({ from, to }, map), insert }))
  return { done: split.done, put, rest: ChangeSet.of([...after, ...split.beside(map)], put.newLength) }
}

/** The parts whose quotes an edit turns into exactly their texts. */
export const fulfilledIn = (edit: ChangeSet, base: Text, parts: readonly Part[]) => splitFulfilled(edit, base, [parts]).done

class Split {
  declare base: Text
  declare hunks: Hunk[]
  done: Part[] = []
  /** The half of a hunk that puts a part in. */
  cut: Spec[] = []
  /** The other half. */
  #others: { at: number, side: -1 | 1, insert: Text }[] = []

  constructor(base: Text, hunks: Hunk[]) {
    this.base = base
    this.hunks = hunks
  }

  /** @param parts in order */
  take(parts: readonly Part[]) {
    let first = 0
    for (let index = 0; index < parts.length; index++) {
      const part = parts[index]
      if (!part) continue
      while ((this.hunks[first]?.to ?? Infinity) < part.start) first++
      const hunk = this.hunks[first]
      if (!hunk || hunk.isPut || part.end < hunk.from) continue
      // One hunk can put in several parts that touch, or the ends of two of them.
      const [run, met] = [runFrom(parts, index, part.end), runFrom(parts, index, hunk.to)]
      const found = [Math.max(run, met), met, index + 1].find((next) => this.#putsIn(parts.slice(index, next), first))
      if (found) index = found - 1
      else this.#beginsOrEnds(hunk, part)
    }
  }

  /**
   * Takes parts if the hunks in their range put them in, and nothing more.
   *
   * @param parts in order
   * @param first the first hunk in their range
   */
  #putsIn(parts: readonly Part[], first: number) {
    const [start, end] = [parts[0]?.start ?? 0, parts.at(-1)?.end ?? 0]
    let next = first
    while ((this.hunks[next]?.from ?? Infinity) <= end) next++
    const touched = this.hunks.slice(first, next)
    const [from, to] = [Math.min(start, touched[0]?.from ?? start), Math.max(end, touched.at(-1)?.to ?? end)]
    if (touched.some(({ isPut }) => isPut)) return false
    let at = from
    let wanted = ""
    for (const part of parts) {
      wanted += this.base.sliceString(at, part.start) + part.text
      at = part.end
    }
    wanted += this.base.sliceString(at, to)
    let [now, last] = ["", from]
    for (const hunk of touched) {
      now += this.base.sliceString(last, hunk.from) + hunk.insert.toString()
      last = hunk.to
    }
    if (now + this.base.sliceString(last, to) !== wanted) return false
    for (const hunk of touched) hunk.isPut = true
    this.done.push(...parts)
    return true
  }

  /** The writer typed on before this page received the acceptance: the hunk has other letters beside the text. */
  #beginsOrEnds(hunk: Hunk, part: Part) {
    const inserted = hunk.insert.toString()
    if (hunk.from !== part.start || hunk.to !== part.end || part.text === "") return
    const isFirst = inserted.startsWith(part.text)
    if (!isFirst && !inserted.endsWith(part.text)) return
    const other = isFirst ? inserted.slice(part.text.length) : inserted.slice(0, -part.text.length)
    this.hunks.splice(this.hunks.indexOf(hunk), 1)
    this.cut.push({ from: part.start, to: part.end, insert: textOf(part.text) })
    this.#others.push({ at: isFirst ? part.end : part.start, side: isFirst ? 1 : -1, insert: textOf(other) })
    this.done.push(part)
  }

  beside(map: Mapping): Spec[] {
    return this.#others.map(({ at, side, insert }) => {
      const from = map(at, side)
      return { from, to: from, insert }
    })
  }
}

/** Behind the last of the parts that touch one another from an index on. @param end from which a part is out of reach */
function runFrom(parts: readonly Part[], index: number, end: number) {
  let next = index + 1
  for (let part = parts[next]; part && part.start <= end; part = parts[++next]) end = Math.max(end, part.end)
  return next
}
