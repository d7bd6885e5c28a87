/**
 * The effect of a close code on the seat, and the back-off after it.
 *
 * Draws nothing, tested with `node --test`.
 */

import type { Holder } from "../store.ts"
import { holderOf } from "./wait_queue.ts"

/** Longest wait before another attempt, in ms. */
const WAIT_MAX = 10_000

/**
 * How long to wait before another attempt, in ms: longer each time, and never for all the same.
 *
 * @param attempt 1 for the first after a connection that worked
 * @param random in 0–1
 * @param within the bound of the first attempt that the server of that connection named
 */
export function retryDelay(attempt: number, random: number, within = 0) {
  const bound = Math.min(300 * 2 ** attempt, WAIT_MAX)
  const least = bound / 2
  return Math.round(least + random * ((attempt === 1 ? Math.max(within, bound) : bound) - least))
}

/** The reason of a lost seat: the end of a `state.lost.*`. */
export function lossReason(code: number, reason: string) {
  // Also `revoked`, which means the link elsewhere.
  if (code === 4401) return "signin"
  const named = ["taken_over", "expired", "evicted", "idle", "revoked", "deleted"].find((why) => why === reason)
  if (named) return named
  // The page had the role when it opened: its writer has changed the reviewer since.
  if (code === 4403 && reason === "not-your-role") return "replaced"
  if (code === 4403) return reason === "foreign-origin" ? "origin" : "role"
  if (code === 4404) return "revoked"
  if (code === 4411) return "idle"
  if (code === 4413) return "too-large"
  return code === 4410 ? "expired" : "malformed"
}

/** The holder of the seat in a close frame. @param reason JSON */
export function holderIn(reason: string): Holder {
  try {
    return holderOf(JSON.parse(reason)?.holder)
  } catch {
    return holderOf(null)
  }
}
