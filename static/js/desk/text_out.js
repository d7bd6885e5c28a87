// @ts-check
/** The ways out with the text: entries of the menu that copy it, copy a part, or save it as a file. */

import { showToast } from "../lib/announce.js"
import { byId, copy, download, el } from "../lib/dom.js"
import { reloading } from "../lib/failures.js"
import { number, t } from "../lib/i18n.js"
import { charactersIn } from "./counts.js"
import { fileName } from "./document_size.js"

/**
 * @typedef {import("../reviews/locate.ts").Range} Range
 * @typedef {"out.copied.text" | "out.copied.selection" | "out.copied.paragraph"} Copied
 */

export class TextOut {
  /** @param {import("./editor.js").Editor} editor @param {import("../store.js").Store} store */
  constructor(editor, store) {
    this.editor = editor
    this.store = store
    this.copyAll = el("button", { type: "button", "data-t": "menu.copy" })
    this.copyPart = el("button", { type: "button", "data-t": "menu.copy.selection" })
    this.save = el("button", { type: "button", "data-t": "menu.save" })
    /** For the menu. */
    this.entries = [this.copyAll, this.copyPart, this.save]
  }

  /** @param {AbortSignal} signal */
  start(signal) {
    byId("menu").addEventListener("toggle", () => this.#draw(), { signal })
    this.copyAll.addEventListener("click", () => this.#copyAll(), { signal })
    this.copyPart.addEventListener("click", () => this.#copyPart(), { signal })
    this.save.addEventListener("click", () => this.#save(), { signal })
  }

  /** The selection, or the paragraph at the caret. @returns {{ part: Range, isSelection: boolean }} */
  #part() {
    const { selection } = this.editor
    const isSelection = selection.from < selection.to
    return { part: isSelection ? selection : paragraphAt(this.editor.tree, selection.from), isSelection }
  }

  #draw() {
    const { part, isSelection } = this.#part()
    const name = isSelection ? "menu.copy.selection" : "menu.copy.paragraph"
    this.copyPart.dataset.t = name
    this.copyPart.textContent = t(name)
    this.copyPart.hidden = part.from === part.to
    // Before the first sync there is no text to take out.
    const isRead = document.body.dataset.read === "true"
    for (const entry of [this.copyAll, this.save]) entry.hidden = !isRead
  }

  /** The way out after an error of the page: a reload, if the server or this browser has what the editor shows. */
  get afterFailure() {
    const { saving, phase, role } = this.store.state
    const isElsewhere = saving.count === 0 || (role === "writer" && saving.retained === "yes")
    if (isElsewhere && (phase !== "seated" || this.editor.isShared)) return reloading("state.failed.kept")
    return { sentence: t("state.failed.copy"), action: { text: t("menu.copy"), act: () => void this.#copyAll() } }
  }

  #copyAll() {
    return this.#copy(this.editor.textShown, "out.copied.text")
  }

  #copyPart() {
    const { part, isSelection } = this.#part()
    return this.#copy(this.editor.textIn(part), isSelection ? "out.copied.selection" : "out.copied.paragraph")
  }

  /** @param {string} text @param {Copied} sentence */
  async #copy(text, sentence) {
    if (await copy(text)) return void showToast(t(sentence, { count: number(charactersIn(text)) }))
    showToast(t("out.failed"), { text: t("menu.save"), act: () => this.#save() })
  }

  #save() {
    const name = fileName(this.store.state.link?.title ?? "", t("start.untitled"))
    download(name, this.editor.textShown)
    showToast(t("out.saved", { name }))
  }
}

/**
 * The lines round a position as far as the next empty ones.
 *
 * @param {import("@codemirror/state").Text} text
 * @param {number} at in UTF-16 units
 * @returns {Range}
 */
export function paragraphAt(text, at) {
  let first = text.lineAt(at)
  let last = first
  if (first.text.trim() === "") return { from: at, to: at }
  while (1 < first.number && text.line(first.number - 1).text.trim() !== "") first = text.line(first.number - 1)
  while (last.number < text.lines && text.line(last.number + 1).text.trim() !== "") last = text.line(last.number + 1)
  return { from: first.from, to: last.to }
}
