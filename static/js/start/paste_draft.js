// @ts-check
/**
 * The text and the title of a new document, kept for the reload of a tab until the document is created.
 */

import { byId } from "../lib/dom.js"
import { readInTab, storeInTab } from "../lib/preferences.js"

const FIELDS = ["paste-text", "paste-title"]

export class PasteDraft {
  /** Puts back what a reload interrupted. @returns {boolean} whether there was anything */
  start() {
    let isFound = false
    for (const id of FIELDS) {
      const field = fieldOf(id)
      field.value = readInTab(`galley:${id}`)
      isFound ||= field.value !== ""
      field.addEventListener("input", () => storeInTab(`galley:${id}`, field.value))
    }
    return isFound
  }

  end() {
    for (const id of FIELDS) storeInTab(`galley:${id}`, "")
  }
}

/** @param {string} id */
function fieldOf(id) {
  return /** @type {HTMLInputElement | HTMLTextAreaElement} */ (byId(id))
}
