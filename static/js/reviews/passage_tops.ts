/**
 * How far below the top of the text the first lines of the passages are. An edit moves few of them, so it measures again
 * only those of the lines that it changed, unless a line has moved or is drawn anew.
 */

import type { BlockInfo } from "@codemirror/view"
import type { Editor } from "../desk/editor.ts"
import type { Range } from "./locate.ts"

type Line = Pick<BlockInfo, "top" | "height">

export class PassageTops {
  declare editor: Editor
  declare startOf: (id: string) => number
  /** In px. */
  #tops: Map<string, number> = new Map()
  /** The ids of the passages, in the order of the text. */
  #order: readonly string[] = []
  /** The lines of the edits since the last look. */
  #edits: Range[] = []
  /** The lines that were drawn then. */
  #lines: readonly Line[] = []
  #contentHeight = 0

  /** @param startOf where a passage starts */
  constructor(editor: Editor, startOf: (id: string) => number) {
    this.editor = editor
    this.startOf = startOf
  }

  start(signal: AbortSignal) {
    this.editor.addEventListener("geometry", (event) => {
      const { detail } = event as CustomEvent<Range | null>
      if (detail) this.#edits.push(detail)
    }, { signal })
  }

  /** After a change of reviews. @param ids in the order of the text */
  setOrder(ids: readonly string[]) {
    this.#order = ids
    this.#tops.clear()
  }

  /** Forgets what may have moved since the last look. */
  follow() {
    const { viewportLineBlocks: lines, contentHeight } = this.editor.view
    const isSame = ({ top, height }: Line, before: Line | undefined) => top === before?.top && height === before.height
    const stays = contentHeight === this.#contentHeight && lines.length === this.#lines.length && lines.every((line, at) => isSame(line, this.#lines[at]))
    this.#contentHeight = contentHeight
    this.#lines = lines
    const [edited, ...more] = this.#edits.splice(0)
    if (!stays || 0 < more.length) this.#tops.clear()
    else if (edited) this.#forget(edited)
  }

  #forget({ from, to }: Range) {
    const startAt = (at: number) => this.startOf(this.#order[at] ?? "")
    let [first, end] = [0, this.#order.length]
    while (first < end) {
      const middle = (first + end) >> 1
      if (startAt(middle) < from) first = middle + 1
      else end = middle
    }
    for (let at = first; at < this.#order.length && startAt(at) <= to; at++) this.#tops.delete(this.#order[at] ?? "")
  }

  has(id: string) {
    return this.#tops.has(id)
  }

  /** The middle of the first line of a passage. @param text of the text @returns in px */
  of(id: string, text: DOMRect): number {
    const stored = this.#tops.get(id)
    if (stored !== undefined) return stored
    const { top, bottom } = this.editor.coordinatesAt(this.startOf(id), 1, text)
    const middle = (top + bottom) / 2 - text.top
    this.#tops.set(id, middle)
    return middle
  }
}
