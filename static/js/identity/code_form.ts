/**
 * The start page takes a code from another device: typed, or from the address (`#move=CODE`).
 *
 * The code of an address waits for a press: a stranger's link may be a lure, and would sign its reader in
 * as the stranger. Owns one form and the button that opens it.
 */

import { showToast } from "../lib/announce.ts"
import * as api from "../lib/api.ts"
import { confirm } from "../lib/confirm.ts"
import { byId, el, onSubmit, say } from "../lib/dom.ts"
import { errorText } from "../lib/error_text.ts"
import { t } from "../lib/i18n.ts"
import { Drafts } from "../unsaved/drafts.ts"

export class CodeForm {
  declare me: () => api.User | null
  declare entered: (user: api.User) => void
  #form = byId("code", HTMLFormElement)
  #opener = byId("code-open", HTMLButtonElement)
  #field = byId("code-field", HTMLInputElement)
  #error = byId("code-error")
  /** Opens the form from the menu. */
  entry = el("button", { type: "button", "data-t": "identity.code", hidden: true })

  constructor(me: () => api.User | null, entered: (user: api.User) => void) {
    this.me = me
    this.entered = entered
  }

  start() {
    this.#opener.addEventListener("click", () => this.#show(this.#form.hidden))
    this.entry.addEventListener("click", () => this.#show(true))
    onSubmit(this.#form, byId("code-go", HTMLButtonElement), () => this.#submit())
    window.addEventListener("hashchange", () => this.takeAddress())
  }

  /** Takes the code out of the address, and shows it. */
  takeAddress() {
    const [, code] = /^#move=([\w-]{1,40})$/.exec(location.hash) ?? []
    if (code === undefined) return
    history.replaceState(null, "", location.pathname)
    this.#field.value = code
    this.#show(true)
    byId("code-go").focus()
  }

  #show(shown: boolean) {
    this.#form.hidden = !shown
    this.#opener.setAttribute("aria-expanded", String(shown))
    say(this.#error)
    if (!shown) return
    this.#field.focus()
    this.#form.scrollIntoView({ block: "nearest" })
  }

  async #submit() {
    // The same sentence again is spoken again.
    say(this.#error)
    const before = this.me()
    if (before && !(await this.#mayReplace(before))) return
    try {
      const user = await api.enterByCode(this.#field.value)
      this.#field.value = ""
      this.#show(false)
      showToast(t("identity.code.done", { name: user.name }))
      this.entered(user)
    } catch (error) {
      const isWrong = error instanceof api.Problem && error.kind === "transfer-code-invalid"
      say(this.#error, () => (isWrong ? t("identity.code.wrong") : errorText(error)))
      this.#field.focus()
    }
  }

  async #mayReplace({ id, name }: api.User) {
    const store = await Drafts.open(id)
    const unsaved = (await store?.count().catch(() => 0)) ?? 0
    const warning = 0 < unsaved ? ` ${t("identity.code.unsaved", { name })}` : ""
    return confirm(t("identity.code.replace", { name }) + warning, t("identity.code.go"))
  }
}
