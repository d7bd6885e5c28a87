/**
 * Which reviews have changes that their reader has not seen. A link stores one number for each member: all
 * changes up to it are seen. Pure, tested with `node --test`.
 */

import type { Review } from "../lib/api.ts"

type Changed = Pick<Review, "id"> & Partial<Pick<Review, "change" | "changed_by">>

interface Reader {
  me: string
  seen: number // the last change that the server knows as seen
  read: ReadonlyMap<string, number> // the last change that was seen of a review, on this page
}

/** A server of an older version numbers no changes: nothing is unread then. */
export function isUnread({ id, change, changed_by: author }: Changed, { me, seen, read }: Reader) {
  if (change === undefined || author === me) return false
  return Math.max(seen, read.get(id) ?? 0) < change
}

/** The highest change up to which nothing is unread. */
export function seenUpTo(reviews: readonly Changed[], reader: Reader) {
  const changes = reviews.map(({ change }) => change ?? 0)
  const unread = reviews.filter((review) => isUnread(review, reader)).map(({ change }) => change ?? 0)
  const before = unread.reduce((least, change) => Math.min(least, change - 1), Number.POSITIVE_INFINITY)
  const last = changes.reduce((most, change) => Math.max(most, change), 0)
  return Math.max(Math.min(before, last), reader.seen)
}
