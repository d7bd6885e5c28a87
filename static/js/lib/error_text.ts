/** An error as a sentence for the user. */

import { showToast } from "./announce.ts"
import { Problem } from "./api.ts"
import { t, type Sentence } from "./i18n.ts"

/** Problems by their names. */
const BY_NAME: ReadonlyMap<string, Sentence> = new Map([
  ["quota-spent", "error.quota"],
  ["storage-full", "error.full"],
  ["foreign-origin", "error.address"],
  ["wrong-host", "error.address"],
  ["guests-off", "error.guests-off"],
  ["unknown-user", "error.unknown-user"],
  ["own-self", "error.own-self"],
  ["handle-taken", "error.handle-taken"],
  ["invalid-handle", "error.invalid-handle"],
  ["already-partners", "error.already-partners"],
  ["request-already-sent", "error.request-sent"],
  ["request-already-received", "error.request-received"],
  ["request-not-pending", "error.request-decided"],
  ["request-limit", "error.request-limit"],
  ["guest-limit", "error.guest-limit"],
  ["no-guest-requests", "error.no-guest-requests"],
  ["not-a-partner", "error.not-a-partner"],
  ["sold-out", "error.sold-out"],
  ["already-claimed", "error.already-claimed"],
  ["offer-closed", "error.offer-closed"],
  ["own-offer", "error.own-offer"],
  ["claim-accepted", "error.claim-accepted"],
  ["claim-limit", "error.claim-limit"],
  ["lock-wait-timeout", "error.lock-wait"],
  ["wrong-invite", "error.invite"],
  ["already-writer", "error.own-document"],
  ["no-reviewer", "error.no-reviewer"],
  ["reviewer-exists", "error.reviewer-exists"],
  ["name-from-host", "error.name-from-host"],
  ["not-a-guest", "error.not-a-guest"],
  ["transfer-code-invalid", "error.code"],
  ["document-too-large", "error.document-full"],
  ["text-changing", "error.text-changing"],
  ["too-many", "error.too-many"],
  ["export-too-large", "error.export-too-large"],
  ["format-not-available", "error.format-not-available"],
  ["import-format", "error.import-format"],
  ["import-unreadable", "error.import-unreadable"],
  ["import-too-large", "error.import-too-large"],
])

/** All others by their status. A newer server has problems that this page cannot name. */
const BY_STATUS: Readonly<Record<number, Sentence>> = {
  401: "error.signed-out",
  403: "error.rights",
  404: "error.gone",
  409: "error.changed",
  410: "error.gone",
  412: "error.changed",
  413: "error.too-large",
  422: "error.invalid",
  429: "error.limited",
}

/** A sentence of the page's own: the server's details are in English. */
export function errorText(error: unknown) {
  if (!(error instanceof Problem)) return t("error.server")
  if (error.status === 0) return t("error.offline")
  const name = BY_NAME.get(error.kind)
  if (name) return t(name)
  if (500 <= error.status) return t("error.server")
  return t(BY_STATUS[error.status] ?? "error.unknown")
}

/** Shows why a press did not work. */
export const toastError = (error: unknown) => void showToast(errorText(error))

/** The same, where a review was to be written or decided. */
export function reviewErrorText(error: unknown) {
  if (!(error instanceof Problem)) return t("review.failed", { why: errorText(error) })
  if (error.status === 0) return t("review.offline")
  if (error.status === 412) return t("review.changed")
  if (error.kind === "seat-not-held") return t("review.seat")
  if (error.kind === "document-too-large") return t("review.too-large")
  if (error.kind === "anchor-moved") return t("review.anchor-moved")
  if (error.kind === "moved") return t("review.moved.look")
  if (error.kind === "anchor-mismatch") return t("review.anchor-mismatch")
  if (error.status === 507 || error.kind === "too-many") return t("review.full")
  return t("review.failed", { why: errorText(error) })
}
