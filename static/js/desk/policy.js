// @ts-check
/**
 * The rules of the desk when the connection changes its phase: the next state, the right to type, and the
 * fate of drafts. `wiring.js` carries them out.
 *
 * Pure, tested with `node --test`.
 */

/**
 * @typedef {import("../store.js").Desk} Desk
 * @typedef {import("../store.js").Phase} Phase
 * @typedef {import("../unsaved/drafts.js").Draft} Draft
 * @typedef {Pick<Desk, "phase" | "holder" | "queuePosition" | "waitTimedOut" | "reason" | "draining">} Report state of the
 *   connection
 */

/**
 * The part of the state that a change of phase replaces.
 *
 * @param {Desk} before @param {Report} report
 * @returns {Partial<Desk>}
 */
export function stateAfter(before, { phase, holder, queuePosition, waitTimedOut, reason, draining }) {
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
 * Whether the editor accepts typing. An offline writer may type: only the writer changes the text, so no
 * edit conflicts with theirs.
 *
 * @param {Pick<Desk, "role" | "phase" | "wasSeated" | "damaged">} state
 */
export function mayType({ role, phase, wasSeated, damaged }) {
  return role === "writer" && wasSeated && !damaged && (phase === "seated" || phase === "offline")
}

/**
 * The sentence that announces a regained seat, or `null`. `seat_alert.js` notifies a waiter.
 *
 * @param {Desk} before @param {Phase} phase
 */
export function regainedSentence(before, phase) {
  const isBack = before.wasSeated && !["seated", "waiting"].includes(before.phase) && phase === "seated"
  if (!isBack) return null
  return before.phase === "uncertain" ? "state.restored" : "state.back"
}

/**
 * Why the page lost its seat for good, or `null`. The journal then holds the unsaved edits until their
 * writer decides.
 *
 * @param {Desk} state after the change
 */
export function lossOf({ phase, reason, wasSeated }) {
  if (phase === "lost") return reason
  return phase === "taken" && wasSeated ? "taken_over" : null
}

/**
 * Divides the drafts of closed pages. The page applies a draft without a question only if no loss was
 * reported for it, because its writer may have typed a lost one anew. Without the seat it applies none.
 *
 * @param {readonly Draft[]} drafts @param {Phase} phase
 * @param {(draft: Draft) => boolean} fits
 */
export function divideDrafts(drafts, phase, fits) {
  if (phase === "seated") {
    const applied = drafts.filter((draft) => draft.lost === null && fits(draft))
    return { applied, offered: drafts.filter((draft) => !applied.includes(draft)) }
  }
  // While the page opens it may still get the seat, and then applies the drafts without a loss.
  return { applied: [], offered: drafts.filter(({ lost }) => phase !== "opening" || lost !== null) }
}
