// @ts-check
/**
 * A review on the whole text (총평): it has no anchor, so it has no passage, is never lost, and stands
 * above all other reviews. Pure, tested with `node --test`.
 */

/** @typedef {Pick<import("../lib/api.js").Review, "anchor">} Anchored */

/** @param {Anchored} review */
export const isSummary = ({ anchor }) => anchor === null

/** The quote of a review's passage, or of its first part; empty for one on the whole text, and at a gap. @param {Anchored} review */
export const quoteOf = ({ anchor }) => anchor?.quote ?? ""
