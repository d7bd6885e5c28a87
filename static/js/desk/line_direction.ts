/**
 * Lines in Arabic, Hebrew and other scripts from right to left.
 *
 * Such a line gets `dir=auto`, by which the browser takes the direction of its first letter. The editor
 * then moves the caret by the line and not by the page. Other lines stay as they are: they cost nothing.
 */

import type { ViewUpdate } from "@codemirror/view"
import { Decoration, EditorView, ViewPlugin } from "../lib/vendor.ts"

/** Letters of the scripts that are written from right to left. */
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u

const auto = Decoration.line({ attributes: { dir: "auto" } })

function draw(view: EditorView) {
  const { doc } = view.state
  const lines = []
  for (const { from, to } of view.visibleRanges) {
    for (let at = from; at <= to; ) {
      const line = doc.lineAt(at)
      if (RIGHT_TO_LEFT.test(line.text)) lines.push(auto.range(line.from))
      at = line.to + 1
    }
  }
  return Decoration.set(lines)
}

export const lineDirection = [
  EditorView.perLineTextDirection.of(true),
  ViewPlugin.fromClass(
    class {
      declare decorations

      constructor(view: EditorView) {
        this.decorations = draw(view)
      }

      update(update: ViewUpdate) {
        if (update.docChanged || update.viewportChanged) this.decorations = draw(update.view)
      }
    },
    { decorations: (plugin) => plugin.decorations },
  ),
]
