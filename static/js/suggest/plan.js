// @ts-check
/**
 * Cuts the paragraphs in which the reviewer typed into suggestions.
 *
 * A paragraph is cut anew as a whole, with all paragraphs that a change or a suggestion joins to it. The others
 * keep their suggestions and versions, so that a key costs no more in a text with thousands of them.
 */

import { identify, isSame, overlapsIn, rangeOf } from "./identity.js"
import { passageOf } from "./moves.js"
import { partsOf, scopesOf } from "./parts.js"
import { meetsOneOf, overlaps, united } from "./ranges.js"

/**
 * @typedef {import("../reviews/word_diff.js").Range} Range
 * @typedef {import("./entries.js").Entry} Entry
 * @typedef {import("./overlay.js").Overlay} Overlay
 * @typedef {import("./parts.js").Part} Part
 * @typedef {{ scopes: Range[], parts: Part[] } & ReturnType<typeof identify<Entry>>} Plan
 */

/**
 * @param {Overlay} overlay
 * @param {readonly Entry[]} entries the oldest first
 * @param {readonly Entry[]} hidden those that are not in the view; new words in their ranges replace them
 * @param {readonly Range[]} dirty
 * @param {() => string} newId
 * @returns {Plan}
 */
export function planOf(overlay, entries, hidden, dirty, newId) {
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

/** @param {Overlay} overlay @param {readonly Entry[]} entries @param {readonly Range[]} dirty */
function closedScopes(overlay, entries, dirty) {
  for (let ranges = dirty; ; ) {
    const scopes = scopesOf(overlay, ranges)
    const isIn = meetsOneOf(scopes)
    const whole = (/** @type {Range} */ { from, to }) => scopes.some((scope) => scope.from <= from && to <= scope.to)
    const outside = entries.flatMap(({ parts }) => {
      const all = parts.map(rangeOf)
      return all.some(isIn) ? all.filter((range) => !whole(range)) : []
    })
    if (outside.length === 0) return scopes
    ranges = united([...scopes, ...outside])
  }
}

/**
 * The other halves of moves: suggestions in other paragraphs that have the passage of a new group.
 *
 * @param {readonly Part[][]} groups @param {readonly Entry[]} entries @param {ReadonlySet<Entry>} inScopes
 */
function partnersOf(groups, entries, inScopes) {
  const passages = new Set(groups.flatMap((parts) => passageOf(parts) ?? []))
  if (passages.size === 0) return []
  return entries
    .filter((entry) => !inScopes.has(entry) && passages.has(passageOf(entry.parts) ?? ""))
    .flatMap(({ parts }) => parts.map(rangeOf))
}

/**
 * The hidden ones that new words replace: they overlap letters, and do not only stand beside them.
 *
 * @param {readonly Entry[]} hidden @param {readonly Entry[]} previous @param {readonly Part[][]} groups
 */
function replaced(hidden, previous, groups) {
  if (hidden.length === 0) return []
  const overlapping = overlapsIn(hidden)
  // The server has what is stored beside the hidden ones; it refuses all else in their ranges.
  const isStored = (/** @type {readonly Part[]} */ parts) =>
    previous.some((entry) => entry.state === "stored" && isSame(entry.parts, parts))
  const changed = groups.filter((parts) => !isStored(parts))
  const isOver = (/** @type {readonly Part[]} */ parts, /** @type {Entry} */ entry) =>
    entry.parts.some((other) => !isDeleted(other) && parts.some((part) => overlaps(rangeOf(part), rangeOf(other))))
  return new Set(changed.flatMap((parts) => overlapping(parts).filter((entry) => isOver(parts, entry))))
}

/** @param {Part} part */
const isDeleted = ({ start, end, quote }) => start === end && quote !== ""
