/**
 * The overlay: the reviewer's changes of the writer's text.
 *
 * The *base* is the writer's text, the *view* is the text in the reviewer's editor, and the change set leads from
 * one to the other. Both sides edit at any time. An overlay is a value: each operation returns a new one.
 *
 * - **O1** `changes.apply(base)` equals `view`.
 * - **O2** An edit of the writer moves no letter of the reviewer's, and stands before an insertion at the same offset.
 * - **O3** A part that goes into the base leaves the view as it is, letter for letter.
 */

import { ChangeSet, type Text } from "../../lib/vendor.ts"
import type { HunkPosition, Range } from "../../reviews/word_diff.ts"
import { rangeOf } from "./identity.ts"
import { applied, byOffset, stands, type Part } from "./parts.ts"
import { isWithinOneOf, mappingOf, meets, meetsOneOf, newRangesOf, overlaps, shiftWhole, united, type Mapping } from "./ranges.ts"
import { replacedIn, specsWithin, tidy } from "./tidy.ts"
import { isWordBreak } from "./words.ts"

/** The new overlay and the edit of the view that leads to it. */
export type Step = { overlay: Overlay, edit: ChangeSet }
/** In offsets of the view, but for `base`. */
type Piece = { kind: "inserted", from: number, to: number, base: number }
  | { kind: "deleted", at: number, base: Range, text: string }

export class Overlay {
  declare base: Text
  declare view: Text
  declare changes: ChangeSet
  #hunks: HunkPosition[] | null = null
  /** The last own edit, with the overlay after it. */
  #next: Step | null = null
  #mapping: Mapping | null = null

  constructor(base: Text, view: Text, changes: ChangeSet) {
    this.base = base
    this.view = view
    this.changes = changes
  }

  static plain(base: Text) {
    return new Overlay(base, base, ChangeSet.empty(base.length))
  }

