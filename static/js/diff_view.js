// @ts-check
/** A word diff, drawn: struck and underlined, and named to who cannot see either. */

import { el } from "./dom.js"
import { wordDiff } from "./word_diff.js"
import { t } from "./words.js"

/** @param {string} before @param {string} after */
export function diffView(before, after) {
  const view = el("p", { class: "diff" })
  for (const { kind, text } of wordDiff(before, after)) {
    if (kind === "same") view.append(text)
    else if (kind === "removed") view.append(el("del", {}, hidden(t("review.removed")), text))
    else view.append(el("ins", {}, hidden(t("review.added")), text))
  }
  if (after === "") view.append(" ", el("span", { class: "quiet", text: t("review.suggestion.deletes") }))
  return view
}

/** @param {string} text */
const hidden = (text) => el("span", { class: "hidden", text: ` ${text}: ` })
