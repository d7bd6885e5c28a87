/** One question before something that is not done lightly. */

import { button, byId, el } from "./dom.ts"
import { t } from "./i18n.ts"

/**
 * @param yes what the button says that does it
 * @param options `danger`: it cannot be undone
 */
export function confirm(question: string, yes: string, { danger = true }: { danger?: boolean } = {}): Promise<boolean> {
  const dialog = byId("confirm", HTMLDialogElement)
  // Two questions in one dialog would get one answer.
  if (dialog.open) return Promise.resolve(false)
  return new Promise((resolve) => {
    const cancel = button(t("common.cancel"), {}, () => dialog.close())
    const go = button(yes, { class: `button ${danger ? "button-danger" : "button-strong"}` }, () => dialog.close("yes"))
    dialog.replaceChildren(
      el("p", { id: "confirm-text", text: question }),
      el("div", { class: "actions" }, cancel, go),
    )
    dialog.returnValue = ""
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true })
    dialog.showModal()
    cancel.focus()
  })
}
