/** The list of unsaved text: to read, copy, download, and, after a confirmation, discard. */

import { fileName } from "../desk/document_size.ts"
import { confirm } from "../lib/confirm.ts"
import { button, copy, download, el } from "../lib/dom.ts"
import { number, t } from "../lib/i18n.ts"

/** More than this are not shown; a copy and a file have all of them. */
const SHOWN_MAX = 40

export function unsavedList(sentences: readonly string[]) {
  const list = el("ul", { class: "unsaved" }, ...sentences.slice(0, SHOWN_MAX).map((text) => el("li", { text })))
  const more = sentences.length - SHOWN_MAX
  if (0 < more) list.append(el("li", { class: "quiet", text: t("unsaved.more", { count: number(more) }) }))
  list.hidden = sentences.length === 0
  return list
}

/**
 * Comments and replies that can no longer be sent, if there are any.
 *
 * @param title of the document
 */
export function unsentParts(texts: readonly string[], title: string, discard: () => void) {
  if (texts.length === 0) return []
  return [el("p", { text: t("review.unsent") }), unsavedList(texts), el("div", { class: "actions" }, ...unsavedActions(texts, title, discard))]
}

/** @param title of the document */
export function unsavedActions(sentences: readonly string[], title: string, discard: () => void): HTMLButtonElement[] {
  const text = sentences.join("\n")
  const copies = button(t("common.copy"), {}, async () => {
    const done = await copy(text)
    const sentence = done ? t("common.copied") : t("unsaved.by-hand")
    copies.lastElementChild?.replaceChildren(sentence)
  })
  const file = button(t("unsaved.download"), {}, () => {
    const name = t("unsaved.file", { title: title || t("start.untitled") })
    download(fileName(name, ""), text)
  })
  const drop = button(t("unsaved.discard"), { class: "button button-quiet" }, async () => {
    if (await confirm(t("unsaved.discard.sure"), t("unsaved.discard.yes"))) discard()
  })
  return text === "" ? [drop] : [copies, file, drop]
}
