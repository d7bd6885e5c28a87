/** A suggestion of the list of reviews, as the model takes it. Pure, tested with `node --test`. */

import type { Review } from "../../lib/api.ts"
import type { Spot } from "../../reviews/spots.ts"
import type { Suggestion } from "../model/entries.ts"

/** Whether a suggestion is more than its parts. */
export const isPinned = ({ body, replies }: Pick<Review, "body" | "replies">) => body !== "" || 0 < replies.length

/** Whether the server found no position for a part, or guessed one. */
export const isOrphaned = ({ parts }: Pick<Review, "parts">) => parts.some(({ anchor }) => anchor.state === "orphaned" || anchor.state === "moved")

/** @param spots its parts in the base */
export function suggestionOf(review: Review, spots: readonly Spot[]): Suggestion {
  const parts = spots.map(({ from, to, quote, text }) => ({ start: from, end: to, quote, text: text ?? "" }))
  return { id: review.id, version: review.version, since: review.created_at, parts, pinned: isPinned(review) }
}

/** Whether the server would put a suggestion in at other offsets than this page shows. */
export const isElsewhere = ({ parts }: Readonly<Suggestion>, spots: readonly Spot[]) =>
  spots.length === parts.length && parts.some(({ start, end }) => !spots.some(({ from, to }) => from === start && to === end))

/** The end of a closed suggestion. */
export function verdictOf({ status, outcome }: Pick<Review, "status" | "outcome">): "accepted" | "rejected" | "withdrawn" | "fulfilled" {
  if (outcome === "fulfilled" || outcome === "withdrawn") return outcome
  return status === "accepted" ? "accepted" : "rejected"
}
