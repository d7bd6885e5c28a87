// @ts-check
/**
 * The replies of one card. Their author edits and deletes them in place.
 *
 * A reply that is being edited is never drawn again: neither the focus nor a composition is lost when
 * the review changes.
 */

import { button, el, initial, onSubmit, pressTwice } from "../lib/dom.js"
import { i18n, number, t, when } from "../lib/i18n.js"
import { formKeys, grow } from "./form.js"

/**
 * @typedef {import("../lib/api.js").Review} Review
 * @typedef {import("../lib/api.js").Reply} Reply
 *
 * @typedef {object} ReplyActions the first two answer why it did not work, or `null`
 * @property {(review: Review, reply: Reply, body: string) => Promise<string | null>} editReply
 * @property {(review: Review, reply: Reply) => Promise<string | null>} removeReply
 * @property {import("./written_drafts.js").WrittenDrafts} written
 */

export class Replies {
  /** @type {Map<string, ReplyRow>} */
  #rows = new Map()

  /** @param {ReplyActions} actions */
  constructor(actions) {
    this.actions = actions
    this.element = el("ol", { class: "replies", hidden: true })
  }

  /** @param {Review} review @param {import("./card.js").CardContext} context */
  update(review, { me, seated, roleOf }) {
    const { replies } = review
    for (const [id, row] of this.#rows) {
      if (replies.some((reply) => reply.id === id)) continue
      row.element.remove()
      this.#rows.delete(id)
    }
    for (const reply of replies) {
      const isEditable = seated && review.status === "open" && reply.author.id === me
      let row = this.#rows.get(reply.id)
      if (!row) {
        row = new ReplyRow(this.actions)
        this.#rows.set(reply.id, row)
        this.element.append(row.element)
      }
      row.update(review, reply, isEditable, roleOf(reply.author))
    }
    this.element.hidden = replies.length === 0
    this.element.setAttribute("aria-label", `${t("review.reply")} ${number(replies.length)}`)
  }
}

class ReplyRow {
  #content = el("div")
  #note = el("p", { class: "form-error", role: "alert" })
  #drawn = ""
  /** @type {HTMLFormElement | null} */
  #form = null
  /** @type {{ review: Review, reply: Reply, role: import("../lib/api.js").Role } | null} */
  #shown = null

  /** @param {ReplyActions} actions */
  constructor(actions) {
    this.actions = actions
    this.element = el("li", {}, this.#content, this.#note)
  }

  /** @param {Review} review @param {Reply} reply @param {boolean} isEditable @param {import("../lib/api.js").Role} role */
  update(review, reply, isEditable, role) {
    this.#shown = { review, reply, role }
    const drawn = JSON.stringify([reply, isEditable, i18n.language])
    if (this.#form || drawn === this.#drawn) return
    this.#drawn = drawn
    this.#content.replaceChildren(this.#header(reply, isEditable), el("p", { class: "body", text: reply.body }))
    const stored = isEditable ? this.actions.written.read(`edit:${reply.id}`) : ""
    if (stored !== "") this.#edit(stored, { focus: false })
  }

  /** @param {Reply} reply @param {boolean} isEditable */
  #header({ author, body, created_at: at, edited_at: edited }, isEditable) {
    const header = el("header", {}, initial(author.name, this.#shown?.role), el("span", { class: "who", text: author.name }), el("time", { datetime: at, text: when(at) }))
    if (edited) header.append(el("time", { class: "reply-edited", datetime: edited, title: when(edited), text: t("reply.edited") }))
    if (!isEditable) return header
    const words = body.length <= 40 ? body : `${body.slice(0, 39)}…`
    const act = (/** @type {"edit" | "delete"} */ name, /** @type {(event: Event) => void} */ press) =>
      button(t(`review.${name}`), { class: "button button-quiet", label: `${t(`review.${name}`)}: ${words}` }, press)
    const remove = (/** @type {Event} */ event) => this.#remove(/** @type {HTMLButtonElement} */ (event.currentTarget))
    header.append(el("span", { class: "reply-actions" }, act("edit", () => this.#edit(body)), act("delete", remove)))
    return header
  }

  /** @param {string} text @param {{ focus?: boolean }} [options] */
  #edit(text, { focus = true } = {}) {
    const shown = this.#shown
    if (!shown) return
    const field = el("textarea", { rows: "1", class: "reply-field", "aria-label": t("review.reply") })
    field.value = text
    const save = button(t("review.save"), { class: "button button-strong", type: "submit" })
    const cancel = button(t("common.cancel"), {}, () => this.#close())
    this.#form = el("form", { class: "reply reply-edit" }, field, el("div", { class: "actions" }, save, cancel))
    field.addEventListener("input", () => {
      this.actions.written.write(`edit:${shown.reply.id}`, field.value)
      this.#resized(field)
    })
    formKeys(this.#form, () => field.value === this.#shown?.reply.body, () => this.#close())
    onSubmit(this.#form, save, () => this.#save(field))
    this.#content.replaceChildren(this.#form)
    this.#resized(field)
    if (focus) field.focus()
  }

  /** @param {HTMLTextAreaElement} field */
  #resized(field) {
    grow(field)
    this.element.dispatchEvent(new Event("resized", { bubbles: true }))
  }

  /** @param {HTMLTextAreaElement} field */
  async #save(field) {
    const [shown, body] = [this.#shown, field.value.trim()]
    if (!shown || body === "") return
    if (body === shown.reply.body) return this.#close()
    const failed = await this.actions.editReply(shown.review, shown.reply, body)
    this.#note.textContent = failed
    // Later words stay, and so does a form that was opened since.
    if (failed === null && this.#form?.contains(field) && field.value.trim() === body) this.#close()
  }

  /** Shows the reply again, as it is now. */
  #close() {
    const shown = this.#shown
    if (!shown) return
    const hadFocus = this.element.contains(document.activeElement)
    this.actions.written.write(`edit:${shown.reply.id}`, "")
    this.#form = null
    this.#note.textContent = null
    this.#drawn = ""
    this.update(shown.review, shown.reply, true, shown.role)
    this.element.dispatchEvent(new Event("resized", { bubbles: true }))
    const first = this.element.querySelector("button")
    if (hadFocus) first?.focus()
  }

  /** A second press deletes: a new reply would not be the deleted one. @param {HTMLButtonElement} pressed */
  #remove(pressed) {
    const shown = this.#shown
    if (!shown) return
    const words = t("review.delete.sure")
    pressTwice(pressed, { words, label: `${words} ${pressed.getAttribute("aria-label")}` }, async () => {
      this.#note.textContent = await this.actions.removeReply(shown.review, shown.reply)
    })
  }
}
