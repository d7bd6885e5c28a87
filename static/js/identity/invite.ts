/** The invite: its button, copying it, and when this browser copied it last. */

import { ENDED_LINKS } from "../desk/policy.ts"
import { showToast } from "../lib/announce.ts"
import type { Link } from "../lib/api.ts"
import { byId, copy, drawWith, el, footWhenNarrow, translatedButton } from "../lib/dom.ts"
import { t } from "../lib/i18n.ts"
import { preference, setPreference } from "../lib/preferences.ts"
import { now } from "../lib/server_clock.ts"
import type { Store } from "../store.ts"

/** The button of a writer without a reviewer: in the empty margin, or in the foot. */
export class InviteButton {
  declare store: Store
  declare element

  constructor(store: Store) {
    this.store = store
    this.element = byId("invite")
  }

  start(signal: AbortSignal) {
    footWhenNarrow(this.element, signal)
    this.element.addEventListener("click", () => this.copy(), { signal })
    drawWith([this.store], () => this.#draw(), signal)
  }

  #draw() {
    const { link, reason } = this.store.state
    this.element.hidden = !link?.invite || link.reviewer != null || ENDED_LINKS.includes(reason)
  }

  async copy() {
    if (await copyInvite(this.store)) showToast(t("desk.invite.copied"))
  }
}

/**
 * Copies the invite, or shows it where the browser does not copy.
 *
 * @returns whether it is on the clipboard
 */
export async function copyInvite(store: Store): Promise<boolean> {
  const { link } = store.state
  if (!link?.invite) return false
  const { token, url } = link.invite
  const isCopied = await copy(url)
  if (!isCopied) showByHand(url)
  // The mark belongs to this invite: a renewed one was not copied yet.
  setPreference(`invited.${link.id}`, `${new Date(now()).toISOString()} ${token.slice(0, 6)}`)
  if (isCopied) store.change({ invitedAt: copiedAt(link) })
  return isCopied
}

/** When this browser copied the invite in force. */
export function copiedAt(link: Link | null): string | null {
  const [at = "", of] = (link && preference(`invited.${link.id}`))?.split(" ") ?? []
  return at !== "" && of === link?.invite?.token.slice(0, 6) ? at : null
}

function showByHand(url: string) {
  const field = el("input", { readonly: true, "data-t-label": "desk.invite", "aria-label": t("desk.invite") })
  field.value = url
  const dialog = byId("invite-dialog", HTMLDialogElement)
  const close = translatedButton("common.close", {}, () => dialog.close())
  dialog.replaceChildren(el("p", { "data-t": "desk.invite.manual", text: t("desk.invite.manual") }), field, el("div", { class: "actions" }, close))
  dialog.showModal()
  field.select()
}
