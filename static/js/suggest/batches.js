// @ts-check
/** Batches of suggestions that are too long for one request. Pure, tested with `node --test`. */

/**
 * Two halves of a batch whose results, one after the other, are in the order of the whole: all that is put comes first.
 *
 * @template P, W
 * @param {{ put: P[], withdraw: W[] }} batch
 * @returns {[{ put: P[], withdraw: W[] }, { put: P[], withdraw: W[] }] | null} `null`: it is one item
 */
export function divided({ put, withdraw }) {
  const length = put.length + withdraw.length
  if (length < 2) return null
  const middle = length >> 1
  const rest = Math.max(middle - put.length, 0)
  return [
    { put: put.slice(0, middle), withdraw: withdraw.slice(0, rest) },
    { put: put.slice(middle), withdraw: withdraw.slice(rest) },
  ]
}
