// @ts-check
/**
 * New comments and replies of the other user, visible and spoken, at most one sentence in a while. Owns
 * one element, which never covers the caret.
 */

import { button, byId, el } from "../lib/dom.js"
import { t, tCount } from "../lib/i18n.js"
import { quoteOf } from "./summary.js"

/**
 * @typedef {import("../lib/api.js").Review} Review
 * @typedef {{ name: string, review: Review, isReply: boolean }} Item
 */

/** How long the page collects before it shows a sentence, in ms. */
const COLLECT = 400
/** How long a sentence is shown, and the next one waits, in ms. */
const SHOWN = 7_000

export class News {
  #stopped = new AbortController()
  /** @type {Item[]} */
  #items = []
  #timer = 0
  #hiding = 0
  #shownAt = 0
  #element = el("div", { class: "news", role: "status" })

  /**
   * @param {import("./reviews.js").Reviews} reviews
   * @param {import("../desk/editor.js").Editor} editor
   * @param {(review: string) => unknown} show
   */
  constructor(reviews, editor, show) {
    this.reviews = reviews
    this.editor = editor
    this.show = show
  }

  start() {
    const { signal } = this.#stopped
    byId("desk").append(this.#element)
    const came = (/** @type {Event} */ event) => this.#add(/** @type {CustomEvent<Item>} */ (event).detail)
    this.reviews.addEventListener("came", came, { signal })
    signal.addEventListener("abort", () => this.#element.remove())
  }

  stop() {
    this.#stopped.abort()
    window.clearTimeout(this.#timer)
    window.clearTimeout(this.#hiding)
  }

  /** Shows a sentence now; a screen reader reads what is shown there. @param {string} sentence @param {{ text: string, act: () => void }} [action] */
  say(sentence, action) {
    this.#shownAt = Date.now()
    const press = action && button(action.text, { class: "button" }, () => {
      this.#hide()
      action.act()
    })
    this.#element.replaceChildren(el("p", { text: sentence }), ...(press ? [press] : []))
    this.#avoidCaret()
    this.#hideLater()
  }

  /** @param {Item} item */
  #add(item) {
    this.#items.push(item)
    window.clearTimeout(this.#timer)
    const wait = Math.max(COLLECT, this.#shownAt + SHOWN - Date.now())
    this.#timer = window.setTimeout(() => this.#sayItems(), wait)
  }

  #sayItems() {
    const items = this.#items.splice(0)
    const last = items.at(-1)
    if (!last) return
    const id = last.review.id
    const action = this.reviews.get(id) ? { text: t("news.show"), act: () => this.show(id) } : undefined
    this.say(sentenceOf(items), action)
  }

  /** A sentence under the pointer, or with the focus, stays. */
  #hideLater() {
    window.clearTimeout(this.#hiding)
    this.#hiding = window.setTimeout(() => {
      // A touched element stays hovered.
      const isPointedAt = matchMedia("(hover: hover)").matches && this.#element.matches(":hover")
      if (isPointedAt || this.#element.matches(":focus-within")) this.#hideLater()
      else this.#hide()
    }, SHOWN)
  }

  #hide() {
    window.clearTimeout(this.#hiding)
    this.#element.replaceChildren()
  }

  /** Away from the caret: if it would be covered, at the other end of the window. */
  #avoidCaret() {
    this.#element.dataset.moved = "false"
    const caret = this.#caret()
    if (!caret) return
    const { top, bottom, left, right } = this.#element.getBoundingClientRect()
    const covers = top - 8 < caret.bottom && caret.top < bottom + 8 && left - 8 < caret.right && caret.left < right + 8
    this.#element.dataset.moved = String(covers)
  }

  /** Where the user types, on the screen: the caret of the text, or a whole field. */
  #caret() {
    if (this.editor.view.hasFocus) {
      const { left, ...edges } = this.editor.coordinatesAt(this.editor.view.state.selection.main.head)
      return { left, right: left, ...edges }
    }
    const focused = document.activeElement
    return focused?.matches("input, textarea, button") ? focused.getBoundingClientRect() : null
  }
}

/** @param {readonly Item[]} items at least one */
function sentenceOf(items) {
  const { name, review, isReply } = /** @type {Item} */ (items.at(-1))
  if (1 < items.length) return tCount("news.many", items.length, { name })
  const quote = quoteOf(review).slice(0, 60)
  if (isReply) return t("news.reply", { name })
  return quote === "" ? t("review.new.summary", { name }) : t("review.new", { name, quote })
}
