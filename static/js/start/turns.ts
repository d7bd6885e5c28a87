/**
 * Whose turn a document is, and the order of a list by that: the reader's turn first, then the other's.
 * Pure, tested with `node --test`.
 */

import type { Link, Role } from "../lib/api.ts"

type Whose = "mine" | "theirs" | "none"

/**
 * A text that was never handed over is its reviewer's turn. For its writer the turn is not decided yet.
 *
 * @param role the reader's
 */
export function whose(link: Pick<Link, "turn"> | undefined, role: Role): Whose {
  if (!link?.turn) return role === "reviewer" ? "mine" : "none"
  return link.turn.role === role ? "mine" : "theirs"
}

const ORDER: readonly Whose[] = ["mine", "theirs", "none"]

/** The same rows by turn; within one turn their order stays. */
export const byTurn = <T>(rows: readonly T[], of: (row: T) => Whose) => [...rows].sort((a, b) => ORDER.indexOf(of(a)) - ORDER.indexOf(of(b)))
