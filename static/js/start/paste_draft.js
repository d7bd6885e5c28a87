// @ts-check
/**
 * The text and the title of a new document, kept for the reload of a tab until the document is created.
 */

import { byId } from "../lib/dom.js"

const FIELDS = ["paste-text", "paste-title"]

export class PasteDraft {
  /** Puts back what a reload interrupted. @returns {boolean} whether there was anything */
  start() {
    let isFound = false
    for (const id of FIELDS) {
      const field = fieldOf(id)
      field.value = read(id)
      isFound ||= field.value !== ""
      field.addEventListener("input", () => write(id, field.value))
    }
    return isFound
  }

  end() {
    for (const id of FIELDS) write(id, "")
  }
}

/** @param {string} id */
function fieldOf(id) {
  return /** @type {HTMLInputElement | HTMLTextAreaElement} */ (byId(id))
}

/** @param {string} id */
function read(id) {
  try {
    return sessionStorage.getItem(`galley:${id}`) ?? ""
  } catch {
    return ""
  }
}

/** Without storage, or without room in it, the field itself still has the text. @param {string} id @param {string} text */
function write(id, text) {
  try {
    if (text === "") sessionStorage.removeItem(`galley:${id}`)
    else sessionStorage.setItem(`galley:${id}`, text)
  } catch {
    // Nothing else can keep it.
  }
}
