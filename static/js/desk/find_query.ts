/**
 * A search and its matches.
 *
 * The library compares decomposed letters, by which 가 is found in 각 as well. A reader does not mean
 * that, so a match is one of whole characters: `fold` of both is the same.
 */

import type { EditorState } from "@codemirror/state"
import { SearchQuery } from "../lib/vendor.ts"

/** A count stops here: more matches are "10,000+". */
export const MATCHES_MAX = 10_000

/** The rest of a decomposed letter, as a stock client may store it: 가 is not found in such a 각 either. */
const CONTINUES = /^[\p{M}\u1160-\u11ff\ud7b0-\ud7fb]/u

type Wanted = { search: string, replace: string, caseSensitive: boolean }
export type Match = { from: number, to: number }

export function fold(text: string, caseSensitive: boolean) {
  const plain = text.normalize("NFKD")
  return caseSensitive ? plain : plain.toLowerCase()
}

export function queryOf({ search, replace, caseSensitive }: Wanted) {
  const folded = fold(search, caseSensitive)
  const test = (match: string, state: EditorState, _from: number, to: number) =>
    fold(match, caseSensitive) === folded && !CONTINUES.test(state.sliceDoc(to, to + 2))
  return new SearchQuery({ search, replace, caseSensitive, literal: true, test })
}

/** The matches from the beginning, at most `MATCHES_MAX` and one more. */
export function matchesOf(query: SearchQuery, state: EditorState): Match[] {
  const matches: Match[] = []
  if (!query.valid) return matches
  const cursor = query.getCursor(state)
  for (let { done, value } = cursor.next(); !done && matches.length <= MATCHES_MAX; { done, value } = cursor.next()) {
    matches.push({ from: value.from, to: value.to })
  }
  return matches
}

/** The first match that does not begin before a position, else the first. */
export const matchFrom = (matches: Match[], at: number) => matches.find(({ from }) => at <= from) ?? matches[0]
