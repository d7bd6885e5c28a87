// @ts-check
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

import { ChangeSet } from "../lib/vendor.js"
import { rangeOf } from "./identity.js"
import { applied, byOffset, stands } from "./parts.js"
import { isWithinOneOf, mappingOf, meets, meetsOneOf, newRangesOf, overlaps, shiftWhole, united } from "./ranges.js"
import { replacedIn, specsWithin, tidy } from "./tidy.js"
import { isWordBreak } from "./words.js"

/**
 * @typedef {import("../lib/vendor.js").Text} Text
 * @typedef {import("../reviews/word_diff.js").HunkPosition} HunkPosition
 * @typedef {import("../reviews/word_diff.js").Range} Range
 * @typedef {import("./parts.js").Part} Part
 * @typedef {{ overlay: Overlay, edit: ChangeSet }} Step the new overlay and the edit of the view that leads to it
 * @typedef {{ kind: "inserted", from: number, to: number, base: number }
 *   | { kind: "deleted", at: number, base: Range, text: string }} Piece in offsets of the view, but for `base`
 */

export class Overlay {
  /** @type {HunkPosition[] | null} */
  #hunks = null
  /** The last own edit, with the overlay after it. @type {Step | null} */
  #next = null
  /** @type {import("./ranges.js").Mapping | null} */
  #mapping = null

  /** @param {Text} base @param {Text} view @param {ChangeSet} changes */
  constructor(base, view, changes) {
    this.base = base
    this.view = view
    this.changes = changes
  }

  /** @param {Text} base */
  static plain(base) {
    return new Overlay(base, base, ChangeSet.empty(base.length))
  }

