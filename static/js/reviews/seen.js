// @ts-check
/**
 * Which reviews have changes that their reader has not seen. A link stores one number for each member: all
 * changes up to it are seen. Pure, tested with `node --test`.
 */

/**
 * @typedef {Pick<import("../lib/api.js").Review, "id" | "change" | "changed_by">} Changed
 * @typedef {object} Reader
 * @property {string} me
 * @property {number} seen the last change that the server knows as seen
 * @property {ReadonlyMap<string, number>} read the last change that was seen of a review, on this page
 */

/** A server of an older version numbers no changes: nothing is unread then. @param {Changed} review @param {Reader} reader */
export function isUnread({ id, change, changed_by: author }, { me, seen, read }) {
  if (change === undefined || author === me) return false
  return Math.max(seen, read.get(id) ?? 0) < change
}

/** The highest change up to which nothing is unread. @param {readonly Changed[]} reviews @param {Reader} reader */
export function seenUpTo(reviews, reader) {
  const changes = reviews.map(({ change }) => change ?? 0)
  const unread = reviews.filter((review) => isUnread(review, reader)).map(({ change }) => change ?? 0)
  const before = unread.reduce((least, change) => Math.min(least, change - 1), Number.POSITIVE_INFINITY)
  const last = changes.reduce((most, change) => Math.max(most, change), 0)
  return Math.max(Math.min(before, last), reader.seen)
}
