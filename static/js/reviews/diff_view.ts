/** A word diff, drawn: struck and underlined, and named to who cannot see either. */

import type { Part } from "../lib/api.ts"
import { el } from "../lib/dom.ts"
import { t } from "../lib/i18n.ts"
import { movedText } from "./parts.ts"
import { wordDiff } from "./word_diff.ts"

/** @param before `""` at a gap @param after `""` for a deletion */
export function diffView(before: string, after: string) {
  const view = el("p", { class: "diff" })
  for (const { kind, text } of wordDiff(before, after)) view.append(kind === "same" ? text : marked(kind, text))
  const act = before === "" ? "review.suggestion.inserts" : after === "" ? "review.suggestion.deletes" : null
  if (act) view.append(" ", el("span", { class: "quiet", text: t(act) }))
  return view
}

/** The parts of a suggestion, each in a line of its own. A move is one line. */
export function partsView(parts: readonly Part[]) {
  const text = movedText(parts)
  if (text === null) return parts.map(({ anchor, text }) => diffView(anchor.quote, text))
  return [el("p", { class: "diff" }, marked("added", text), " ", el("span", { class: "quiet", text: t("review.suggestion.moves") }))]
}

/**
 * A piece that was taken out or put in. A line break in it is shown, since it is all that changed
 * perhaps.
 */
export function marked(kind: "removed" | "added", text: string) {
  const piece = el(kind === "removed" ? "del" : "ins", {}, hidden(t(`review.${kind}`)))
  // A strike or a line under a space alone is seen by few, and spoken to none.
  if (/^[^\S\n]+$/.test(text)) piece.append(el("span", { class: "break", "aria-hidden": "true", text: "␣" }), el("span", { class: "hidden", text: t("part.space") }))
  for (const [at, line] of text.split("\n").entries()) {
    if (0 < at) piece.append(el("span", { class: "break", "aria-hidden": "true", text: "¶" }), "\n")
    piece.append(line)
  }
  return piece
}

const hidden = (text: string) => el("span", { class: "hidden", text: ` ${text}: ` })
