// @ts-check
/** The list of unsaved text: to read, copy, download, and, after a confirmation, discard. */

import { confirm } from "../lib/confirm.js"
import { button, copy, el } from "../lib/dom.js"
import { number, t } from "../lib/i18n.js"

/** More than this are not shown; a copy and a file have all of them. */
const SHOWN_MAX = 40
/** Characters that file systems reject in a name. */
const NOT_IN_NAMES = /[\\/:*?"<>|\p{Cc}]+/gu

/** @param {readonly string[]} sentences */
export function unsavedList(sentences) {
  const list = el("ul", { class: "unsaved" }, ...sentences.slice(0, SHOWN_MAX).map((text) => el("li", { text })))
  const more = sentences.length - SHOWN_MAX
  if (0 < more) list.append(el("li", { class: "quiet", text: t("unsaved.more", { count: number(more) }) }))
  list.hidden = sentences.length === 0
  return list
}

/**
 * @param {readonly string[]} sentences
 * @param {string} title of the document
 * @param {() => void} discard
 * @returns {HTMLButtonElement[]}
 */
export function unsavedActions(sentences, title, discard) {
  const text = sentences.join("\n")
  const copies = button(t("common.copy"), {}, async () => {
    const done = await copy(text)
    const sentence = done ? t("common.copied") : t("unsaved.by-hand")
    copies.lastElementChild?.replaceChildren(sentence)
  })
  const file = button(t("unsaved.download"), {}, () => download(text, fileName(title)))
  const drop = button(t("unsaved.discard"), { class: "button button-quiet" }, async () => {
    if (await confirm(t("unsaved.discard.sure"), t("unsaved.discard.yes"))) discard()
  })
  return text === "" ? [drop] : [copies, file, drop]
}

/** @param {string} title */
function fileName(title) {
  const name = (title || t("start.untitled")).replace(NOT_IN_NAMES, " ").trim().slice(0, 80)
  return `${t("unsaved.file", { title: name })}.txt`
}

/** @param {string} text @param {string} name */
function download(text, name) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/plain;charset=utf-8" }))
  el("a", { href: url, download: name }).click()
  // The browser has begun to read it by then.
  window.setTimeout(() => URL.revokeObjectURL(url), 60_000)
}
