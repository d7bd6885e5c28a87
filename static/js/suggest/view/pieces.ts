/**
 * The own changes in the reviewer's text: new words are text with a mark, old ones stand struck behind them.
 *
 * A widget has side 1, or it would end a composition before it. Up to the line of a composition the drawing of before
 * moves along (`desk/composing.ts`), and the rest of the text is drawn anew.
 */

import type { Range, Text } from "@codemirror/state"
import type { ViewUpdate } from "@codemirror/view"
import { el } from "../../lib/dom.ts"
import { number, t } from "../../lib/i18n.ts"
import { now } from "../../lib/server_clock.ts"
import { Decoration, EditorView, ViewPlugin, WidgetType } from "../../lib/vendor.ts"
import { marked } from "../../reviews/highlights.ts"
import { shownView } from "../../reviews/text_view.ts"
import type { Suggestion } from "../model/entries.ts"
import { overlaid, overlayOf } from "../sync/view_state.ts"
import { drawnChanges, foldedText, partsNear } from "./drawn_text.ts"

type Drawn = Range<Decoration>

interface Own {
  suggestions: () => readonly Suggestion[]
  idAt: (view: number) => string | null // the suggestion at a position
  press: (id: string) => void
}

/** The editor needs a moment to read the result of a composition, in ms. */
const COMPOSED_PAUSE = 60

class OldWords extends WidgetType {
  declare text: string
  declare style: string
  declare id: string | null
  declare folded

  constructor(text: string, style: string, id: string | null) {
    super()
    this.text = text
    this.style = style
    this.id = id
    this.folded = foldedText(text)
  }

  override eq({ text, style, id }: OldWords) {
    return text === this.text && style === this.style && id === this.id
  }

  override get lineBreaks() {
    return this.folded.split("\n").length - 1
  }

  override toDOM() {
    const given = { class: this.style, "aria-hidden": "true", "data-review": this.id ?? undefined }
    const words = el("del", { ...given, text: this.folded })
    if (this.folded.endsWith("…")) words.title = t("suggesting.folded", { count: number(this.text.length) })
    return words
  }

  /** A press on the old words is one on the text. */
  override ignoreEvent() {
    return false
  }
}

class NewBreak extends WidgetType {
  override eq() {
    return true
  }

  override toDOM() {
    return el("span", { class: "passage-break", "aria-hidden": "true", text: "¶" })
  }

  override ignoreEvent() {
    return false
  }
}

const newBreak = Decoration.widget({ widget: new NewBreak(), side: 1 })

/** @returns in the order of the text */
function draw({ state, viewport }: EditorView, { suggestions }: Own): Drawn[] {
  if (state.field(shownView) !== "shown") return []
  const overlay = state.field(overlayOf)
  const { active } = state.field(marked)
  const near = overlay.hunks.filter((hunk) => hunk.new.from <= viewport.to && viewport.from <= hunk.new.to)
  const spots = partsNear(suggestions(), overlay.rangeToBase(viewport))
  return drawnChanges(near, spots, overlay).flatMap(({ id, old, new: { from, to } }) => {
    const style = id !== null && id === active ? " passage-active" : ""
    const drawn: Drawn[] = []
    if (from < to) {
      const attributes: Record<string, string> = id === null ? {} : { "data-review": id, "aria-details": `comment-${id}` }
      const mark = Decoration.mark({ tagName: "ins", class: `passage passage-new${style}`, attributes, inclusiveEnd: true })
      drawn.push(mark.range(from, to), ...breaksIn(state.doc, { from, to }))
    }
    if (old.from < old.to) {
      const words = new OldWords(overlay.base.sliceString(old.from, old.to), `passage passage-old${from < to ? " passage-replaced" : ""}${style}`, id)
      drawn.push(Decoration.widget({ widget: words, side: 1 }).range(to))
    }
    return drawn
  })
}

function breaksIn(text: Text, { from, to }: { from: number, to: number }) {
  const drawn = []
  for (let line = text.lineAt(from); line.to < to; line = text.line(line.number + 1)) drawn.push(newBreak.range(line.to))
  return drawn
}

export function ownPieces(own: Own) {
  class Drawing {
    declare view: EditorView
    declare decorations
    /** The line of a composition waits for its end. */
    stale = false
    timer = 0
    /** When the last composition ended, in ms. */
    composedAt = 0

    constructor(view: EditorView) {
      this.view = view
      this.decorations = Decoration.set(draw(view, own), true)
    }

    update({ view, state, startState, changes, docChanged, viewportChanged, transactions }: ViewUpdate) {
      const isOther = startState.field(marked).active !== state.field(marked).active || startState.field(shownView) !== state.field(shownView)
      const isGiven = transactions.some((transaction) => transaction.annotation(overlaid))
      if (!docChanged && !viewportChanged && !isOther && !isGiven && !this.stale) return
      const next = draw(view, own)
      const begins = transactions.some((transaction) => transaction.isUserEvent("delete.compose"))
      this.stale = begins || view.compositionStarted || now() < this.composedAt + COMPOSED_PAUSE
      if (!this.stale) {
        this.decorations = Decoration.set(next, true)
        return
      }
      const { to: end } = state.doc.lineAt(state.selection.main.head)
      const isBehind = (from: number) => end < from
      this.decorations = this.decorations.map(changes).update({ filter: (from) => !isBehind(from), add: next.filter(({ from }) => isBehind(from)), sort: true })
    }

    composed() {
      this.composedAt = now()
      window.clearTimeout(this.timer)
      this.timer = window.setTimeout(() => {
        if (this.stale && !this.view.compositionStarted) this.view.dispatch({})
      }, COMPOSED_PAUSE)
    }

    destroy() {
      window.clearTimeout(this.timer)
    }
  }
  return [
    ViewPlugin.fromClass(Drawing, {
      decorations: (drawing) => drawing.decorations,
      eventObservers: {
        compositionend() {
          this.composed()
        },
      },
    }),
    EditorView.domEventHandlers({
      mouseup(event, view) {
        if (event.button !== 0 || !view.state.selection.main.empty) return false
        const at = view.posAtCoords({ x: event.clientX, y: event.clientY })
        const id = at === null ? null : own.idAt(at)
        if (id !== null) own.press(id)
        return id !== null
      },
    }),
  ]
}
