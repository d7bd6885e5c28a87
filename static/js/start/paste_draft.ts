/**
 * The text and the title of a new document, kept for the reload of a tab until the document is created.
 */

import { byId } from "../lib/dom.ts"
import { WrittenDrafts } from "../reviews/written_drafts.ts"

const FIELDS = ["paste-text", "paste-title"]

export class PasteDraft {
  #drafts = new WrittenDrafts("start")

  /** Puts back what a reload interrupted. @returns whether there was anything */
  start(): boolean {
    let isFound = false
    for (const id of FIELDS) {
      const field = fieldOf(id)
      field.value = this.#drafts.read(id)
      isFound ||= field.value !== ""
      field.addEventListener("input", () => this.#drafts.write(id, field.value))
    }
    return isFound
  }

  end() {
    this.#drafts.clear()
  }
}

function fieldOf(id: string) {
  return byId(id) as HTMLInputElement | HTMLTextAreaElement
}
