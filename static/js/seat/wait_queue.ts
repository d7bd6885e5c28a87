/**
 * The wait queue of a held seat: the length of a wait, and its sentences.
 *
 * One wait on the server is short. The page claims again when it ends, for an hour in all: by then
 * the user has left, and the next waiter is not delayed.
 *
 * Draws nothing, tested with `node --test`.
 */

import type { Role } from "../lib/api.ts"
import { clock, duration, number, t, when } from "../lib/i18n.ts"
import type { Holder, QueuePosition } from "../store.ts"

/** The longest wait that a server takes, in s. */
const WAIT_MAX = 300
/** The longest wait without a further action of the user, in ms. */
export const WAIT_TIMEOUT = 60 * 60_000

/**
 * The `wait` of the next claim, in seconds: 0 when the time is over.
 *
 * @param since when the waiting began, in ms
 * @param now by the same clock
 * @returns whole seconds
 */
export function secondsToWait(since: number, now: number): number {
  return Math.max(Math.min(Math.ceil((since + WAIT_TIMEOUT - now) / 1_000), WAIT_MAX), 0)
}

/**
 * The holder in an event of the server.
 *
 * @param value `{ name, since, you }`
 * @param before the known holder: not each event has `you`
 */
export function holderOf(value: any, before: Holder | null = null): Holder {
  const name = String(value?.name ?? "")
  // A close frame may have had no room for the whole name.
  const own = value?.you ?? (before?.own === true && name.startsWith(before.name))
  return { name, since: typeof value?.since === "string" ? value.since : null, own: own === true }
}

/**
 * The queue position in an event of the server: 1 is next.
 *
 * @returns `null` if that is no position
 */
export function positionOf(value: unknown): number | null {
  return typeof value === "number" && Number.isInteger(value) && 1 <= value ? value : null
}

/** The holder and the time of the grant, as a sentence. */
function holderSentence(holder: Holder | null, role: Role | null) {
  if (!holder?.name || !holder.since) return t("state.taken.unnamed")
  const values = { name: holder.name, time: when(holder.since) }
  return t(role === "writer" ? "state.taken.writer" : "state.taken.reviewer", values)
}

/**
 * The sentence of a held seat.
 *
 * @param options whether a wait for it has timed out
 */
export function takenSentence(holder: Holder | null, role: Role | null, { timedOut }: { timedOut: boolean }) {
  const outcome = timedOut ? `${t("state.taken.timeout", { long: duration(WAIT_TIMEOUT) })} ` : ""
  if (holder?.own) return `${outcome}${t("state.taken.own")}`
  return `${outcome}${holderSentence(holder, role)} ${t("state.taken.choose")}`
}

/** The sentence of a waiter. */
export function waitingSentence({ position, away }: QueuePosition, holder: Holder | null, role: Role | null) {
  if (away) return t("state.waiting.away")
  if (position === null) return t("state.waiting.claiming")
  if (1 < position) {
    const sentence = t("state.waiting.later", { position: number(position) })
    return holder?.own ? sentence : `${sentence} ${holderSentence(holder, role)}`
  }
  if (holder?.own) return t("state.waiting.own")
  if (!holder?.name) return t("state.waiting.next.unnamed")
  return `${holderSentence(holder, role)} ${t("state.waiting.next", { name: holder.name })}`
}

/** How long one has waited so far. @param waited in ms @param now in ms */
export function waitedSentence(waited: number, now: number) {
  const time = clock(new Date(now - waited))
  if (waited < 60_000) return t("state.waiting.since", { time })
  return t("state.waiting.long", { time, long: duration(waited) })
}
