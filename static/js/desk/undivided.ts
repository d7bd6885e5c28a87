/**
 * Units of the text that no edit of the user and no caret divides: surrogate pairs, emoji of several code points and "\r\n".
 *
 * Yjs replaces both halves of a pair that an edit divides by U+FFFD. The editor reads the smallest change off the page, and of
 * 😀 → 😁 that is the second half. Stock clients put "\r\n" into a text.
 */

import type { Text, Transaction, TransactionSpec as Spec } from "@codemirror/state"
import { Decoration, EditorSelection, EditorState, EditorView } from "../lib/vendor.ts"

/** Half a pair without its other half. */
const HALF = /\p{Cs}/gu
const EMOJI = String.raw`(?:\p{RI}\p{RI}|\p{Emoji}(?:\p{EMod}|\uFE0F\u20E3?|[\u{E0020}-\u{E007E}]+\u{E007F})?)`
const UNDIVIDED = new RegExp(String.raw`\r\n|${EMOJI}(?:\u200D${EMOJI})*`, "gu")
const unit = Decoration.mark({})

/** @param isRemote whether the shared text has a change already */
export const undivided = (isRemote: (change: Transaction) => boolean) => [
  EditorState.transactionFilter.of((change) => (isRemote(change) ? change : ofWholePairs(change))),
  EditorState.transactionFilter.of(besideBreaks),
  // Keys that move the caret or delete pass over all of it.
  EditorView.atomicRanges.of(({ state, viewport: { from, to } }) => Decoration.set(undividedIn(state.sliceDoc(from, to)).map((range) => unit.range(from + range.from, from + range.to)))),
]

export function undividedIn(text: string) {
  const found = [...text.matchAll(UNDIVIDED)].map(({ 0: { length }, index }) => ({ from: index, to: index + length }))
  return found.filter(({ from, to }) => 1 < to - from)
}

/**
 * The transaction, with a second change where it divides a pair: that change replaces the other half by itself, and both together
 * replace the pair. A half that remains alone is deleted.
 */
function ofWholePairs(transaction: Transaction): Spec | readonly Spec[] {
  if (!transaction.docChanged) return transaction
  const { doc } = transaction.startState
  const changes: { from: number, to: number, insert: string }[] = []
  transaction.changes.iterChanges((from, to, newFrom, newTo, inserted) => {
    const left = isPair(around(doc, from)) ? doc.sliceString(from - 1, from) : ""
    const right = isPair(around(doc, to)) ? doc.sliceString(to, to + 1) : ""
    const text = inserted.toString()
    const next = left + text + right
    const whole = from === to && left ? left + right + text.replace(HALF, "") : next.replace(HALF, "")
    if (whole !== next) changes.push({ from: newFrom - left.length, to: newTo + right.length, insert: whole })
    // The caret may be at a position between both ends, which stay.
    else if (left) changes.push({ from: newFrom - 1, to: newFrom, insert: left })
    if (whole === next && right) changes.push({ from: newTo, to: newTo + 1, insert: right })
  })
  return changes.length === 0 ? transaction : [transaction, { changes, sequential: true }]
}

/** Moves a caret out of "\r\n", to its start. */
function besideBreaks(transaction: Transaction): Spec | readonly Spec[] {
  if (!transaction.selection) return transaction
  const { newDoc, newSelection: { main: { anchor, head } } } = transaction
  const before = (at: number) => (around(newDoc, at) === "\r\n" ? at - 1 : at)
  if (before(anchor) === anchor && before(head) === head) return transaction
  return [transaction, { selection: EditorSelection.single(before(anchor), before(head)), sequential: true }]
}

/** The units before and behind a position. */
const around = (text: Text, at: number) => text.sliceString(at - 1, at + 1)

const isPair = (units: string) => /^[\uD800-\uDBFF][\uDC00-\uDFFF]$/.test(units)
