// @ts-check
/**
 * Positions that stay where they are when the text changes around them, found without walking to
 * them from the beginning of the text.
 *
 * Yjs walks over all of its items to find the position of a caret, which in a document of years takes as
 * long as a frame, and each key queries it four times. But it remembers where it was last (its search
 * markers, which it keeps right through every edit), and that is next to the caret. So the walk
 * begins there. Tested against Yjs's own answer.
 */

import { Y } from "../lib/vendor.js"

/**
 * The same as `Y.createRelativePositionFromTypeIndex`.
 *
 * @param {Y.Text} text at the root of its document
 * @param {number} index
 * @param {number} [side] less than 0: it belongs to what stands before it
 * @returns {Y.RelativePosition}
 */
export function relativeAt(text, index, side = 0) {
  const marker = side < 0 || text.length <= index ? null : nearest(text, index)
  if (!marker) return Y.createRelativePositionFromTypeIndex(text, index, side)
  /** @type {Y.Item | null} */
  let item = marker.p
  // Where that piece begins.
  let at = marker.index
  while (item?.left && index < at) {
    item = item.left
    if (isVisible(item)) at -= item.length
  }
  while (item && (!isVisible(item) || at + item.length <= index)) {
    if (isVisible(item)) at += item.length
    item = item.right
  }
  if (!item) return Y.createRelativePositionFromTypeIndex(text, index, side)
  const { client, clock } = item.id
  return new Y.RelativePosition(null, Y.findRootTypeKey(text), Y.createID(client, clock + index - at), side)
}

/** @param {Y.Item} item */
const isVisible = (item) => !item.deleted && item.countable

/** @param {Y.Text} text @param {number} index @returns {{ p: Y.Item, index: number } | null} */
function nearest(text, index) {
  /** @type {{ p: Y.Item, index: number }[]} */
  const markers = text._searchMarker ?? []
  if (markers.length === 0) return null
  const distance = (/** @type {{ index: number }} */ marker) => Math.abs(marker.index - index)
  return markers.reduce((best, marker) => (distance(marker) < distance(best) ? marker : best))
}
