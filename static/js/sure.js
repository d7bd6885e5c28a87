// @ts-check
/** One question before something that cannot be undone. */

import { button, byId, el } from "./dom.js"
import { t } from "./words.js"

/**
 * @param {string} question
 * @param {string} yes what the dangerous button says
 * @returns {Promise<boolean>}
 */
export function sure(question, yes) {
  const dialog = byId("sure", HTMLDialogElement)
  return new Promise((resolve) => {
    const cancel = button(t("common.cancel"), {}, () => dialog.close())
    const go = button(yes, { class: "button button-danger" }, () => dialog.close("yes"))
    dialog.replaceChildren(
      el("p", { id: "sure-text", text: question }),
      el("div", { class: "actions" }, cancel, go),
    )
    dialog.returnValue = ""
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true })
    dialog.showModal()
    cancel.focus()
  })
}
