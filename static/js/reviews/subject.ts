/** The subject of a review in words: the name of its card and of each button on it. */

import type { Review } from "../lib/api.ts"
import { authorName, t } from "../lib/i18n.ts"
import { inShort, sayParts } from "./part_text.ts"
import { isSummary, quoteOf } from "./summary.ts"

/** How much of a quote stands in a name, in UTF-16 units. */
const QUOTE_MAX = 60

export function subjectOf(review: Review) {
  const name = authorName(review.author)
  if (isSummary(review)) return t("review.subject.summary", { name })
  const quote = quoteOf(review)
  if (quote.trim() === "") return t("review.subject.part", { name, what: inShort(sayParts(review.parts), QUOTE_MAX) })
  return t("review.subject", { name, quote: inShort(quote, QUOTE_MAX) })
}

/** The name of a button: what it does, and to which review. */
export function actName(act: string, review: Review) {
  return t("review.act", { act, subject: subjectOf(review) })
}

/** The name of a form. @param quote empty for a review on the whole text */
export function formName(quote: string) {
  return quote === "" ? t("review.summary") : t("review.form", { quote: inShort(quote, QUOTE_MAX) })
}
