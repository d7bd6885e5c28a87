/** Batches of suggestions that are too long for one request. Pure, tested with `node --test`. */

/**
 * Two halves of a batch. All that is withdrawn comes first: what is put may merge it, and must not overlap it.
 *
 * @returns `null`: it is one item
 */
export function divided<P, W>({ put, withdraw }: { put: P[], withdraw: W[] }): [{ put: P[], withdraw: W[] }, { put: P[], withdraw: W[] }] | null {
  const length = put.length + withdraw.length
  if (length < 2) return null
  const middle = length >> 1
  const rest = Math.max(middle - withdraw.length, 0)
  return [
    { put: put.slice(0, rest), withdraw: withdraw.slice(0, middle) },
    { put: put.slice(rest), withdraw: withdraw.slice(middle) },
  ]
}
