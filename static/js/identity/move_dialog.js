// @ts-check
/** A code that signs this guest in on another device, with the time that it is valid for. */

import * as api from "../lib/api.js"
import { button, copy, el, once } from "../lib/dom.js"
import { errorText } from "../lib/error_text.js"
import { t } from "../lib/i18n.js"
import { IdentityDialog } from "./dialog.js"

/** @typedef {import("../lib/api.js").Transfer} Transfer */

export class MoveDialog {
  #dialog = new IdentityDialog()
  #timer = 0

  /** @param {api.User} me */
  constructor(me) {
    this.me = me
  }

  async open() {
    this.#dialog.open("identity.move", el("p", { text: t("identity.move.text", { name: this.me.name }) }))
    this.#dialog.whenClosed(() => window.clearInterval(this.#timer))
    await this.#make()
  }

  async #make() {
    window.clearInterval(this.#timer)
    try {
      const transfer = await api.createCode()
      if (this.#dialog.isOpen) this.#show(transfer)
    } catch (error) {
      this.#dialog.fail(errorText(error))
    }
  }

  /** @param {Transfer} transfer */
  #show({ code, url, expires_at: end }) {
    const left = el("p", { class: "quiet", role: "timer", "aria-live": "off" })
    const values = el(
      "div",
      { class: "identity-move" },
      ...this.#value("code", code, t("identity.move.code"), t("identity.move.copy.code")),
      ...this.#value("address", url, t("identity.move.address"), t("identity.move.copy.address")),
    )
    const text = el("p", { text: t("identity.move.text", { name: this.me.name }) })
    this.#dialog.content.replaceChildren(text, values, left)
    const tick = () => {
      const seconds = Math.ceil((Date.parse(end) - Date.now()) / 1_000)
      if (0 < seconds) {
        left.textContent = t("identity.move.left", { left: `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}` })
        return
      }
      window.clearInterval(this.#timer)
      const again = button(t("identity.move.again"), { class: "button button-strong" }, () => once(again, () => this.#make()))
      values.replaceChildren(again)
      left.textContent = ""
      this.#dialog.say(t("identity.move.over"))
    }
    this.#timer = window.setInterval(tick, 1_000)
    tick()
  }

  /** A value to copy. @param {string} name @param {string} value @param {string} label @param {string} copies */
  #value(name, value, label, copies) {
    const field = el("input", { id: `identity-${name}`, class: `identity-${name}`, readonly: true })
    field.value = value
    const press = button(copies, { class: "button" }, async () => {
      if (await copy(value)) return this.#dialog.say(t("common.copied"))
      field.select()
      this.#dialog.say(t("identity.by-hand"))
    })
    return [el("label", { for: field.id, text: label }), el("div", { class: "identity-value" }, field, press)]
  }
}
