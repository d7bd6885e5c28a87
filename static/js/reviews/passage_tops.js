// @ts-check
/**
 * How far below the top of the text the first lines of the passages are. An edit moves few of them, so it measures again
 * only those of the lines that it changed, unless a line has moved or is drawn anew.
 */

/**
 * @typedef {import("./locate.js").Range} Range
 * @typedef {Pick<import("@codemirror/view").BlockInfo, "top" | "height">} Line
 */

export class PassageTops {
  /** In px. @type {Map<string, number>} */
  #tops = new Map()
  /** The ids of the passages, in the order of the text. @type {readonly string[]} */
  #order = []
  /** The lines of the edits since the last look. @type {Range[]} */
  #edits = []
  /** The lines that were drawn then. @type {readonly Line[]} */
  #lines = []
  #contentHeight = 0

  /** @param {import("../desk/editor.js").Editor} editor @param {(id: string) => number} startOf where a passage starts */
  constructor(editor, startOf) {
    this.editor = editor
    this.startOf = startOf
  }

  /** @param {AbortSignal} signal */
  start(signal) {
    this.editor.addEventListener("geometry", (event) => {
      const { detail } = /** @type {CustomEvent<Range | null>} */ (event)
      if (detail) this.#edits.push(detail)
    }, { signal })
  }

  /** After a change of reviews. @param {readonly string[]} ids in the order of the text */
  setOrder(ids) {
    this.#order = ids
    this.#tops.clear()
  }

  /** Forgets what may have moved since the last look. */
  follow() {
    const { viewportLineBlocks: lines, contentHeight } = this.editor.view
    const isSame = (/** @type {Line} */ { top, height }, /** @type {Line | undefined} */ before) => top === before?.top && height === before.height
    const stays = contentHeight === this.#contentHeight && lines.length === this.#lines.length && lines.every((line, at) => isSame(line, this.#lines[at]))
    this.#contentHeight = contentHeight
    this.#lines = lines
    const [edited, ...more] = this.#edits.splice(0)
    if (!stays || 0 < more.length) this.#tops.clear()
    else if (edited) this.#forget(edited)
  }

  /** @param {Range} range */
  #forget({ from, to }) {
    const startAt = (/** @type {number} */ at) => this.startOf(this.#order[at] ?? "")
    let [first, end] = [0, this.#order.length]
    while (first < end) {
      const middle = (first + end) >> 1
      if (startAt(middle) < from) first = middle + 1
      else end = middle
    }
    for (let at = first; at < this.#order.length && startAt(at) <= to; at++) this.#tops.delete(this.#order[at] ?? "")
  }

  /** @param {string} id */
  has(id) {
    return this.#tops.has(id)
  }

  /** The middle of the first line of a passage. @param {string} id @param {DOMRect} text of the text @returns {number} in px */
  of(id, text) {
    const stored = this.#tops.get(id)
    if (stored !== undefined) return stored
    const { top, bottom } = this.editor.coordinatesAt(this.startOf(id), 1, text)
    const middle = (top + bottom) / 2 - text.top
    this.#tops.set(id, middle)
    return middle
  }
}
