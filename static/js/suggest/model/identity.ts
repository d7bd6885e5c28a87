/**
 * Which of the suggestions in a paragraph is which, after the paragraph was cut anew.
 *
 * - **I1** A new group keeps the id of the oldest suggestion that it overlaps. Those with a remark or replies
 *   precede, because the thread would end with the id.
 * - **I2** A suggestion without a group is withdrawn: it was undone, or merged into another.
 * - **I3** Of a split the first group keeps the id.
 * - **I4** A suggestion with the same words in the same ranges is untouched, and keeps its version.
 */

import { divided } from "./limits.ts"
import { byOffset, type Part } from "./parts.ts"
import { meets, shares } from "./ranges.ts"

/** One with a remark or replies is pinned. */
type Previous = { id: string, parts: readonly Part[], pinned: boolean }
/** A suggestion to put; those of a longer one share a group. */
type Cut = { id: string, parts: Part[], group?: string }

/**
 * @param previous the oldest first
 * @param groups in the order of the text
 */
export function identify<T extends Previous>(
  previous: readonly T[],
  groups: readonly Part[][],
  newId: () => string,
): { put: Cut[], withdraw: T[], untouched: T[] } {
  const inOrder = [...previous.filter(({ pinned }) => pinned), ...previous.filter(({ pinned }) => !pinned)]
  const rank = new Map(inOrder.map((one, index) => [one, index]))
  const overlapping = overlapsIn(inOrder)
  const free = new Set(inOrder)
  const put: Cut[] = []
  const untouched: T[] = []
  for (const pieces of groups.map(divided)) {
    let group: string | undefined
    for (const parts of pieces) {
      const candidates = overlapping(parts).filter((one) => free.has(one))
      const [found] = candidates.sort((one, other) => (rank.get(one) ?? 0) - (rank.get(other) ?? 0))
      if (found) free.delete(found)
      const id = found?.id ?? newId()
      if (1 < pieces.length) group ??= id
      if (found && isSame(found.parts, parts)) untouched.push(found)
      else put.push(group === undefined ? { id, parts } : { id, parts, group })
    }
  }
  return { put, withdraw: [...free], untouched }
}

/**
 * Finds the suggestions with a part that meets one of some others; a gap also meets a quote that it touches.
 * The parts of all the suggestions of an author are disjoint, so their ends are in the order of their starts.
 */
export function overlapsIn<T extends { parts: readonly Part[] }>(suggestions: readonly T[]): (parts: readonly Part[]) => T[] {
  const inOrder = suggestions
    .flatMap((owner) => owner.parts.map((part) => ({ owner, part })))
    .sort((one, other) => byOffset(one.part, other.part))
  return (parts) => {
    const found: Set<T> = new Set()
    for (const part of parts) {
      let [low, high] = [0, inOrder.length]
      while (low < high) {
        const middle = (low + high) >> 1
        if ((inOrder[middle]?.part.end ?? 0) < part.start) low = middle + 1
        else high = middle
      }
      for (let at = low; at < inOrder.length; at++) {
        const next = inOrder[at]
        if (!next || part.end < next.part.start) break
        if (doMeet(part, next.part)) found.add(next.owner)
      }
    }
    return [...found]
  }
}

const doMeet = (one: Part, other: Part) =>
  isGap(one) || isGap(other) ? meets(rangeOf(one), rangeOf(other)) : shares(rangeOf(one), rangeOf(other))

export const rangeOf = ({ start, end }: Part) => ({ from: start, to: end })

const isGap = ({ start, end }: Part) => start === end

export const isSame = (ones: readonly Part[], others: readonly Part[]) =>
  ones.length === others.length &&
  ones.every((one, index) => {
    const other = others[index]
    return one.start === other?.start && one.end === other.end && hasSameWords(one, other)
  })

export const hasSameWords = (one: Part, other: Part | undefined) => one.quote === other?.quote && one.text === other.text
