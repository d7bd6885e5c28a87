/** The ways out with the text: entries of the menu that copy it, copy a part, or save it as a file. */

import type { Text } from "@codemirror/state"
import { showToast } from "../lib/announce.ts"
import { byId, copy, download, el } from "../lib/dom.ts"
import { reloading } from "../lib/failures.ts"
import { number, t } from "../lib/i18n.ts"
import type { Range } from "../reviews/locate.ts"
import type { Store } from "../store.ts"
import { charactersIn } from "./counts.ts"
import { fileName } from "./document_size.ts"
import type { Editor } from "./editor.ts"

type Copied = "out.copied.text" | "out.copied.selection" | "out.copied.paragraph"

export class TextOut {
  declare editor: Editor
  declare store: Store
  declare copyAll
  declare copyPart
  declare save
  declare entries

  constructor(editor: Editor, store: Store) {
    this.editor = editor
    this.store = store
    this.copyAll = el("button", { type: "button", "data-t": "menu.copy" })
    this.copyPart = el("button", { type: "button", "data-t": "menu.copy.selection" })
    this.save = el("button", { type: "button", "data-t": "menu.save" })
    /** For the menu. */
    this.entries = [this.copyAll, this.copyPart, this.save]
  }

  start(signal: AbortSignal) {
    byId("menu").addEventListener("toggle", () => this.#draw(), { signal })
    this.copyAll.addEventListener("click", () => this.#copyAll(), { signal })
    this.copyPart.addEventListener("click", () => this.#copyPart(), { signal })
    this.save.addEventListener("click", () => this.#save(), { signal })
  }

  /** The selection, or the paragraph at the caret. */
  #part(): { part: Range, isSelection: boolean } {
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

  async #copy(text: string, sentence: Copied) {
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
 * @param at in UTF-16 units
 */
export function paragraphAt(text: Text, at: number): Range {
  let first = text.lineAt(at)
  let last = first
  if (first.text.trim() === "") return { from: at, to: at }
  while (1 < first.number && text.line(first.number - 1).text.trim() !== "") first = text.line(first.number - 1)
  while (last.number < text.lines && text.line(last.number + 1).text.trim() !== "") last = text.line(last.number + 1)
  return { from: first.from, to: last.to }
}
