/** The part in which two texts differ, in whole surrogate pairs. Pure, tested with `node --test`. */

/** The first and the second half of a pair. */
const [FIRST, SECOND] = [/[\uD800-\uDBFF]/, /[\uDC00-\uDFFF]/]

/** The change from the one text to the other; `null` if there is none. */
export function differenceOf(before: string, after: string): { from: number, to: number, insert: string } | null {
  if (before === after) return null
  const shorter = Math.min(before.length, after.length)
  let from = 0
  while (from < shorter && before[from] === after[from]) from++
  if (0 < from && FIRST.test(before.charAt(from - 1))) from--
  let same = 0
  while (same < shorter - from && before[before.length - 1 - same] === after[after.length - 1 - same]) same++
  if (0 < same && SECOND.test(before.charAt(before.length - same))) same--
  return { from, to: before.length - same, insert: after.slice(from, after.length - same) }
}
