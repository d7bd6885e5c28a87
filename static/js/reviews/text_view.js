// @ts-check
/**
 * The three views of a text: with its suggestions, as if all that stand were accepted, and without them. The second one is
 * drawn over the text, which stays what it is: it is read-only, and a copy of it is as it is shown.
 */

import { base } from "../desk/base_text.js"
import { el } from "../lib/dom.js"
import { Decoration, EditorState, EditorView, keymap, Prec, StateEffect, StateField, WidgetType } from "../lib/vendor.js"
import { acceptable, acceptedOnes } from "../sections/accepted.ts"
import { olderFirst } from "./parts.js"
import { isWhole } from "./spots.js"

/**
 * @typedef {"shown" | "accepted" | "original"} View
 * @typedef {import("../sections/accepted.ts").Replacement} Replacement
 * @typedef {import("@codemirror/state").EditorState} State
 * @typedef {import("@codemirror/state").StateField<import("./highlights.js").Marked>} MarkedField
 */

/** @type {readonly View[]} */
export const VIEWS = ["shown", "accepted", "original"]

/** @type {import("@codemirror/state").StateEffectType<View>} */
export const setView = StateEffect.define()

export const shownView = StateField.define({
  create: () => /** @type {View} */ ("shown"),
  update: (before, { effects }) => effects.reduce((view, effect) => (effect.is(setView) ? effect.value : view), before),
})

class AcceptedText extends WidgetType {
  /** @param {string} text */
  constructor(text) {
    super()
    this.text = text
  }

  /** @override @param {AcceptedText} other */
  eq({ text }) {
    return text === this.text
  }

  /** @override */
  toDOM() {
    return el("span", { class: "passage-accepted", text: this.text })
  }

  /** @override */
  get lineBreaks() {
    return this.text.split("\n").length - 1
  }

  /** @override */
  ignoreEvent() {
    return false
  }
}

/**
 * The parts of all suggestions that stand and that the text does not contain yet, the oldest suggestion first.
 *
 * @param {State} state @param {MarkedField} marked @returns {Replacement[][]}
 */
export function applicableSuggestions(state, marked) {
  const { isInView, rangeToView } = state.facet(base)
  const applicable = wholeSuggestions(state, marked).filter(({ id }) => !isInView(id))
  return applicable.map(({ spots }) => spots.map((spot) => ({ ...rangeToView(state, spot), text: spot.text ?? "" })))
}

/** The suggestions that stand, the oldest first. @param {State} state @param {MarkedField} marked */
function wholeSuggestions(state, marked) {
  const all = [...state.field(marked).passages].flatMap(([id, passage]) => (passage.suggests && isWhole(passage.spots) ? [{ id, ...passage }] : []))
  return all.sort(olderFirst)
}

/** By `look` of the marked passages. @type {WeakMap<object, ReadonlySet<string>>} */
const found = new WeakMap()

/** The suggestions that stand, and that the server does not accept beside an older one. @param {State} state @param {MarkedField} marked */
export function overlappedIds(state, marked) {
  const { look } = state.field(marked)
  const before = found.get(look)
  if (before) return before
  const all = wholeSuggestions(state, marked)
  const isAccepted = acceptedOnes(Number.POSITIVE_INFINITY, all.map(({ spots }) => spots.map(({ from, to, text }) => ({ from, to, text: text ?? "" }))))
  const overlapped = new Set(all.flatMap(({ id }, at) => (isAccepted[at] ? [] : [id])))
  found.set(look, overlapped)
  return overlapped
}

/** @param {readonly Replacement[]} replacements */
function drawn(replacements) {
  const ranges = replacements.map(({ from, to, text }) => {
    const widget = new AcceptedText(text)
    if (from === to) return Decoration.widget({ widget, side: 1 }).range(from)
    return Decoration.replace(text === "" ? {} : { widget }).range(from, to)
  })
  return Decoration.set(ranges, true)
}

/** @param {MarkedField} marked */
export function textView(marked) {
  const replacements = (/** @type {State} */ state) => acceptable(state.doc.length, applicableSuggestions(state, marked))
  const isAccepted = (/** @type {State} */ state) => state.field(shownView) === "accepted"
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

/** The text as it is shown. @param {State} state @param {MarkedField} marked */
export function textShown(state, marked) {
  if (state.field(shownView) === "original") return state.facet(base).text(state).toString()
  const text = state.doc.toString()
  return state.field(shownView) === "accepted" ? textAs(text, acceptable(text.length, applicableSuggestions(state, marked))) : text
}

/** @param {string} text @param {readonly Replacement[]} replacements in its order @param {number} [start] where the text begins */
function textAs(text, replacements, start = 0) {
  let [written, end] = ["", 0]
  for (const { from, to, text: words } of replacements) {
    written += text.slice(end, from - start) + words
    end = to - start
  }
  return written + text.slice(end)
}
