/**
 * The rules of the desk when the connection changes its phase: the next state, the right to type, and the
 * fate of drafts. `page_events.ts` carries them out.
 *
 * Pure, tested with `node --test`.
 */

import type { Desk, Phase } from "../store.ts"
import type { Draft } from "../unsaved/drafts.ts"

/** Reasons of a lost seat after which the same page can claim it again. */
export const RETURNABLE = ["taken_over", "expired", "evicted", "idle"]

/** Reasons of a lost seat whose share link has ended, perhaps with the document. */
export const ENDED_LINKS = ["revoked", "deleted"]

/** State of the connection. */
export type Report = Pick<Desk, "phase" | "holder" | "queuePosition" | "waitTimedOut" | "reason" | "draining">

/** The part of the state that a change of phase replaces. */
export function stateAfter(before: Desk, { phase, holder, queuePosition, waitTimedOut, reason, draining }: Report): Partial<Desk> {
  const isHeld = phase === "seated" || phase === "uncertain"
  return {
    phase,
    holder,
    queuePosition,
    waitTimedOut,
    reason,
    draining,
    // A page whose server drains reconnects to another. The banner stays silent for a moment.
    quiet: phase === "offline" && draining && (before.phase === "seated" || before.quiet),
    wasSeated: before.wasSeated || phase === "seated",
    // The server warns once. The idle timeout also runs while the seat is uncertain.
    idleUntil: isHeld ? before.idleUntil : null,
  }
}

/**
 * Whether the editor accepts typing. An offline user may type: only the writer changes the text, and only the reviewer
 * the own suggestions, so no edit conflicts with theirs.
 */
export function mayType(
  { role, phase, wasSeated, damaged, mode, mayEdit }: Pick<Desk, "role" | "phase" | "wasSeated" | "damaged" | "mode" | "mayEdit">,
) {
  const isTyping = role === "writer" || (role === "reviewer" && mode === "suggesting" && mayEdit)
  return isTyping && wasSeated && !damaged && (phase === "seated" || phase === "offline")
}

/** Whether a page without a seat shows the text as the server has it. With unsaved edits it shows its own. */
export function mayShowServed({ phase, reason, saving }: Pick<Desk, "phase" | "reason" | "saving">) {
  const isReader = phase === "taken" || phase === "waiting" || (phase === "lost" && RETURNABLE.includes(reason))
  return isReader && saving.count === 0
}

/**
 * Whether the page knows the state of the other seat: its events arrive, or the page has just read the
 * share link. Offline it does not, and may call the other neither present nor away.
 */
export function knowsPeer(
  { phase, quiet, silentSince, queuePosition, reason }: Pick<Desk, "phase" | "quiet" | "silentSince" | "queuePosition" | "reason">,
) {
  if (phase === "offline") return quiet
  if (phase === "waiting") return queuePosition?.away !== true
  if (phase === "lost") return RETURNABLE.includes(reason)
  return silentSince === null
}

/** The sentence that announces a regained seat, or `null`. `seat_alert.ts` notifies a waiter. */
export function regainedSentence(before: Desk, phase: Phase) {
  const isBack = before.wasSeated && !["seated", "waiting"].includes(before.phase) && phase === "seated"
  if (!isBack) return null
  return before.phase === "uncertain" ? "state.restored" : "state.back"
}

/**
 * Why the page lost its seat for good, or `null`. The journal then holds the unsaved edits until their
 * writer decides.
 *
 * @param state after the change
 */
export function lossOf({ phase, reason, wasSeated }: Desk) {
  if (phase === "lost") return reason
  return phase === "taken" && wasSeated ? "taken_over" : null
}

/**
 * Divides the drafts of closed pages. The page applies a draft without a question only if no loss was
 * reported for it, because its writer may have typed a lost one anew. Without the seat it applies none.
 */
export function divideDrafts(drafts: readonly Draft[], phase: Phase, fits: (draft: Draft) => boolean) {
  if (phase === "seated") {
    const applied = drafts.filter((draft) => draft.lost === null && fits(draft))
    return { applied, offered: drafts.filter((draft) => !applied.includes(draft)) }
  }
  // While the page opens it may still get the seat, and then applies the drafts without a loss.
  return { applied: [], offered: drafts.filter(({ lost }) => phase !== "opening" || lost !== null) }
}
