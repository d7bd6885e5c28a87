// @ts-check
/**
 * What stands before the desk: the question for a name, or why there is no desk. Owns one element.
 */

import * as api from "./api.js"
import { button, byId, el, once } from "./dom.js"
import { t } from "./words.js"
import { why } from "./why.js"

/** @typedef {import("./words.js").Sentence} Sentence */

/** Longest name the server takes, in characters. */
export const NAME_MAX = 80

export class Gate {
  constructor() {
    this.element = byId("gate")
    this.page = byId("gate-page")
  }

  open() {
    this.page.hidden = true
    byId("desk-page").hidden = false
  }

  opening() {
    this.#show(el("p", { class: "quiet", text: t("gate.opening") }))
  }

  /**
   * Says why there is no desk.
   *
   * @param {"exists" | "missing" | "incomplete" | "signin" | "failed"} what
   * @param {unknown} [error]
   */
  say(what, error) {
    const title = t(`gate.${what}.title`)
    const text = t(`gate.${what}.text`, { why: why(error) })
    const heading = el("h1", { tabindex: "-1", text: title })
    const home = el("a", { class: "button", href: "/", text: t("menu.home") })
    const actions = el("div", { class: "actions" }, home)
    if (what === "failed") {
      actions.prepend(button(t("common.retry"), { class: "button button-strong" }, () => location.reload()))
    }
    this.#show(heading, el("p", { text }), actions)
    heading.focus()
    document.title = `${title} · Galley`
  }

  /** Asks for a name until the server takes one. @returns {Promise<api.User>} */
  askName() {
    return new Promise((resolve) => {
      const field = el("input", { id: "gate-name", autocomplete: "name", maxlength: String(NAME_MAX), required: true })
      const error = el("p", { class: "form-error", role: "alert" })
      const go = button(t("gate.name.go"), { class: "button button-strong" })
      go.type = "submit"
      const form = el(
        "form",
        {},
        el("label", { for: "gate-name", text: t("start.name") }),
        field,
        error,
        el("div", { class: "actions" }, go),
      )
      const ask = async () => {
        try {
          resolve(await api.beGuest(field.value.trim()))
        } catch (problem) {
          error.textContent = why(problem)
          if (problem instanceof api.Problem && problem.kind === "guests-off") this.say("signin")
        }
      }
      form.addEventListener("submit", (event) => {
        event.preventDefault()
        once(go, ask)
      })
      this.#show(el("h1", { text: t("gate.name.title") }), el("p", { text: t("gate.name.text") }), form)
      field.focus()
    })
  }

  /** @param {...HTMLElement} parts */
  #show(...parts) {
    this.page.hidden = false
    this.element.replaceChildren(...parts)
  }
}
