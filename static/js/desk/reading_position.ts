/**
 * Holds the line that the user reads where it stands in the window, while the page changes the text round it: edits of
 * the peer, decisions, suggestions, meters. With the focus in the text it is the line of the caret, if that is in the
 * window, and else the first line in the window.
 *
 * The window scrolls and not the editor, whose own anchor serves a focused text alone. The correction follows the change
 * at once, so no frame shows the line elsewhere.
 */

import type { ChangeSet, StateEffectType, Transaction } from "@codemirror/state"
import { byId } from "../lib/dom.ts"
import { EditorView } from "../lib/vendor.ts"

/** A position of the text, and where its row stands in the window, in px. */
type Position = { at: number, top: number }

/** A scroll of the user goes on when its next event comes within this, in ms: it is not corrected, or it would end. */
const SCROLL_PAUSE = 100
/** The keys that scroll a window. */
const SCROLL_KEYS = [" ", "PageUp", "PageDown", "Home", "End", "ArrowUp", "ArrowDown"]
/** The lines that are tried, from the top of the window: the change may delete the first. */
const ROWS = 6
/** A correction draws other lines, whose heights were estimates before: so it is repeated, at most so often. */
const REPEATS = 6
/** The type of an effect that scrolls. */
const scrolling: StateEffectType<unknown> = Reflect.get(EditorView.scrollIntoView(0), "type")

export class ReadingPosition {
  declare isRemote: (change: Transaction) => boolean
  /** The rows that a running change holds, the best first; `null`: none runs. */
  #positions: Position[] | null = null
  /** When the user last began or went on to scroll, in ms. */
  #startedAt = Number.NEGATIVE_INFINITY
  #scrolledAt = Number.NEGATIVE_INFINITY
  #stopped = new AbortController()

  /** @param isRemote whether a change is not the user's */
  constructor(isRemote: (change: Transaction) => boolean) {
    this.isRemote = isRemote
    const { signal } = this.#stopped
    const starts = () => (this.#startedAt = performance.now())
    for (const type of ["wheel", "touchmove"]) window.addEventListener(type, starts, { signal, passive: true })
    window.addEventListener("keydown", ({ key }) => SCROLL_KEYS.includes(key) && starts(), { signal })
    window.addEventListener("scroll", () => this.#scrolled(), { signal, passive: true })
  }

  stop() {
    this.#stopped.abort()
  }

  #scrolled() {
    const now = performance.now()
    if (now < Math.max(this.#startedAt, this.#scrolledAt) + SCROLL_PAUSE) this.#scrolledAt = now
  }

  /** Updates the editor. A listener may dispatch meanwhile: that change is a part of this one. */
  dispatch(transactions: readonly Transaction[], view: EditorView) {
    const isInner = this.#positions !== null
    const holds = this.#mayHold(transactions, view)
    this.#positions = holds ? (this.#positions ?? positionsIn(view)) : []
    for (const { changes } of transactions) this.#positions = movedPositions(this.#positions, changes)
    try {
      view.update(transactions)
      if (!isInner) hold(view, this.#positions[0])
    } finally {
      if (!isInner) this.#positions = null
    }
  }

  /** Not an edit or a movement of the user, nor during a composition. */
  #mayHold(transactions: readonly Transaction[], view: EditorView) {
    if (view.compositionStarted || performance.now() < this.#scrolledAt + SCROLL_PAUSE) return false
    return transactions.every((transaction) => {
      const { docChanged, selection, effects, scrollIntoView } = transaction
      const isUsers = docChanged ? !this.isRemote(transaction) : selection !== undefined
      return !isUsers && !scrollIntoView && !effects.some((effect) => effect.is(scrolling))
    })
  }
}

function positionsIn(view: EditorView): Position[] {
  const { left, top: above, bottom: below } = view.contentDOM.getBoundingClientRect()
  const bar = byId("bar")
  const top = Math.max(getComputedStyle(bar).position === "sticky" ? bar.getBoundingClientRect().bottom : 0, above)
  const bottom = Math.min(byId("text-counts-bar").getBoundingClientRect().top, below)
  if (bottom <= top) return []
  const { head } = view.state.selection.main
  const caret = view.hasFocus ? view.coordsAtPos(head) : null
  const positions = caret && top <= caret.top && caret.bottom <= bottom ? [{ at: head, top: caret.top }] : []
  // At the top of the page no text is above the window.
  if (window.scrollY === 0) return positions
  for (let row = 0; row < ROWS; row++) {
    const at = view.posAtCoords({ x: left + 1, y: top + 12 + ((bottom - top) * row) / ROWS }, false)
    positions.push({ at, top: topOf(view, at) })
  }
  return positions
}

/** The positions whose letters stay. */
const movedPositions = (positions: Position[], changes: ChangeSet) =>
  positions.flatMap(({ at, top }) => (changes.touchesRange(at) === "cover" ? [] : [{ at: changes.mapPos(at, 1), top }]))

function hold(view: EditorView, position: Position | undefined) {
  if (position === undefined) return
  for (let repeat = 0; repeat < REPEATS; repeat++) {
    const by = topOf(view, position.at) - position.top
    if (Math.abs(by) < 1) return
    window.scrollBy({ top: by, behavior: "instant" })
    view.requestMeasure()
  }
}

/** Measures first if a measurement is due. */
function topOf(view: EditorView, at: number) {
  const rect = view.coordsAtPos(at, 1)
  return rect ? rect.top : view.documentTop + view.lineBlockAt(at).top
}
