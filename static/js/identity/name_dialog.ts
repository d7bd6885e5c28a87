/** A guest corrects the name. */

import * as api from "../lib/api.ts"
import { el, onSubmit, translatedButton } from "../lib/dom.ts"
import { errorText } from "../lib/error_text.ts"
import { t } from "../lib/i18n.ts"
import { IdentityDialog } from "./dialog.ts"

/** Longest name the server takes, in characters. */
export const NAME_MAX = 80

export function correctName(me: api.User, renamed: (me: api.User) => void) {
  const dialog = new IdentityDialog()
  const field = el("input", { id: "identity-name", autocomplete: "name", maxlength: String(NAME_MAX), required: true })
  field.value = me.name
  const save = translatedButton("identity.name.save", { class: "button button-strong", type: "submit" })
  save.setAttribute("form", "identity-form")
  const form = el(
    "form",
    { id: "identity-form" },
    el("label", { for: "identity-name", "data-t": "start.name", text: t("start.name") }),
    field,
    el("p", { class: "quiet", "data-t": "start.name.hint", text: t("start.name.hint") }),
  )
  const submit = async () => {
    const user = await api.renameGuest(field.value.trim())
    field.value = user.name
    dialog.say(() => t("identity.name.done", { name: user.name }))
    renamed(user)
  }
  onSubmit(form, save, submit, (error) => dialog.fail(() => errorText(error)))
  dialog.actions.append(save)
  dialog.open("identity.name", form)
  field.select()
}
