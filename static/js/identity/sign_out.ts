/**
 * Signing out, here or on every device: the entries of the menu, the question before, and what this browser forgets.
 *
 * A guest has no other sign-in, and edits that only this browser keeps belong to the user who made
 * them: the question names both. Other tabs of the same user follow.
 */

import { showToast } from "../lib/announce.ts"
import * as api from "../lib/api.ts"
import { confirm } from "../lib/confirm.ts"
import { el } from "../lib/dom.ts"
import { errorText } from "../lib/error_text.ts"
import { t } from "../lib/i18n.ts"
import { setPreference } from "../lib/preferences.ts"
import { afterSignOut } from "../lib/sign_in.ts"
import { Drafts } from "../unsaved/drafts.ts"

/** The ids that the server gives to guests. */
const GUEST = /^usr_[0-9a-f]{32}$/

/** Whether the user entered under a name, without a sign-in elsewhere. */
export const isGuest = ({ id }: api.User) => GUEST.test(id)

export class SignOut {
  declare stop: () => void
  declare before: () => Promise<void>
  declare element
  declare everywhere
  #me: api.User | null = null
  #others = new BroadcastChannel("galley.sign-out")

  /**
   * @param stop ends what the page does in the user's name
   * @param before ends what the browser does in the user's name, while they are signed in
   */
  constructor(stop: () => void = () => undefined, before: () => Promise<void> = async () => undefined) {
    this.stop = stop
    this.before = before
    this.element = el("button", { type: "button", "data-t": "menu.leave" })
    this.element.hidden = true
    this.element.addEventListener("click", () => this.confirm())
    this.everywhere = el("button", { type: "button", "data-t": "menu.leave.everywhere" })
    this.everywhere.hidden = true
    this.everywhere.addEventListener("click", () => this.confirm({ everywhere: true }))
    this.#others.addEventListener("message", ({ data }) => data === this.#me?.id && this.#leave())
  }

  /** Shows the entry to a user who is signed in. */
  setUser(me: api.User | null) {
    this.#me = me
    this.element.hidden = this.everywhere.hidden = me === null
    this.element.dataset.t = me && isGuest(me) ? "identity.leave" : "menu.leave"
    this.element.textContent = t(me && isGuest(me) ? "identity.leave" : "menu.leave")
  }

  async confirm({ everywhere = false } = {}) {
    const me = this.#me
    if (!me) return
    const store = await Drafts.open(me.id)
    const unsaved = (await store?.count().catch(() => 0)) ?? 0
    const guest = isGuest(me)
    const question = everywhere
      ? t(guest ? "leave.everywhere.sure.guest" : "leave.everywhere.sure", { name: me.name })
      : t(guest ? "leave.sure.guest" : "leave.sure", { name: me.name })
    const warning = 0 < unsaved ? ` ${t("leave.unsaved")}` : ""
    const yes = t(everywhere ? "leave.everywhere.yes" : guest ? "identity.leave.yes" : "leave.yes")
    if (!(await confirm(question + warning, yes, { danger: everywhere || guest || 0 < unsaved }))) return
    let next = "/"
    try {
      await this.before()
      next = afterSignOut((await api.entry()).sign_out_url)
      await (everywhere ? api.signOutEverywhere() : api.signOut())
      // A cookie of the host application's domain is not the server's to remove.
      if (await api.me()) return void showToast(t("leave.elsewhere"))
    } catch (error) {
      return void showToast(errorText(error))
    }
    await this.forget(me)
    this.#leave(next)
  }

  /** Ends what this browser has of the user, in other tabs too. */
  async forget(me: api.User) {
    this.#others.postMessage(me.id)
    this.stop()
    const store = await Drafts.open(me.id)
    await store?.clear().catch(() => undefined)
    setPreference(`offers.${me.id}`, null)
    try {
      sessionStorage.clear()
    } catch {
      // Without storage nothing is in it.
    }
  }

  #leave(next = "/") {
    this.stop()
    location.assign(next)
  }
}
