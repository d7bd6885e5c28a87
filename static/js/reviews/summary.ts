/**
 * A review on the whole text (총평): it has no anchor, so it has no passage, is never lost, and stands
 * above all other reviews. Pure, tested with `node --test`.
 */

import type { Review } from "../lib/api.ts"

type Anchored = Pick<Review, "anchor">

export const isSummary = ({ anchor }: Anchored) => anchor === null

/** The quote of a review's passage, or of its first part; empty for one on the whole text, and at a gap. */
export const quoteOf = ({ anchor }: Anchored) => anchor?.quote ?? ""
