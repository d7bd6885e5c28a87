/**
 * The base: the writer's text, in which the server counts and in which reviews are anchored.
 *
 * On the writer's page the editor holds the base itself. On the reviewer's page it holds the view, which is the base
 * with the reviewer's own suggestions, and each of its positions has another one in the base. Parts of the desk that
 * exchange positions with the server or with the peer ask this facet.
 */

import type { ChangeDesc, EditorState as State, Text, Transaction } from "@codemirror/state"
import { Facet } from "../lib/vendor.ts"

type Range = { from: number, to: number }

export interface Base {
  text: (state: State) => Text
  /** The change of the base in a transaction; `null`: the base stays. */
  step: (transaction: Transaction) => { changes: ChangeDesc, text: Text } | null
  toBase: (state: State, at: number, side?: 1 | -1) => number // from the editor
  toView: (state: State, at: number, side?: 1 | -1) => number // from the base
  rangeToBase: (state: State, range: Range) => Range // empty inside an own insertion
  rangeToView: (state: State, range: Range) => Range
  toShared: (at: number, side?: 0 | -1) => number // from the base to the shared text, which may be ahead of it
  fromShared: (at: number) => number
  isInView: (review: string) => boolean // whether the editor's text contains the words of this suggestion
}

/** The base of an editor that holds it. */
const own: Base = {
  text: ({ doc }) => doc,
  step: ({ docChanged, changes, newDoc }) => (docChanged ? { changes, text: newDoc } : null),
  toBase: (_state, at) => at,
  toView: (_state, at) => at,
  rangeToBase: (_state, range) => range,
  rangeToView: (_state, range) => range,
  toShared: (at) => at,
  fromShared: (at) => at,
  isInView: () => false,
}

export const base: import("@codemirror/state").Facet<Base, Base> = Facet.define({ combine: ([given]) => given ?? own })
