// @ts-check
/** Review requests, and why one fails, as sentences. */

import { Problem } from "../lib/api.js"
import { errorText } from "../lib/error_text.js"
import { length, t } from "../lib/i18n.js"

/** @typedef {import("../lib/partners_api.js").ReviewRequest} ReviewRequest */

/** A request, as its sender or its receiver reads it. @param {ReviewRequest} request @param {string} me the reader's id */
export function requestSentence(request, me) {
  const isSent = request.from.id === me
  const { name } = isSent ? request.to : request.from
  const values = { name, title: request.title || t("start.untitled") }
  // Of a purged document there is no title.
  const about = request.as === "writer" && request.title !== null ? "document" : request.as
  return t(isSent ? `request.sent.${about}` : `request.received.${about}`, values)
}

/** @type {readonly string[]} */
const DECIDED = ["accepted", "declined", "withdrawn", "expired"]

/** An error of the calls about people, with what helps. @param {unknown} error */
export function peopleErrorText(error) {
  if (!(error instanceof Problem)) return errorText(error)
  const { kind, state, retryAfter } = error
  if (kind === "too-many") return t("error.partners-full")
  if (kind === "request-limit" && 0 < retryAfter) return t("error.request-limit.day", { left: length(retryAfter) })
  if (kind !== "request-not-pending" || !DECIDED.includes(state)) return errorText(error)
  return t(`error.request-decided.${/** @type {"accepted" | "declined" | "withdrawn" | "expired"} */ (state)}`)
}
