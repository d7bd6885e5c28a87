/**
 * The replies of one card. Their author edits and deletes them in place.
 *
 * A reply that is being edited is never drawn again: neither the focus nor a composition is lost when
 * the review changes.
 */

import type { Reply, Review, Role } from "../lib/api.ts"
import { button, el, initial, onSubmit, pressTwice } from "../lib/dom.ts"
import { authorName, i18n, number, t, when } from "../lib/i18n.ts"
import type { CardContext } from "./card.ts"
import { formKeys, grow } from "./form.ts"
import type { WrittenDrafts } from "./written_drafts.ts"

/** The first two answer why it did not work, or `null`. */
export interface ReplyActions {
  editReply: (review: Review, reply: Reply, body: string) => Promise<string | null>
  removeReply: (review: Review, reply: Reply) => Promise<string | null>
  written: WrittenDrafts
}

export class Replies {
  declare actions: ReplyActions
  declare element
  #rows: Map<string, ReplyRow> = new Map()

  constructor(actions: ReplyActions) {
    this.actions = actions
    this.element = el("ol", { class: "replies", hidden: true })
  }

  update(review: Review, { me, seated, roleOf }: CardContext) {
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
  declare actions: ReplyActions
  declare element
  #content = el("div")
  #note = el("p", { class: "form-error", role: "alert" })
  #drawn = ""
  #form: HTMLFormElement | null = null
  #shown: { review: Review, reply: Reply, role: Role } | null = null

  constructor(actions: ReplyActions) {
    this.actions = actions
    this.element = el("li", {}, this.#content, this.#note)
  }

  update(review: Review, reply: Reply, isEditable: boolean, role: Role) {
    this.#shown = { review, reply, role }
    const drawn = JSON.stringify([reply, isEditable, i18n.language])
    if (this.#form || drawn === this.#drawn) return
    this.#drawn = drawn
    this.#content.replaceChildren(this.#header(reply, isEditable), el("p", { class: "body", text: reply.body }))
    const stored = isEditable ? this.actions.written.read(`edit:${reply.id}`) : ""
    if (stored !== "") this.#edit(stored, { focus: false })
  }

  #header({ author, body, created_at: at, edited_at: edited }: Reply, isEditable: boolean) {
    const header = el("header", {}, initial(authorName(author), this.#shown?.role), el("span", { class: "who", text: authorName(author) }), el("time", { datetime: at, text: when(at) }))
    if (edited) header.append(el("time", { class: "reply-edited", datetime: edited, title: when(edited), text: t("reply.edited") }))
    if (!isEditable) return header
    const words = body.length <= 40 ? body : `${body.slice(0, 39)}…`
    const act = (name: "edit" | "delete", press: (event: Event) => void) =>
      button(t(`review.${name}`), { class: "button button-quiet", label: `${t(`review.${name}`)}: ${words}` }, press)
    const remove = (event: Event) => this.#remove(event.currentTarget as HTMLButtonElement)
    header.append(el("span", { class: "reply-actions" }, act("edit", () => this.#edit(body)), act("delete", remove)))
    return header
  }

  #edit(text: string, { focus = true }: { focus?: boolean } = {}) {
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

  #resized(field: HTMLTextAreaElement) {
    grow(field)
    this.element.dispatchEvent(new Event("resized", { bubbles: true }))
  }

  async #save(field: HTMLTextAreaElement) {
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

  /** A second press deletes: a new reply would not be the deleted one. */
  #remove(pressed: HTMLButtonElement) {
    const shown = this.#shown
    if (!shown) return
    const words = t("review.delete.sure")
    pressTwice(pressed, { words, label: `${words} ${pressed.getAttribute("aria-label")}` }, async () => {
      this.#note.textContent = await this.actions.removeReply(shown.review, shown.reply)
    })
  }
}
