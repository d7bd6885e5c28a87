/** Moves: a passage that was taken out in one position and put in at another is one suggestion of two parts. */

import type { Part } from "./parts.ts"

/** Shorter passages also occur by chance, in UTF-16 units. */
const MOVE_MIN = 20

/**
 * The moved passage of a suggestion that only takes out or only puts in; `null` for all others.
 * The spaces around it may differ: a paragraph that moves to the end leaves its line break behind.
 */
export function passageOf(parts: readonly Part[]) {
  const [part, second] = parts
  if (!part || second || (part.quote !== "" && part.text !== "")) return null
  const passage = `${part.quote}${part.text}`.trim()
  return MOVE_MIN <= passage.length ? passage : null
}

/**
 * Joins a deletion and an insertion of the same passage, where each occurs once.
 *
 * @returns in the order of their first parts
 */
export function joinMoves(groups: readonly Part[][]): Part[][] {
  const byPassage: Map<string, { taken: Part[][], put: Part[][] }> = new Map()
  for (const group of groups) {
    const passage = passageOf(group)
    if (passage === null) continue
    const found = byPassage.get(passage) ?? { taken: [], put: [] }
    byPassage.set(passage, found)
    if (group[0]?.text === "") found.taken.push(group)
    else found.put.push(group)
  }
  const partners: Map<Part[], Part[]> = new Map()
  for (const { taken, put } of byPassage.values()) {
    const [from, to] = [taken[0], put[0]]
    if (!from || !to || taken.length !== 1 || put.length !== 1) continue
    partners.set(from, to)
    partners.set(to, from)
  }
  const joined = new Set()
  return groups.flatMap((group) => {
    if (joined.has(group)) return []
    const partner = partners.get(group)
    if (!partner) return [group]
    joined.add(partner)
    return [[...group, ...partner]]
  })
}
