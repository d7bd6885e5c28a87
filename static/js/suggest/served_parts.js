// @ts-check
/** A suggestion of the list of reviews, as the model takes it. Pure, tested with `node --test`. */

/**
 * @typedef {import("../lib/api.js").Review} Review
 * @typedef {import("../reviews/spots.js").Spot} Spot
 * @typedef {import("./entries.js").Suggestion} Suggestion
 */

/** Whether a suggestion is more than its parts. @param {Pick<Review, "body" | "replies">} review */
export const isPinned = ({ body, replies }) => body !== "" || 0 < replies.length

/** Whether the server found no position for a part, or guessed one. @param {Pick<Review, "parts">} review */
export const isOrphaned = ({ parts }) => parts.some(({ anchor }) => anchor.state === "orphaned" || anchor.state === "moved")

/** @param {Review} review @param {readonly Spot[]} spots its parts in the base @returns {Suggestion} */
export function suggestionOf(review, spots) {
  const parts = spots.map(({ from, to, quote, text }) => ({ start: from, end: to, quote, text: text ?? "" }))
  return { id: review.id, version: review.version, since: review.created_at, parts, pinned: isPinned(review) }
}

/** Whether the server would put a suggestion in at other offsets than this page shows. @param {Readonly<Suggestion>} suggestion @param {readonly Spot[]} spots */
export const isElsewhere = ({ parts }, spots) =>
  spots.length === parts.length && parts.some(({ start, end }) => !spots.some(({ from, to }) => from === start && to === end))

/** The end of a closed suggestion. @param {Pick<Review, "status" | "outcome">} review @returns {"accepted" | "rejected" | "withdrawn" | "fulfilled"} */
export function verdictOf({ status, outcome }) {
  if (outcome === "fulfilled" || outcome === "withdrawn") return outcome
  return status === "accepted" ? "accepted" : "rejected"
}
