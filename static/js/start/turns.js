// @ts-check
/**
 * Whose turn a document is, and the order of a list by that: the reader's turn first, then the other's.
 * Pure, tested with `node --test`.
 */

/**
 * @typedef {import("../lib/api.js").Link} Link
 * @typedef {import("../lib/api.js").Role} Role
 * @typedef {"mine" | "theirs" | "none"} Whose
 */

/**
 * A text that was never handed over is its reviewer's turn. For its writer the turn is not decided yet.
 *
 * @param {Pick<Link, "turn"> | undefined} link
 * @param {Role} role the reader's
 * @returns {Whose}
 */
export function whose(link, role) {
  if (!link?.turn) return role === "reviewer" ? "mine" : "none"
  return link.turn.role === role ? "mine" : "theirs"
}

/** @type {readonly Whose[]} */
const ORDER = ["mine", "theirs", "none"]

/**
 * The same rows by turn; within one turn their order stays.
 *
 * @template T
 * @param {readonly T[]} rows
 * @param {(row: T) => Whose} of
 */
export const byTurn = (rows, of) => [...rows].sort((a, b) => ORDER.indexOf(of(a)) - ORDER.indexOf(of(b)))
