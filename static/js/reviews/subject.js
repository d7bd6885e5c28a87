// @ts-check
/** The subject of a review in words: the name of its card and of each button on it. */

import { t } from "../lib/i18n.js"
import { inShort, sayParts } from "./part_text.js"
import { isSummary, quoteOf } from "./summary.js"

/** @typedef {import("../lib/api.js").Review} Review */

/** How much of a quote stands in a name, in UTF-16 units. */
const QUOTE_MAX = 60

/** @param {Review} review */
export function subjectOf(review) {
  const { name } = review.author
  if (isSummary(review)) return t("review.subject.summary", { name })
  const quote = quoteOf(review)
  if (quote.trim() === "") return t("review.subject.part", { name, what: inShort(sayParts(review.parts), QUOTE_MAX) })
  return t("review.subject", { name, quote: inShort(quote, QUOTE_MAX) })
}

/** The name of a button: what it does, and to which review. @param {string} act @param {Review} review */
export function actName(act, review) {
  return t("review.act", { act, subject: subjectOf(review) })
}

/** The name of a form. @param {string} quote empty for a review on the whole text */
export function formName(quote) {
  return quote === "" ? t("review.summary") : t("review.form", { quote: inShort(quote, QUOTE_MAX) })
}