  /** The changes, in order; `old` in the base and `new` in the view. @returns {readonly HunkPosition[]} */
  get hunks() {
    if (this.#hunks) return this.#hunks
    /** @type {HunkPosition[]} */
    const found = []
    this.changes.iterChangedRanges((from, to, newFrom, newTo) => {
      found.push({ old: { from, to }, new: { from: newFrom, to: newTo } })
    })
    return (this.#hunks = found)
  }

  /** The reviewer's edit. The editor and the model both follow it, and share the result. @param {ChangeSet} edit of the view @returns {Overlay} */
  own(edit) {
    if (this.#next?.edit !== edit) this.#next = { edit, overlay: this.#after(this.base, edit, this.changes.compose(edit)) }
    return this.#next.overlay
  }

  /** The writer's edit (O2). @param {ChangeSet} edit of the base @returns {Step} */
  written(edit) {
    const viewEdit = edit.map(this.changes, true)
    return { overlay: this.#after(edit.apply(this.base), viewEdit, this.changes.map(edit)), edit: viewEdit }
  }

  /** An edit puts parts into the base that the view has already (O3). @param {ChangeSet} edit of the base @param {readonly Part[]} parts */
  accepted(edit, parts) {
    const changes = edit.invert(this.base).compose(this.changes)
    const map = mappingOf(edit)
    const ranges = parts.map(({ start, end }) => shiftWhole({ from: start, to: end }, map))
    return new Overlay(edit.apply(this.base), this.view, changes).compared(ranges)
  }

  /**
   * Whether parts may enter: each stands, and no change meets it but one of other suggestions that only touches it.
   *
   * @param {readonly Part[]} parts @param {readonly Part[]} others of the suggestions in the view
   */
  mayPut(parts, others = []) {
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

  /** Parts enter, which `mayPut` allows: a gap before the changes of others that begin there. @param {readonly Part[]} parts @returns {Step} */
  put(parts) {
    const change = (/** @type {Overlay} */ overlay, /** @type {boolean} */ isGap) =>
      overlay.#with(applied(this.base, parts.filter(({ start, end }) => (start === end) === isGap)).map(overlay.changes, isGap), [])
    const quotes = change(this, false)
    const gaps = change(quotes.overlay, true)
    return { overlay: gaps.overlay, edit: quotes.edit.compose(gaps.edit) }
  }

  /**
   * Parts leave, and the view has their quotes again. The words that the reviewer typed beside a part since stay;
   * a part with words inside it stays whole.
   *
   * @param {readonly Part[]} parts @returns {Step}
   */
  takeOut(parts) {
    const specs = joinedParts(parts).flatMap(({ start, end, quote, text }) => {
      const outer = this.outerRange({ from: start, to: end })
      const offset = offsetOf(this.view.sliceString(outer.from, outer.to), text)
      return offset === null ? [] : specsWithin(outer.from + offset, text, quote)
    })
    return this.#with(ChangeSet.of(specs, this.view.length), parts.map(({ start, end }) => ({ from: start, to: end })))
  }

  /** Parts leave that stand beside what the writer made of their words, in a change of the view. @param {readonly Part[]} parts @returns {Step} */
  takeOutBeside(parts) {
    const near = (/** @type {Part} */ part) => this.hunks.filter(({ old }) => meets(rangeOf(part), old))
    return this.takeOut(parts.flatMap((part) => near(part).map(({ old }) => ({ ...this.partOf(old), text: part.text }))))
  }

  /** Whether the view has the texts of parts in their ranges. @param {readonly Part[]} parts */
  has(parts) {
    return joinedParts(parts).every((part) => this.#says(part))
  }

  /** The ranges of the base in which it, or the view, is not what some parts say, which are disjoint. @param {readonly Part[]} parts @returns {Range[]} */
  unlike(parts) {
    const joined = joinedParts(parts)
    const isListed = isWithinOneOf(joined.map(rangeOf))
    return [...joined.filter((part) => !stands(this.base, part) || !this.#says(part)).map(rangeOf), ...this.hunks.flatMap(({ old }) => (isListed(old) ? [] : [old]))]
  }

  /** @param {Part} part */
  #says(part) {
    const { from, to } = this.outerRange(rangeOf(part))
    return to - from === part.text.length && this.view.sliceString(from, to) === part.text
  }

  /** The change of a range of the base as it is. @param {Range} range @returns {Part} */
  partOf({ from: start, to: end }) {
    const { from, to } = this.outerRange({ from: start, to: end })
    return { start, end, quote: this.base.sliceString(start, end), text: this.view.sliceString(from, to) }
  }

  /** The view has the text of the base again, in disjoint ranges of the base. @param {readonly Range[]} ranges @returns {Step} */
  revert(ranges) {
    const specs = ranges.flatMap((range) => {
      const { from, to } = this.outerRange(range)
      return specsWithin(from, this.view.sliceString(from, to), this.base.sliceString(range.from, range.to))
    })
    return this.#with(ChangeSet.of(specs, this.view.length), ranges)
  }

  /** The same view, with the changes of parts in place of all changes in some paragraphs. @param {readonly Range[]} scopes in order @param {readonly Part[]} parts */
  recut(scopes, parts) {
    const specs = parts.flatMap(({ start, quote, text }) => specsWithin(start, quote, text))
    return new Overlay(this.base, this.view, replacedIn(this.changes, scopes, specs))
  }

  /** The offset in the base; inside an insertion, its gap. @param {number} at in the view @param {-1 | 1} [side] */
  toBase(at, side = 1) {
    return this.changes.invertedDesc.mapPos(at, side)
  }

  /** @param {number} at in the base @param {-1 | 1} [side] */
  toView(at, side = 1) {
    return this.changes.mapPos(at, side)
  }

  /** A range of the view in the base; empty where it has no letter of the base. @param {Range} range @returns {Range} */
  rangeToBase(range) {
    const inverted = this.changes.invertedDesc
    return ordered(inverted.mapPos(range.from, 1), inverted.mapPos(range.to, -1))
  }

  /** A range of the base in the view, without insertions at its ends. @param {Range} range @returns {Range} */
  rangeToView(range) {
    return ordered(this.toView(range.from, 1), this.toView(range.to, -1))
  }

  /** A range of the base in the view, with insertions at its ends. @param {Range} range @returns {Range} */
  outerRange(range) {
    this.#mapping ??= mappingOf(this.changes)
    return shiftWhole(range, this.#mapping)
  }

  /**
   * The letters that differ, in the order of the view: new ones before the old ones that they replace.
   *
   * @param {Range} [range] of the view @returns {Piece[]}
   */
  pieces(range = { from: 0, to: this.view.length }) {
    return this.hunks.filter((hunk) => meets(range, hunk.new)).flatMap(({ old, new: { from, to } }) => {
      /** @type {Piece[]} */
      const found = []
      if (from < to) found.push({ kind: "inserted", from, to, base: old.from })
      if (old.from < old.to) found.push({ kind: "deleted", at: to, base: old, text: this.base.sliceString(old.from, old.to) })
      return found
    })
  }

  /** @param {Text} base @param {ChangeSet} edit of the view @param {ChangeSet} changes those that both edits lead to */
  #after(base, edit, changes) {
    const view = edit.apply(this.view)
    return new Overlay(base, view, tidy(changes, base, view, meetsOneOf(newRangesOf(edit))))
  }

  /** The same texts, with the finest changes in some ranges, as a reload reads them. @param {readonly Range[]} ranges of the base */
  compared(ranges) {
    if (ranges.length === 0) return this
    const isTouched = meetsOneOf(united(ranges))
    const regions = united([...ranges, ...this.hunks.flatMap(({ old }) => (isTouched(old) ? [old] : []))])
    const specs = regions.flatMap((region) => {
      const { from, to } = this.outerRange(region)
      return specsWithin(region.from, this.base.sliceString(region.from, region.to), this.view.sliceString(from, to))
    })
    return new Overlay(this.base, this.view, replacedIn(this.changes, regions, specs))
  }

  /** @param {ChangeSet} edit of the view @param {readonly Range[]} ranges of the base in which fewer changes remain @returns {Step} */
  #with(edit, ranges) {
    return { overlay: edit.empty ? this : this.own(edit).compared(ranges), edit }
  }
}

/** @param {number} from @param {number} to @returns {Range} */
const ordered = (from, to) => (from <= to ? { from, to } : { from: to, to })

/** Parts that touch, as those of an insertion that is too long for one, are one. @param {readonly Part[]} parts */
function joinedParts(parts) {
  /** @type {Part[]} */
  const found = []
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

/** Where a text has the words of a part, at one of its ends. @param {string} now @param {string} text @returns {number | null} */
function offsetOf(now, text) {
  if (now === text) return 0
  if (text === "") return null
  if (now.startsWith(text) && isWordBreak(now, text.length)) return 0
  const offset = now.length - text.length
  return now.endsWith(text) && isWordBreak(now, offset) ? offset : null
}
