/**
 * The dialog before the desk: the question for a name, or the reason why there is no desk. Owns one element.
 */

import { NAME_MAX } from "../identity/name_dialog.ts"
import * as api from "../lib/api.ts"
import { deletedSentence, restoreButton } from "../lib/deleted_sentence.ts"
import { button, byId, el, icon, onSubmit } from "../lib/dom.ts"
import { errorText } from "../lib/error_text.ts"
import { t } from "../lib/i18n.ts"
import { leadToSignIn, opensWindow } from "../lib/sign_in.ts"
import { countStoredEdits } from "../unsaved/drafts.ts"

export class EntryDialog {
  declare element
  declare page

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

  /** Says why there is no desk. */
  refuse(outcome: "void" | "missing" | "incomplete" | "former" | "origin" | "failed", error?: unknown) {
    const again = button(t("common.retry"), { class: "button button-strong" }, () => location.reload())
    const text = t(`entry.${outcome}.text`, { why: errorText(error), address: location.origin })
    this.#showRefusal(t(`entry.${outcome}.title`), text, ...(outcome === "failed" ? [again] : []))
  }

  /**
   * Says who deleted the document, and restores it for its owner.
   *
   * @param me `null`: not the owner
   */
  deleted(deletion: api.Deletion, me: api.User | null, document: string) {
    const isOwn = me?.id === deletion.by.id
    this.#showRefusal(t("deleted.title"), deletedSentence(deletion, isOwn), ...(isOwn ? [restoreButton(document)] : []))
  }

  /**
   * Says that the link has another reviewer. Resolves when the visitor wants the writer to know.
   *
   * @param mayNotify whether the visitor is signed in or may give a name
   */
  refuseTaken({ title, writer: { name } }: api.Preview, mayNotify: boolean): Promise<void> {
    return new Promise((resolve) => {
      const notify = button(t("entry.tell", { name }), { class: "button button-strong" }, () => resolve())
      const text = t("entry.taken.text", { title: title || t("start.untitled"), name })
      this.#showRefusal(t("entry.exists.title"), text, ...(mayNotify ? [notify] : []))
    })
  }

  /** The writer knows of the visitor. */
  notified({ writer: { name } }: api.Preview) {
    this.#showRefusal(t("entry.told.title", { name }), t("entry.told.text", { name }))
  }

  /** Says that there is no sign-in, how to get one, and that unsaved edits wait for it. */
  async signIn() {
    const { guests, sign_in_url: url } = await api.entry()
    const outcome = guests && url === null ? "stranger" : "signin"
    const go = url === null ? [] : [signInLink(url, "button button-strong")]
    const withUrl = url !== null && opensWindow(url) ? "signin.frame" : "entry.signin.back"
    this.#showRefusal(t(`entry.${outcome}.title`), t(url === null ? `entry.${outcome}.text` : withUrl), ...go)
    if ((await countStoredEdits()) === 0) return
    const notice = el("div", { class: "notice" }, icon("alert"), el("p", { text: t("entry.unsaved") }))
    byId("orphaned-drafts").replaceChildren(notice)
    byId("orphaned-drafts").hidden = false
  }

  /** @param actions on from here, beside the one to the start page */
  #showRefusal(title: string, text: string, ...actions: HTMLElement[]) {
    const heading = el("h1", { tabindex: "-1", text: title })
    const home = el("a", { class: "button", href: "/", text: t("menu.home") })
    this.#show(heading, el("p", { text }), el("div", { class: "actions" }, ...actions, home))
    heading.focus()
    document.title = `${title} · Galley`
  }

  /** Asks a user who is signed in before an invite makes them the reviewer: a link may be a lure. */
  confirmReview({ name }: api.User, preview: api.Preview): Promise<boolean> {
    return new Promise((resolve) => {
      const go = button(t("entry.review.go", { name }), { class: "button button-strong" }, () => resolve(true))
      const no = button(t("entry.review.no"), {}, () => resolve(false))
      const heading = el("h1", { tabindex: "-1", text: t("entry.name.title") })
      const text = el("p", { text: t("entry.review.text", { name }) })
      this.#show(heading, introduction(preview), text, el("div", { class: "actions" }, go, no))
      heading.focus()
    })
  }

  /**
   * Asks for a name until the server takes one.
   *
   * @param signIn another way on for a user with an account
   */
  requestName(preview: api.Preview, why: "entry.name.text" | "entry.tell.text" = "entry.name.text", signIn: string | null = null): Promise<api.User> {
    return new Promise((resolve) => {
      const field = el("input", { id: "entry-name", autocomplete: "name", maxlength: String(NAME_MAX), required: true })
      const error = el("p", { class: "form-error", role: "alert" })
      const { name } = preview.writer
      const isNotice = why === "entry.tell.text"
      const words = t(isNotice ? "entry.tell" : "entry.name.go", { name })
      const go = button(words, { class: "button button-strong", type: "submit" })
      const form = el(
        "form",
        {},
        el("label", { for: "entry-name", text: t("start.name") }),
        field,
        error,
        el("div", { class: "actions" }, go, ...(signIn === null ? [] : [signInLink(signIn)])),
      )
      const submit = async () => {
        try {
          resolve(await api.signInAsGuest(field.value.trim()))
        } catch (problem) {
          error.textContent = errorText(problem)
          if (problem instanceof api.Problem && problem.kind === "guests-off") await this.signIn()
        }
      }
      onSubmit(form, go, submit)
      const heading = el("h1", { text: t(isNotice ? "entry.exists.title" : "entry.name.title") })
      this.#show(heading, ...(isNotice ? [] : [introduction(preview)]), el("p", { text: t(why, { name }) }), form)
      field.focus()
    })
  }

  #show(...parts: HTMLElement[]) {
    this.page.hidden = false
    this.element.replaceChildren(...parts)
  }
}

function signInLink(url: string, kind = "button") {
  const go = el("a", { class: kind, text: t("signin.go") })
  leadToSignIn(go, url)
  return go
}

/** The sentence that names the writer and the document. */
function introduction({ title, writer: { name } }: api.Preview) {
  return el("p", { class: "entry-asks", text: t("entry.ask", { name, title: title || t("start.untitled") }) })
}
