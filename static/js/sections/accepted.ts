/**
 * The text with all open suggestions accepted, as far as they stand and do not overlap: the oldest wins. A suggestion with
 * several parts is accepted whole or not at all. The server accepts alike (`src/core/reviews/plan.rs`).
 *
 * Touches no DOM, so it is tested with `node --test`.
 */

/** In UTF-16 units of the text; an empty range adds its text. */
export type Replacement = { from: number, to: number, text: string }
/** `moved`: an offset of the old text in the new one. */
type Accepted = { text: string, moved: (offset: number) => number }

/**
 * The replacements of all suggestions that can be accepted together, in the order of the text.
 *
 * @param length of the text
 * @param suggestions the oldest first
 */
export function acceptable(length: number, suggestions: readonly (readonly Replacement[])[]): Replacement[] {
  /** No two overlap, so starts and ends are both in order. */
  const accepted: Replacement[] = []
  const spotOf = ({ from, to }: Replacement) =>
    firstWhere(accepted, (other) => from < other.from || (from === other.from && to <= other.to))
  const fits = (replacement: Replacement) => {
    const { from, to } = replacement
    const next = accepted[firstWhere(accepted, (other) => from < other.to)]
    const same = accepted[spotOf(replacement)]
    // A spot has one gap.
    const isTaken = (next && next.from < to) || (same?.from === from && same.to === to)
    return from <= to && to <= length && !isTaken
  }
  for (const replacements of suggestions) {
    if (!replacements.every(fits)) continue
    // At one spot an added text stands before a replaced one.
    for (const replacement of replacements) accepted.splice(spotOf(replacement), 0, replacement)
  }
  return accepted
}

/** Which of the suggestions those are. @param suggestions the oldest first */
export function acceptedOnes(length: number, suggestions: readonly (readonly Replacement[])[]) {
  const accepted = new Set(acceptable(length, suggestions))
  return suggestions.map(([first]) => first !== undefined && accepted.has(first))
}

/** The index of the first for which `is` holds, where it holds for all behind it. */
function firstWhere(sorted: readonly Replacement[], is: (other: Replacement) => boolean) {
  let [low, high] = [0, sorted.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (is(sorted[middle] as Replacement)) high = middle
    else low = middle + 1
  }
  return low
}

/** @param suggestions the oldest first */
export function acceptedText(text: string, suggestions: readonly (readonly Replacement[])[]): Accepted {
  const applied = acceptable(text.length, suggestions)
  let [accepted, end] = ["", 0]
  for (const { from, to, text: words } of applied) {
    accepted += text.slice(end, from) + words
    end = to
  }
  const moved = (offset: number) => {
    let shift = 0
    for (const { from, to, text: words } of applied) {
      if (offset < to || offset < from) return from <= offset ? from + shift : offset + shift
      shift += words.length - (to - from)
    }
    return offset + shift
  }
  return { text: accepted + text.slice(end), moved }
}
