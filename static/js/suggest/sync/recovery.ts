/**
 * Suggestions that this browser retained, back in the text. Pure, tested with `node --test`.
 *
 * A part whose quote stands goes in as if it were typed again, so the model sends it as a change: a suggestion that the
 * server has already keeps its id by that, because it overlaps. The rest stays a text for its author.
 */

import { ChangeSet, Y } from "../../lib/vendor.ts"
import type { Overlay } from "../model/overlay.ts"
import type { Part } from "../model/parts.ts"
import type { RetainedSuggestion } from "./unsent.ts"

/** @param position in base64 */
function offsetOf(text: Y.Text, position: string): number | null {
  try {
    const bytes = Uint8Array.from(atob(position), (character) => character.charCodeAt(0))
    const found = Y.createAbsolutePositionFromRelativePosition(Y.decodeRelativePosition(bytes), text.doc as Y.Doc)
    return found?.type === text ? found.index : null
  } catch {
    return null
  }
}

/** The parts of a suggestion in the text of now; `null`: one of them has no position. */
export function placedParts(text: Y.Text, { parts }: RetainedSuggestion): Part[] | null {
  const whole = text.toString()
  const placed = parts.flatMap((part) => {
    if ("at" in part) {
      const at = offsetOf(text, part.at)
      return at === null ? [] : [{ start: at, end: at, quote: "", text: part.text }]
    }
    const [start, end] = [offsetOf(text, part.start), offsetOf(text, part.end)]
    const stands = start !== null && end !== null && whole.slice(start, end) === part.quote
    return stands ? [{ start, end, quote: part.quote, text: part.text }] : []
  })
  return placed.length === parts.length ? placed : null
}

/**
 * The edit of the view that puts parts in, in the stead of those that the server has of the same suggestion.
 *
 * @param others of other suggestions
 * @returns empty if the view has them; `null`: other words stand there
 */
export function entering(overlay: Overlay, parts: readonly Part[], listed: readonly Part[], others: readonly Part[] = []): ChangeSet | null {
  if (overlay.has(parts)) return ChangeSet.empty(overlay.view.length)
  const cleared = overlay.takeOut(listed)
  if (!cleared.overlay.mayPut(parts, others)) return null
  return cleared.edit.compose(cleared.overlay.put(parts).edit)
}

/** The words of retained suggestions, to be read and copied. */
export function textsOf(retained: readonly RetainedSuggestion[]) {
  return retained.flatMap(({ parts }) => parts.map(({ text }) => text)).filter((text) => text.trim() !== "")
}
