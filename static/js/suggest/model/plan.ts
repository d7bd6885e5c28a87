/**
 * Cuts the paragraphs in which the reviewer typed into suggestions.
 *
 * A paragraph is cut anew as a whole, with all paragraphs that a change or a suggestion joins to it. The others
 * keep their suggestions and versions, so that a key costs no more in a text with thousands of them.
 */

import type { Range } from "../../reviews/word_diff.ts"
import type { Entry } from "./entries.ts"
import { identify, isSame, overlapsIn, rangeOf } from "./identity.ts"
import { passageOf } from "./moves.ts"
import type { Overlay } from "./overlay.ts"
import { partsOf, scopesOf, type Part } from "./parts.ts"
import { meetsOneOf, overlaps, united } from "./ranges.ts"

export type CutPlan = { scopes: Range[], parts: Part[] } & ReturnType<typeof identify<Entry>>

/**
 * @param entries the oldest first
 * @param hidden those that are not in the view; new words in their ranges replace them
 */
export function planOf(overlay: Overlay, entries: readonly Entry[], hidden: readonly Entry[], dirty: readonly Range[], newId: () => string): CutPlan {
  for (let ranges = dirty; ; ) {
    const scopes = closedScopes(overlay, entries, ranges)
    const groups = partsOf(overlay, scopes)
    const isIn = meetsOneOf(scopes)
    const inScopes = entries.filter(({ parts }) => parts.some((part) => isIn(rangeOf(part))))
    const partners = partnersOf(groups, entries, new Set(inScopes))
    if (partners.length === 0) {
      return { scopes, parts: groups.flat(), ...identify([...inScopes, ...replaced(hidden, inScopes, groups)], groups, newId) }
    }
    ranges = [...scopes, ...partners]
  }
}

function closedScopes(overlay: Overlay, entries: readonly Entry[], dirty: readonly Range[]) {
  for (let ranges = dirty; ; ) {
    const scopes = scopesOf(overlay, ranges)
    const isIn = meetsOneOf(scopes)
    const whole = ({ from, to }: Range) => scopes.some((scope) => scope.from <= from && to <= scope.to)
    const outside = entries.flatMap(({ parts }) => {
      const all = parts.map(rangeOf)
      return all.some(isIn) ? all.filter((range) => !whole(range)) : []
    })
    if (outside.length === 0) return scopes
    ranges = united([...scopes, ...outside])
  }
}

/** The other halves of moves: suggestions in other paragraphs that have the passage of a new group. */
function partnersOf(groups: readonly Part[][], entries: readonly Entry[], inScopes: ReadonlySet<Entry>) {
  const passages = new Set(groups.flatMap((parts) => passageOf(parts) ?? []))
  if (passages.size === 0) return []
  return entries
    .filter((entry) => !inScopes.has(entry) && passages.has(passageOf(entry.parts) ?? ""))
    .flatMap(({ parts }) => parts.map(rangeOf))
}

/** The hidden ones that new words replace: they overlap letters, and do not only stand beside them. */
function replaced(hidden: readonly Entry[], previous: readonly Entry[], groups: readonly Part[][]) {
  if (hidden.length === 0) return []
  const overlapping = overlapsIn(hidden)
  // The server has what is stored beside the hidden ones; it refuses all else in their ranges.
  const isStored = (parts: readonly Part[]) =>
    previous.some((entry) => entry.state === "stored" && isSame(entry.parts, parts))
  const changed = groups.filter((parts) => !isStored(parts))
  const isOver = (parts: readonly Part[], entry: Entry) =>
    entry.parts.some((other) => !isDeleted(other) && parts.some((part) => overlaps(rangeOf(part), rangeOf(other))))
  return new Set(changed.flatMap((parts) => overlapping(parts).filter((entry) => isOver(parts, entry))))
}

const isDeleted = ({ start, end, quote }: Part) => start === end && quote !== ""
