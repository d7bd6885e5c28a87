// @ts-check
/** Announcements: to a screen reader, and if useful for a short time on the screen. */

import { byId, el } from "./dom.js"

/** How long a passing sentence stays on the screen, in ms. */
const SHOWN = 6_000

let timer = 0

/** Says it to a screen reader, politely. @param {string} sentence */
export function announce(sentence) {
  const region = byId("announcer")
  // The same sentence twice is said twice only if the region changes in between.
  region.textContent = ""
  window.setTimeout(() => (region.textContent = sentence), 30)
}

/** Shows it for a while; what is shown there is said, too. @param {string} sentence */
export function showToast(sentence) {
  const toast = byId("toast")
  toast.replaceChildren(el("p", { text: sentence }))
  window.clearTimeout(timer)
  timer = window.setTimeout(() => toast.replaceChildren(), SHOWN)
}
