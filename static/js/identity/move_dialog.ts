/** A code that signs this guest in on another device, with the time that it is valid for. */

import * as api from "../lib/api.ts"
import { copy, el, once, translatedButton, write } from "../lib/dom.ts"
import { errorText } from "../lib/error_text.ts"
import { t, type Sentence } from "../lib/i18n.ts"
import { now } from "../lib/server_clock.ts"
import { IdentityDialog } from "./dialog.ts"

export class MoveDialog {
  declare me: api.User
  #dialog = new IdentityDialog(() => this.#draw())
  #timer = 0
  /** The end of the code; `null`: there is none, or it is over. */
  #end: string | null = null
  #text = el("p")
  #values = el("div", { class: "identity-move" })
  #left = el("p", { class: "quiet", role: "timer", "aria-live": "off" })

  constructor(me: api.User) {
    this.me = me
  }

  async open() {
    this.#draw()
    this.#dialog.open("identity.move", this.#text, this.#values, this.#left)
    this.#dialog.whenClosed(() => window.clearInterval(this.#timer))
    await this.#make()
  }

  async #make() {
    window.clearInterval(this.#timer)
    try {
      const transfer = await api.createCode()
      if (this.#dialog.isOpen) this.#show(transfer)
    } catch (error) {
      this.#dialog.fail(() => errorText(error))
    }
  }

  /** The sentences with values; those of the fields follow the language by themselves. */
  #draw() {
    write(this.#text, t("identity.move.text", { name: this.me.name }))
    const seconds = this.#seconds
    const left = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`
    write(this.#left, seconds === 0 ? "" : t("identity.move.left", { left }))
  }

  /** Whole seconds until the code is over. */
  get #seconds() {
    return this.#end === null ? 0 : Math.max(0, Math.ceil((Date.parse(this.#end) - now()) / 1_000))
  }

  #show({ code, url, expires_at: end }: api.Transfer) {
    const hadFocus = this.#values.contains(document.activeElement)
    this.#end = end
    this.#values.replaceChildren(
      ...this.#value("code", code, "identity.move.code", "identity.move.copy.code"),
      ...this.#value("address", url, "identity.move.address", "identity.move.copy.address"),
    )
    if (hadFocus) this.#values.querySelector("button")?.focus()
    this.#dialog.say()
    this.#timer = window.setInterval(() => this.#tick(), 1_000)
    this.#tick()
  }

  #tick() {
    this.#draw()
    if (0 < this.#seconds) return
    window.clearInterval(this.#timer)
    this.#end = null
    const hadFocus = this.#values.contains(document.activeElement)
    const again = translatedButton("identity.move.again", { class: "button button-strong" }, () => void once(again, () => this.#make()))
    this.#values.replaceChildren(again)
    if (hadFocus) again.focus()
    this.#dialog.say(() => t("identity.move.over"))
  }

  /** A value to copy. */
  #value(name: string, value: string, label: Sentence, copies: Sentence) {
    const field = el("input", { id: `identity-${name}`, class: `identity-${name}`, readonly: true })
    field.value = value
    const press = translatedButton(copies, {}, async () => {
      if (await copy(value)) return this.#dialog.say(() => t("common.copied"))
      field.select()
      this.#dialog.say(() => t("identity.by-hand"))
    })
    return [el("label", { for: field.id, "data-t": label, text: t(label) }), el("div", { class: "identity-value" }, field, press)]
  }
}
