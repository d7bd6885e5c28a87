/** Review offers, and why a call about one fails, as sentences. Pure, tested with `node --test`. */

import { Problem } from "../lib/api.ts"
import { length, number, t, tCount } from "../lib/i18n.ts"
import type { Offer } from "../lib/offers_api.ts"
import { peopleErrorText } from "./request_text.ts"

const FRAGMENT = /^#offer=([\w-]{1,64})$/

/** The offer that the address of the start page names. */
export const offerIn = (hash: string): string | null => FRAGMENT.exec(hash)?.[1] ?? null

/** The free places. */
export function remainingSentence({ remaining, capacity }: Pick<Offer, "remaining" | "capacity">) {
  const values = { capacity: number(capacity) }
  return remaining === 0 ? tCount("offer.remaining.none", capacity, values) : tCount("offer.remaining", remaining, values)
}

/** An error of the calls about offers, with what helps. */
export function offerErrorText(error: unknown) {
  if (!(error instanceof Problem)) return peopleErrorText(error)
  const { kind, retryAfter } = error
  if (kind === "quota-spent") return t("error.offers-full")
  if (kind === "lock-wait-timeout" && 0 < retryAfter) return t("error.lock-wait.in", { left: length(retryAfter) })
  if (kind === "claim-limit" && 0 < retryAfter) return t("error.claim-limit.in", { left: length(retryAfter) })
  return peopleErrorText(error)
}

/** The same, where a claim was to be answered. */
export function claimErrorText(error: unknown) {
  return error instanceof Problem && error.status === 404 ? t("error.claim-gone") : offerErrorText(error)
}
