// @ts-check
/**
 * A search and its matches.
 *
 * The library compares decomposed letters, by which 가 is found in 각 as well. A reader does not mean
 * that, so a match is one of whole characters: `fold` of both is the same.
 */

import { SearchQuery } from "../lib/vendor.js"

/** A count stops here: more matches are "10,000+". */
export const MATCHES_MAX = 10_000

/** The rest of a decomposed letter, as a stock client may store it: 가 is not found in such a 각 either. */
const CONTINUES = /^[\p{M}\u1160-\u11ff\ud7b0-\ud7fb]/u

/**
 * @typedef {import("@codemirror/state").EditorState} EditorState
 * @typedef {{ search: string, replace: string, caseSensitive: boolean }} Wanted
 * @typedef {{ from: number, to: number }} Match
 */

/** @param {string} text @param {boolean} caseSensitive */
export function fold(text, caseSensitive) {
  const plain = text.normalize("NFKD")
  return caseSensitive ? plain : plain.toLowerCase()
}

/** @param {Wanted} wanted */
export function queryOf({ search, replace, caseSensitive }) {
  const folded = fold(search, caseSensitive)
  const test = (/** @type {string} */ match, /** @type {EditorState} */ state, /** @type {number} */ _from, /** @type {number} */ to) =>
    fold(match, caseSensitive) === folded && !CONTINUES.test(state.sliceDoc(to, to + 2))
  return new SearchQuery({ search, replace, caseSensitive, literal: true, test })
}

/**
 * The matches from the beginning, at most `MATCHES_MAX` and one more.
 *
 * @param {SearchQuery} query
 * @param {EditorState} state
 * @returns {Match[]}
 */
export function matchesOf(query, state) {
  /** @type {Match[]} */
  const matches = []
  if (!query.valid) return matches
  const cursor = query.getCursor(state)
  for (let { done, value } = cursor.next(); !done && matches.length <= MATCHES_MAX; { done, value } = cursor.next()) {
    matches.push({ from: value.from, to: value.to })
  }
  return matches
}

/** The first match that does not begin before a position, else the first. @param {Match[]} matches @param {number} at */
export const matchFrom = (matches, at) => matches.find(({ from }) => at <= from) ?? matches[0]
