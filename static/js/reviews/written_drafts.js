// @ts-check
/**
 * Stores written text that is not sent: the form of a new review, replies, and edits of replies. A reload and a crash of
 * the tab keep it; it ends with the tab, so that the next user of a shared computer does not see it.
 */

import { readInTab, storeInTab } from "../lib/preferences.js"

/**
 * @typedef {object} NewReview
 * @property {string} quote
 * @property {number} from where the quote began, in UTF-16 units
 * @property {string} body
 * @property {string} suggestion
 * @property {boolean} suggests
 * @property {boolean} [whole] whether it is on the whole text: there is no quote
 */

export class WrittenDrafts {
  /** @param {string} link @param {import("../lib/preferences.js").TabStorage} [storage] */
  constructor(link, storage) {
    this.prefix = `galley:written:${link}:`
    this.storage = storage
  }

  /** @returns {NewReview | null} */
  get newReview() {
    const stored = readInTab(`${this.prefix}new`, this.storage)
    try {
      return stored === "" ? null : JSON.parse(stored)
    } catch {
      return null
    }
  }

  /** @param {NewReview | null} written */
  set newReview(written) {
    storeInTab(`${this.prefix}new`, written === null ? "" : JSON.stringify(written), this.storage)
  }

  /** @param {string} review */
  reply(review) {
    return readInTab(`${this.prefix}reply:${review}`, this.storage)
  }

  /** @param {string} review @param {string} text */
  setReply(review, text) {
    storeInTab(`${this.prefix}reply:${review}`, text, this.storage)
  }

  /** @param {string} reply */
  replyEdit(reply) {
    return readInTab(`${this.prefix}edit:${reply}`, this.storage)
  }

  /** @param {string} reply @param {string} text */
  setReplyEdit(reply, text) {
    storeInTab(`${this.prefix}edit:${reply}`, text, this.storage)
  }
}

/**
 * The occurrence of a quote nearest to where it began, or `null`.
 *
 * @param {string} text
 * @param {Pick<NewReview, "quote" | "from">} written
 * @returns {{ from: number, to: number } | null}
 */
export function nearest(text, { quote, from }) {
  if (quote === "") return null
  const before = text.lastIndexOf(quote, from)
  const after = text.indexOf(quote, from)
  if (before === -1 && after === -1) return null
  const at = after === -1 || (before !== -1 && from - before < after - from) ? before : after
  return { from: at, to: at + quote.length }
}
