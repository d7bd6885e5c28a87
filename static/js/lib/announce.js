// @ts-check
/** Announcements: to a screen reader, and if useful for a short time on the screen. */

import { button, byId, el } from "./dom.js"

/** How long a passing sentence stays on the screen, in ms. */
const SHOWN = 6_000
/** The same, for a sentence with an action, in ms. */
const SHOWN_WITH_ACTION = 10_000

let timer = 0

/** Says it to a screen reader, politely. @param {string} sentence */
export function announce(sentence) {
  const region = byId("announcer")
  // The same sentence twice is said twice only if the region changes in between.
  region.textContent = ""
  window.setTimeout(() => (region.textContent = sentence), 30)
}

/**
 * Shows it for a while; what is shown there is said, too. An action, such as undo, ends with the toast.
 *
 * @param {string} sentence
 * @param {{ text: string, act: () => void }} [action]
 */
export function showToast(sentence, action) {
  const toast = byId("toast")
  const hide = () => toast.replaceChildren()
  const press = action && button(action.text, { class: "button" }, () => {
    hide()
    action.act()
  })
  toast.replaceChildren(el("p", { text: sentence }, ...(press ? [press] : [])))
  window.clearTimeout(timer)
  timer = window.setTimeout(hide, action ? SHOWN_WITH_ACTION : SHOWN)
}
