/**
 * The original on the reviewer's page: the writer's text drawn over the view, read-only, and copied as it is shown. The
 * text of the editor stays the view, so the undo history and the caret outlive it.
 */

import { el } from "../../lib/dom.ts"
import { Decoration, EditorState, EditorView, Prec, WidgetType } from "../../lib/vendor.ts"
import { shownView } from "../../reviews/text_view.ts"
import type { Overlay } from "../model/overlay.ts"
import { overlayOf } from "../sync/view_state.ts"

class OriginalWords extends WidgetType {
  declare text: string

  constructor(text: string) {
    super()
    this.text = text
  }

  override eq({ text }: OriginalWords) {
    return text === this.text
  }

  override get lineBreaks() {
    return this.text.split("\n").length - 1
  }

  override toDOM() {
    return el("span", { text: this.text })
  }

  override ignoreEvent() {
    return false
  }
}

function drawn(overlay: Overlay) {
  const ranges = overlay.hunks.map(({ old, new: { from, to } }) => {
    const words = overlay.base.sliceString(old.from, old.to)
    const widget = new OriginalWords(words)
    if (from === to) return Decoration.widget({ widget, side: 1 }).range(from)
    return Decoration.replace(words === "" ? {} : { widget }).range(from, to)
  })
  return Decoration.set(ranges, true)
}

const isOriginal = (state: import("@codemirror/state").EditorState) => state.field(shownView) === "original"

export const originalText = [
  // Not by a plugin: a replacement may join lines.
  EditorView.decorations.compute([shownView, overlayOf], (state) => (isOriginal(state) ? drawn(state.field(overlayOf)) : Decoration.none)),
  Prec.highest(EditorState.readOnly.computeN([shownView], (state) => (isOriginal(state) ? [true] : []))),
  EditorView.clipboardOutputFilter.of((text, state) => {
    const { main } = state.selection
    if (main.empty || !isOriginal(state)) return text
    const { from, to } = state.field(overlayOf).rangeToBase(main)
    return state.field(overlayOf).base.sliceString(from, to)
  }),
]
