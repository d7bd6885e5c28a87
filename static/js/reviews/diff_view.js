// @ts-check
/** A word diff, drawn: struck and underlined, and named to who cannot see either. */

import { el } from "../lib/dom.js"
import { t } from "../lib/i18n.js"
import { wordDiff } from "./word_diff.js"

/** @param {string} before @param {string} after */
export function diffView(before, after) {
  const view = el("p", { class: "diff" })
  for (const { kind, text } of wordDiff(before, after)) view.append(kind === "same" ? text : marked(kind, text))
  if (after === "") view.append(" ", el("span", { class: "quiet", text: t("review.suggestion.deletes") }))
  return view
}

/**
 * A piece that was taken out or put in. A line break in it is shown, since it is all that changed
 * perhaps.
 *
 * @param {"removed" | "added"} kind
 * @param {string} text
 */
export function marked(kind, text) {
  const piece = el(kind === "removed" ? "del" : "ins", {}, hidden(t(`review.${kind}`)))
  for (const [at, line] of text.split("\n").entries()) {
    if (0 < at) piece.append(el("span", { class: "break", "aria-hidden": "true", text: "¶" }), "\n")
    piece.append(line)
  }
  return piece
}

/** @param {string} text */
const hidden = (text) => el("span", { class: "hidden", text: ` ${text}: ` })
