// @ts-check
/**
 * From offsets in the server's text to offsets in ours.
 *
 * The two may be a keystroke apart when an answer arrives. A passage that is called exact must
 * stand on its quote, so the nearest occurrence of the quote is taken; of two equally near, the one
 * with the right text before it. Pure, tested with `node --test`.
 */

/** How far two texts can be apart by what is on the wire, in UTF-16 units. */
const NEAR = 2_000

/**
 * @param {string} text
 * @param {import("../lib/api.js").Anchor} anchor
 * @returns {{ from: number, to: number }}
 */
export function locate(text, anchor) {
  const { start, end, state, quote, prefix } = anchor
  const served = { from: Math.min(start, text.length), to: Math.min(end, text.length) }
  const mustMatch = state === "exact" || state === "moved"
  if (!mustMatch || quote === "" || text.slice(start, end) === quote) return served
  // Found nowhere near: it stands nowhere, until the server says more.
  let best = { from: served.from, to: served.from }
  let distance = Number.POSITIVE_INFINITY
  let at = text.indexOf(quote, Math.max(start - NEAR, 0))
  for (; at !== -1 && at <= start + NEAR; at = text.indexOf(quote, at + 1)) {
    const context = prefix.slice(-8)
    const away = Math.abs(at - start) + (text.slice(0, at).endsWith(context) ? 0 : 40)
    if (away < distance) [best, distance] = [{ from: at, to: at + quote.length }, away]
  }
  return best
}
