// @ts-check
/**
 * Stores written text that is not sent: the form of a new review, replies, and edits of replies. A reload and a crash of
 * the tab keep it; it ends with the tab, so that the next user of a shared computer does not see it.
 */

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
  /** @param {string} link @param {Pick<Storage, "getItem" | "setItem" | "removeItem">} [storage] */
  constructor(link, storage = sessionStorage) {
    this.prefix = `galley:written:${link}:`
    this.storage = storage
  }

  /** @returns {NewReview | null} */
  get newReview() {
    const stored = this.#read("new")
    try {
      return stored === "" ? null : JSON.parse(stored)
    } catch {
      return null
    }
  }

  /** @param {NewReview | null} written */
  set newReview(written) {
    this.#write("new", written === null ? "" : JSON.stringify(written))
  }

  /** @param {string} review */
  reply(review) {
    return this.#read(`reply:${review}`)
  }

  /** @param {string} review @param {string} text */
  setReply(review, text) {
    this.#write(`reply:${review}`, text)
  }

  /** @param {string} reply */
  replyEdit(reply) {
    return this.#read(`edit:${reply}`)
  }

  /** @param {string} reply @param {string} text */
  setReplyEdit(reply, text) {
    this.#write(`edit:${reply}`, text)
  }

  /** @param {string} name */
  #read(name) {
    try {
      return this.storage.getItem(this.prefix + name) ?? ""
    } catch {
      return ""
    }
  }

  /** Without storage, or without room in it, the field itself still has the text. @param {string} name @param {string} text */
  #write(name, text) {
    try {
      if (text === "") this.storage.removeItem(this.prefix + name)
      else this.storage.setItem(this.prefix + name, text)
    } catch {
      // Nothing else can keep it.
    }
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
