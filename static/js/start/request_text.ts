/** Review requests, and why one fails, as sentences. */

import { Problem } from "../lib/api.ts"
import { errorText } from "../lib/error_text.ts"
import { length, t } from "../lib/i18n.ts"
import type { ReviewRequest } from "../lib/partners_api.ts"

/** A request, as its sender or its receiver reads it. @param me the reader's id */
export function requestSentence(request: ReviewRequest, me: string) {
  const isSent = request.from.id === me
  const { name } = isSent ? request.to : request.from
  const values = { name, title: request.title || t("start.untitled") }
  // A purged document has no title.
  const about = request.as === "writer" && request.title !== null ? "document" : request.as
  return t(isSent ? `request.sent.${about}` : `request.received.${about}`, values)
}

const DECIDED: readonly string[] = ["accepted", "declined", "withdrawn", "expired"]

/** An error of the calls about people, with what helps. */
export function peopleErrorText(error: unknown) {
  if (!(error instanceof Problem)) return errorText(error)
  const { kind, state, retryAfter } = error
  if (kind === "too-many") return t("error.partners-full")
  if (kind === "request-limit" && 0 < retryAfter) return t("error.request-limit.day", { left: length(retryAfter) })
  if (kind !== "request-not-pending" || !DECIDED.includes(state)) return errorText(error)
  return t(`error.request-decided.${state as "accepted" | "declined" | "withdrawn" | "expired"}`)
}
