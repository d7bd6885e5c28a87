// @ts-check
/** An error as a sentence for the user. */

import { Problem } from "./api.js"
import { t } from "./i18n.js"

/** @param {unknown} error */
export function errorText(error) {
  if (!(error instanceof Problem)) return t("error.server")
  if (error.status === 0) return t("error.offline")
  if (error.kind === "quota-spent") return t("error.quota")
  if (error.kind === "storage-full") return t("error.full")
  if (error.status === 429) return t("error.limited")
  if (500 <= error.status) return t("error.server")
  return error.detail
}

/** The same, where a review was to be written or decided. @param {unknown} error */
export function reviewErrorText(error) {
  if (!(error instanceof Problem)) return t("review.failed", { why: errorText(error) })
  if (error.status === 0) return t("review.offline")
  if (error.status === 412) return t("review.changed")
  if (error.kind === "seat-not-held") return t("review.seat")
  if (error.kind === "document-too-large") return t("review.too-large")
  if (error.kind === "anchor-moved") return t("review.anchor-moved")
  if (error.kind === "anchor-mismatch") return t("review.anchor-mismatch")
  if (error.status === 507 || error.kind === "too-many") return t("review.full")
  return t("review.failed", { why: errorText(error) })
}
