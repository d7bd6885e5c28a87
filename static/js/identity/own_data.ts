/**
 * The own data of the user as a whole: its download, and its deletion with the account; and the end of a reviewer's
 * membership.
 *
 * The deletion demands the name of the user, and cannot be undone. Its receipt is shown before the page ends.
 */

import * as api from "../lib/api.ts"
import { showToast } from "../lib/announce.ts"
import { confirm } from "../lib/confirm.ts"
import { el, onSubmit, say, translatedButton, write } from "../lib/dom.ts"
import { errorText } from "../lib/error_text.ts"
import { t } from "../lib/i18n.ts"
import type { Store } from "../store.ts"
import { IdentityDialog } from "./dialog.ts"

/** The cookie of the page opens it. */
export const downloadEntry = () => el("a", { href: "/api/me/export", download: "galley.ndjson", "data-t": "identity.data.download" })

/** @param forget ends what this browser has of the user, after the server has begun */
export function deleteOwnData(me: api.User, forget: () => Promise<void>) {
  const text = el("p")
  const question = el("label", { for: "identity-confirm" })
  const draw = () => {
    write(text, t("identity.data.text", { name: me.name }))
    write(question, t("identity.data.field", { name: me.name }))
  }
  const dialog = new IdentityDialog(draw)
  const reviews = el("input", { type: "checkbox", id: "identity-reviews" })
  const field = el("input", { id: "identity-confirm", autocomplete: "off", required: true })
  const wrong = el("p", { class: "form-error", role: "alert" })
  const go = translatedButton("identity.data.go", { class: "button button-danger", type: "submit" })
  go.setAttribute("form", "identity-delete")
  const form = el(
    "form",
    { id: "identity-delete" },
    text,
    el("p", {}, reviews, " ", el("label", { for: "identity-reviews", "data-t": "identity.data.reviews", text: t("identity.data.reviews") })),
    question,
    field,
    wrong,
  )
  const submit = async () => {
    say(wrong)
    if (field.value.trim() !== me.name) {
      say(wrong, () => t("identity.data.wrong"))
      return field.focus()
    }
    const receipt = await api.deleteMe(reviews.checked)
    await forget()
    const status = el("a", { href: `/api/user-deletions/${receipt.id}`, text: receipt.id })
    dialog.fill(dialog.content, [el("p", { role: "status", "data-t": "identity.data.begun", text: t("identity.data.begun") }), el("p", {}, status)])
    go.remove()
    dialog.whenClosed(() => location.assign("/"))
    dialog.element.querySelector("h2")?.focus()
  }
  onSubmit(form, go, submit, (error) => dialog.fail(() => errorText(error)))
  draw()
  dialog.actions.append(go)
  dialog.open("identity.data.title", form)
}

/** The reviewer leaves the link. @param stop ends what the page does in the user's name */
export function leaveEntries(store: Store, role: api.Role, stop: () => void) {
  if (role === "writer") return []
  const entry = el("button", { type: "button", "data-t": "identity.leave-link" })
  entry.addEventListener("click", () => void leave(store.state.link?.id ?? "", stop))
  return [entry]
}

async function leave(link: string, stop: () => void) {
  if (!(await confirm(t("identity.leave-link.sure"), t("identity.leave-link.yes")))) return
  try {
    await api.leaveLink(link)
  } catch (error) {
    return void showToast(errorText(error))
  }
  stop()
  location.assign("/")
}
