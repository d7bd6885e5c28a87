// @ts-check
/** The part in which two texts differ. Pure, tested with `node --test`. */

/**
 * The change from the one text to the other; `null` if there is none.
 *
 * @param {string} before
 * @param {string} after
 * @returns {{ from: number, to: number, insert: string } | null}
 */
export function differenceOf(before, after) {
  if (before === after) return null
  const shorter = Math.min(before.length, after.length)
  let from = 0
  while (from < shorter && before[from] === after[from]) from++
  let same = 0
  while (same < shorter - from && before[before.length - 1 - same] === after[after.length - 1 - same]) same++
  return { from, to: before.length - same, insert: after.slice(from, after.length - same) }
}