  /** The changes, in order; `old` in the base and `new` in the view. */
  get hunks(): readonly HunkPosition[] {
    if (this.#hunks) return this.#hunks
    const found: HunkPosition[] = []
    this.changes.iterChangedRanges((from, to, newFrom, newTo) => {
      found.push({ old: { from, to }, new: { from: newFrom, to: newTo } })
    })
    return (this.#hunks = found)
  }

  /** The reviewer's edit. The editor and the model both follow it, and share the result. @param edit of the view */
  own(edit: ChangeSet): Overlay {
    if (this.#next?.edit !== edit) this.#next = { edit, overlay: this.#after(this.base, edit, this.changes.compose(edit)) }
    return this.#next.overlay
  }

  /** The writer's edit (O2). @param edit of the base */
  written(edit: ChangeSet): Step {
    const viewEdit = edit.map(this.changes, true)
    return { overlay: this.#after(edit.apply(this.base), viewEdit, this.changes.map(edit)), edit: viewEdit }
  }

  /** An edit puts parts into the base that the view has already (O3). @param edit of the base */
  accepted(edit: ChangeSet, parts: readonly Part[]) {
    const changes = edit.invert(this.base).compose(this.changes)
    const map = mappingOf(edit)
    const ranges = parts.map(({ start, end }) => shiftWhole({ from: start, to: end }, map))
    return new Overlay(edit.apply(this.base), this.view, changes).compared(ranges)
  }

  /**
   * Whether parts may enter: each stands, and no change meets it but one of other suggestions that only touches it.
   *
   * @param others of the suggestions in the view
   */
  mayPut(parts: readonly Part[], others: readonly Part[] = []) {
    const inOrder = [...parts].sort(byOffset)
    const ranges = others.map(rangeOf)
    const isOther = isWithinOneOf(united(ranges))
    return inOrder.every((part, index) => {
      const isApart = part.end <= (inOrder[index + 1]?.start ?? part.end)
      const range = rangeOf(part)
      const isFree = !this.hunks.some(({ old }) => meets(old, range) && !isOther(old)) && !ranges.some((other) => overlaps(other, range))
      return isApart && stands(this.base, part) && isFree
    })
  }

  /** Parts enter, which `mayPut` allows: a gap before the changes of others that begin there. */
  put(parts: readonly Part[]): Step {
    const change = (overlay: Overlay, isGap: boolean) =>
      overlay.#with(applied(this.base, parts.filter(({ start, end }) => (start === end) === isGap)).map(overlay.changes, isGap), [])
    const quotes = change(this, false)
    const gaps = change(quotes.overlay, true)
    return { overlay: gaps.overlay, edit: quotes.edit.compose(gaps.edit) }
  }

  /**
   * Parts leave, and the view has their quotes again. The words that the reviewer typed beside a part since stay;
   * a part with words inside it stays whole.
   */
  takeOut(parts: readonly Part[]): Step {
    const specs = joinedParts(parts).flatMap(({ start, end, quote, text }) => {
      const outer = this.outerRange({ from: start, to: end })
      const offset = offsetOf(this.view.sliceString(outer.from, outer.to), text)
      return offset === null ? [] : specsWithin(outer.from + offset, text, quote)
    })
    return this.#with(ChangeSet.of(specs, this.view.length), parts.map(({ start, end }) => ({ from: start, to: end })))
  }

  /** Parts leave that stand beside what the writer made of their words, in a change of the view. */
  takeOutBeside(parts: readonly Part[]): Step {
    const near = (part: Part) => this.hunks.filter(({ old }) => meets(rangeOf(part), old))
    return this.takeOut(parts.flatMap((part) => near(part).map(({ old }) => ({ ...this.partOf(old), text: part.text }))))
  }

  /** Whether the view has the texts of parts in their ranges. */
  has(parts: readonly Part[]) {
    return joinedParts(parts).every((part) => this.#says(part))
  }

  /** The ranges of the base in which it, or the view, is not what some parts say, which are disjoint. */
  unlike(parts: readonly Part[]): Range[] {
    const joined = joinedParts(parts)
    const isListed = isWithinOneOf(joined.map(rangeOf))
    return [...joined.filter((part) => !stands(this.base, part) || !this.#says(part)).map(rangeOf), ...this.hunks.flatMap(({ old }) => (isListed(old) ? [] : [old]))]
  }

  #says(part: Part) {
    const { from, to } = this.outerRange(rangeOf(part))
    return to - from === part.text.length && this.view.sliceString(from, to) === part.text
  }

  /** The change of a range of the base as it is. */
  partOf({ from: start, to: end }: Range): Part {
    const { from, to } = this.outerRange({ from: start, to: end })
    return { start, end, quote: this.base.sliceString(start, end), text: this.view.sliceString(from, to) }
  }

  /** The view has the text of the base again, in disjoint ranges of the base. */
  revert(ranges: readonly Range[]): Step {
    const specs = ranges.flatMap((range) => {
      const { from, to } = this.outerRange(range)
      return specsWithin(from, this.view.sliceString(from, to), this.base.sliceString(range.from, range.to))
    })
    return this.#with(ChangeSet.of(specs, this.view.length), ranges)
  }

  /** The same view, with the changes of parts in place of all changes in some paragraphs. @param scopes in order */
  recut(scopes: readonly Range[], parts: readonly Part[]) {
    const specs = parts.flatMap(({ start, quote, text }) => specsWithin(start, quote, text))
    return new Overlay(this.base, this.view, replacedIn(this.changes, scopes, specs))
  }

  /** The offset in the base; inside an insertion, its gap. @param at in the view */
  toBase(at: number, side: -1 | 1 = 1) {
    return this.changes.invertedDesc.mapPos(at, side)
  }

  /** @param at in the base */
  toView(at: number, side: -1 | 1 = 1) {
    return this.changes.mapPos(at, side)
  }

  /** A range of the view in the base; empty where it has no letter of the base. */
  rangeToBase(range: Range): Range {
    const inverted = this.changes.invertedDesc
    return ordered(inverted.mapPos(range.from, 1), inverted.mapPos(range.to, -1))
  }

  /** A range of the base in the view, without insertions at its ends. */
  rangeToView(range: Range): Range {
    return ordered(this.toView(range.from, 1), this.toView(range.to, -1))
  }

  /** A range of the base in the view, with insertions at its ends. */
  outerRange(range: Range): Range {
    this.#mapping ??= mappingOf(this.changes)
    return shiftWhole(range, this.#mapping)
  }

  /**
   * The letters that differ, in the order of the view: new ones before the old ones that they replace.
   *
   * @param range of the view
   */
  pieces(range: Range = { from: 0, to: this.view.length }): Piece[] {
    return this.hunks.filter((hunk) => meets(range, hunk.new)).flatMap(({ old, new: { from, to } }) => {
      const found: Piece[] = []
      if (from < to) found.push({ kind: "inserted", from, to, base: old.from })
      if (old.from < old.to) found.push({ kind: "deleted", at: to, base: old, text: this.base.sliceString(old.from, old.to) })
      return found
    })
  }

  /** @param edit of the view @param changes those that both edits lead to */
  #after(base: Text, edit: ChangeSet, changes: ChangeSet) {
    const view = edit.apply(this.view)
    return new Overlay(base, view, tidy(changes, base, view, meetsOneOf(newRangesOf(edit))))
  }

  /** The same texts, with the finest changes in some ranges, as a reload reads them. @param ranges of the base */
  compared(ranges: readonly Range[]) {
    if (ranges.length === 0) return this
    const isTouched = meetsOneOf(united(ranges))
    const regions = united([...ranges, ...this.hunks.flatMap(({ old }) => (isTouched(old) ? [old] : []))])
    const specs = regions.flatMap((region) => {
      const { from, to } = this.outerRange(region)
      return specsWithin(region.from, this.base.sliceString(region.from, region.to), this.view.sliceString(from, to))
    })
    return new Overlay(this.base, this.view, replacedIn(this.changes, regions, specs))
  }

  /** @param edit of the view @param ranges of the base in which fewer changes remain */
  #with(edit: ChangeSet, ranges: readonly Range[]): Step {
    return { overlay: edit.empty ? this : this.own(edit).compared(ranges), edit }
  }
}

const ordered = (from: number, to: number): Range => (from <= to ? { from, to } : { from: to, to })

/** Parts that touch, as those of an insertion that is too long for one, are one. */
function joinedParts(parts: readonly Part[]) {
  const found: Part[] = []
  for (const part of [...parts].sort(byOffset)) {
    const last = found.at(-1)
    if (last && part.start <= last.end) {
      found.splice(-1, 1, { start: last.start, end: part.end, quote: last.quote + part.quote, text: last.text + part.text })
    } else {
      found.push(part)
    }
  }
  return found
}

/** Where a text has the words of a part, at one of its ends. */
function offsetOf(now: string, text: string): number | null {
  if (now === text) return 0
  if (text === "") return null
  if (now.startsWith(text) && isWordBreak(now, text.length)) return 0
  const offset = now.length - text.length
  return now.endsWith(text) && isWordBreak(now, offset) ? offset : null
}
