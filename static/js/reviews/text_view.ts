/**
 * The three views of a text: with its suggestions, as if all that stand were accepted, and without them. The second one is
 * drawn over the text, which stays what it is: it is read-only, and a copy of it is as it is shown.
 */

import type { EditorState as State, StateEffectType } from "@codemirror/state"
import { base } from "../desk/base_text.ts"
import { el } from "../lib/dom.ts"
import { Decoration, EditorState, EditorView, keymap, Prec, StateEffect, StateField, WidgetType } from "../lib/vendor.ts"
import { acceptable, acceptedOnes, type Replacement } from "../sections/accepted.ts"
import type { Marked } from "./highlights.ts"
import { olderFirst } from "./parts.ts"
import { isWhole } from "./spots.ts"

export type View = "shown" | "accepted" | "original"
type MarkedField = import("@codemirror/state").StateField<Marked>

export const VIEWS: readonly View[] = ["shown", "accepted", "original"]

export const setView: StateEffectType<View> = StateEffect.define()

export const shownView = StateField.define({
  create: () => "shown" as View,
  update: (before, { effects }) => effects.reduce((view, effect) => (effect.is(setView) ? effect.value : view), before),
})

class AcceptedText extends WidgetType {
  declare text: string

  constructor(text: string) {
    super()
    this.text = text
  }

  override eq({ text }: AcceptedText) {
    return text === this.text
  }

  override toDOM() {
    return el("span", { class: "passage-accepted", text: this.text })
  }

  override get lineBreaks() {
    return this.text.split("\n").length - 1
  }

  override ignoreEvent() {
    return false
  }
}

/** The parts of all suggestions that stand and that the text does not contain yet, the oldest suggestion first. */
export function applicableSuggestions(state: State, marked: MarkedField): Replacement[][] {
  const { isInView, rangeToView } = state.facet(base)
  const applicable = wholeSuggestions(state, marked).filter(({ id }) => !isInView(id))
  return applicable.map(({ spots }) => spots.map((spot) => ({ ...rangeToView(state, spot), text: spot.text ?? "" })))
}

/** The suggestions that stand, the oldest first. */
function wholeSuggestions(state: State, marked: MarkedField) {
  const all = [...state.field(marked).passages].flatMap(([id, passage]) => (passage.suggests && isWhole(passage.spots) ? [{ id, ...passage }] : []))
  return all.sort(olderFirst)
}

/** The answers of `overlappedIds`, by `look` of the marked passages: it is another one after each change. */
const found: WeakMap<object, ReadonlySet<string>> = new WeakMap()

/** The suggestions that stand, and that the server does not accept beside an older one. */
export function overlappedIds(state: State, marked: MarkedField) {
  const { look } = state.field(marked)
  const before = found.get(look)
  if (before) return before
  const all = wholeSuggestions(state, marked)
  const isAccepted = acceptedOnes(Number.POSITIVE_INFINITY, all.map(({ spots }) => spots.map(({ from, to, text }) => ({ from, to, text: text ?? "" }))))
  const overlapped = new Set(all.flatMap(({ id }, at) => (isAccepted[at] ? [] : [id])))
  found.set(look, overlapped)
  return overlapped
}

function drawn(replacements: readonly Replacement[]) {
  const ranges = replacements.map(({ from, to, text }) => {
    const widget = new AcceptedText(text)
    if (from === to) return Decoration.widget({ widget, side: 1 }).range(from)
    return Decoration.replace(text === "" ? {} : { widget }).range(from, to)
  })
  return Decoration.set(ranges, true)
}

export function textView(marked: MarkedField) {
  const replacements = (state: State) => acceptable(state.doc.length, applicableSuggestions(state, marked))
  const isAccepted = (state: State) => state.field(shownView) === "accepted"
  return [
    shownView,
    // Not by a plugin: a replacement may join lines.
    EditorView.decorations.compute([shownView, marked, "doc"], (state) => (isAccepted(state) ? drawn(replacements(state)) : Decoration.none)),
    // The undo history of the text does not ask whether it is read-only.
    Prec.highest(keymap.of(["Mod-z", "Mod-y", "Mod-Shift-z"].map((key) => ({ key, run: ({ state }) => isAccepted(state) })))),
    Prec.highest(EditorState.readOnly.computeN([shownView], (state) => (isAccepted(state) ? [true] : []))),
    EditorView.clipboardOutputFilter.of((text, state) => {
      const { from, to, empty } = state.selection.main
      if (empty || !isAccepted(state)) return text
      return textAs(state.sliceDoc(from, to), replacements(state).filter((one) => from <= one.from && one.to <= to), from)
    }),
  ]
}

/** The text as it is shown. */
export function textShown(state: State, marked: MarkedField) {
  if (state.field(shownView) === "original") return state.facet(base).text(state).toString()
  const text = state.doc.toString()
  return state.field(shownView) === "accepted" ? textAs(text, acceptable(text.length, applicableSuggestions(state, marked))) : text
}

/** @param replacements in its order @param start where the text begins */
function textAs(text: string, replacements: readonly Replacement[], start: number = 0) {
  let [written, end] = ["", 0]
  for (const { from, to, text: words } of replacements) {
    written += text.slice(end, from - start) + words
    end = to - start
  }
  return written + text.slice(end)
}
