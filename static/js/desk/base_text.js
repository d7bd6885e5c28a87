// @ts-check
/**
 * The base: the writer's text, in which the server counts and in which reviews are anchored.
 *
 * On the writer's page the editor holds the base itself. On the reviewer's page it holds the view, which is the base
 * with the reviewer's own suggestions, and each of its positions has another one in the base. Parts of the desk that
 * exchange positions with the server or with the peer ask this facet.
 */

import { Facet } from "../lib/vendor.js"

/**
 * @typedef {import("@codemirror/state").EditorState} State
 * @typedef {import("@codemirror/state").Text} Text
 * @typedef {import("@codemirror/state").Transaction} Transaction
 * @typedef {{ from: number, to: number }} Range
 *
 * @typedef {object} Base
 * @property {(state: State) => Text} text
 * @property {(transaction: Transaction) => { changes: import("@codemirror/state").ChangeDesc, text: Text } | null} step
 *   the change of the base in a transaction; `null`: the base stays
 * @property {(state: State, at: number, side?: 1 | -1) => number} toBase from the editor
 * @property {(state: State, at: number, side?: 1 | -1) => number} toView from the base
 * @property {(state: State, range: Range) => Range} rangeToBase empty inside an own insertion
 * @property {(state: State, range: Range) => Range} rangeToView
 * @property {(at: number, side?: 0 | -1) => number} toShared from the base to the shared text, which may be ahead of it
 * @property {(at: number) => number} fromShared
 * @property {(review: string) => boolean} isInView whether the editor's text contains the words of this suggestion
 */

/** The base of an editor that holds it. @type {Base} */
const own = {
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

/** @type {import("@codemirror/state").Facet<Base, Base>} */
export const base = Facet.define({ combine: ([given]) => given ?? own })
