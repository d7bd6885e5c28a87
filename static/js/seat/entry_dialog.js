// @ts-check
/**
 * The dialog before the desk: the question for a name, or the reason why there is no desk. Owns one element.
 */

import { showToast } from "../lib/announce.js"
import * as api from "../lib/api.js"
import { deletedSentence } from "../lib/deleted_sentence.js"
import { button, byId, el, icon, once } from "../lib/dom.js"
import { errorText } from "../lib/error_text.js"
import { t } from "../lib/i18n.js"
import { signInAddress } from "../lib/sign_in.js"
import { countStoredEdits } from "../unsaved/drafts.js"

/** @typedef {import("../lib/i18n.js").Sentence} Sentence */

/** Longest name the server takes, in characters. */
export const NAME_MAX = 80

export class EntryDialog {
  constructor() {
    this.element = byId("entry-dialog")
    this.page = byId("entry-page")
  }

  open() {
    this.page.hidden = true
    byId("desk-page").hidden = false
  }

  opening() {
    this.#show(el("p", { class: "quiet", text: t("entry.opening") }))
  }

  /**
   * Says why there is no desk.
   *
   * @param {"exists" | "missing" | "incomplete" | "failed"} outcome
   * @param {unknown} [error]
   */
  refuse(outcome, error) {
    const again = button(t("common.retry"), { class: "button button-strong" }, () => location.reload())
    const text = t(`entry.${outcome}.text`, { why: errorText(error) })
    this.#showRefusal(t(`entry.${outcome}.title`), text, ...(outcome === "failed" ? [again] : []))
  }

  /**
   * Says who deleted the document, and restores it for its owner.
   *
   * @param {api.Deletion} deletion
   * @param {api.User | null} me `null`: not the owner
   * @param {string} document
   */
  deleted(deletion, me, document) {
    const isOwn = me?.id === deletion.by.id
    const restore = button(t("deleted.restore"), { class: "button button-strong" }, () => void once(restore, async () => {
      try {
        await api.restoreDocument(document)
        location.reload()
      } catch (error) {
        showToast(errorText(error))
      }
    }))
    this.#showRefusal(t("deleted.title"), deletedSentence(deletion, isOwn), ...(isOwn ? [restore] : []))
  }

  /** Says that there is no sign-in, how to get one, and that unsaved edits wait for it. */
  async signIn() {
    const { guests, sign_in_url: url } = await api.entry()
    const outcome = guests && url === null ? "stranger" : "signin"
    const go = url === null ? [] : [el("a", { class: "button button-strong", href: signInAddress(url, location), text: t("signin.go") })]
    this.#showRefusal(t(`entry.${outcome}.title`), t(url === null ? `entry.${outcome}.text` : "entry.signin.back"), ...go)
    if ((await countStoredEdits()) === 0) return
    const notice = el("div", { class: "notice" }, icon("alert"), el("p", { text: t("entry.unsaved") }))
    byId("orphaned-drafts").replaceChildren(notice)
    byId("orphaned-drafts").hidden = false
  }

  /**
   * @param {string} title
   * @param {string} text
   * @param {...HTMLElement} actions on from here, beside the one to the start page
   */
  #showRefusal(title, text, ...actions) {
    const heading = el("h1", { tabindex: "-1", text: title })
    const home = el("a", { class: "button", href: "/", text: t("menu.home") })
    this.#show(heading, el("p", { text }), el("div", { class: "actions" }, ...actions, home))
    heading.focus()
    document.title = `${title} · Galley`
  }

  /**
   * Asks a user who is signed in before an invite makes them the reviewer: a link may be a lure.
   *
   * @param {api.User} me
   * @returns {Promise<boolean>}
   */
  confirmReview({ name }) {
    return new Promise((resolve) => {
      const go = button(t("entry.review.go", { name }), { class: "button button-strong" }, () => resolve(true))
      const no = button(t("entry.review.no"), {}, () => resolve(false))
      const heading = el("h1", { tabindex: "-1", text: t("entry.name.title") })
      this.#show(heading, el("p", { text: t("entry.review.text", { name }) }), el("div", { class: "actions" }, go, no))
      heading.focus()
    })
  }

  /** Asks for a name until the server takes one. @returns {Promise<api.User>} */
  requestName() {
    return new Promise((resolve) => {
      const field = el("input", { id: "entry-name", autocomplete: "name", maxlength: String(NAME_MAX), required: true })
      const error = el("p", { class: "form-error", role: "alert" })
      const go = button(t("entry.name.go"), { class: "button button-strong" })
      go.type = "submit"
      const form = el(
        "form",
        {},
        el("label", { for: "entry-name", text: t("start.name") }),
        field,
        error,
        el("div", { class: "actions" }, go),
      )
      const submit = async () => {
        try {
          resolve(await api.signInAsGuest(field.value.trim()))
        } catch (problem) {
          error.textContent = errorText(problem)
          if (problem instanceof api.Problem && problem.kind === "guests-off") await this.signIn()
        }
      }
      form.addEventListener("submit", (event) => {
        event.preventDefault()
        once(go, submit)
      })
      this.#show(el("h1", { text: t("entry.name.title") }), el("p", { text: t("entry.name.text") }), form)
      field.focus()
    })
  }

  /** @param {...HTMLElement} parts */
  #show(...parts) {
    this.page.hidden = false
    this.element.replaceChildren(...parts)
  }
}
