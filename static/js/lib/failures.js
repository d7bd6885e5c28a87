// @ts-check
/**
 * Shows that something on the page failed: without a sentence a press that throws looks like one without effect.
 *
 * The browser logs the cause. A loop of a ResizeObserver has no error, and that of an extension comes from another origin.
 */

import { showToast } from "./announce.js"
import { t } from "./i18n.js"

/**
 * @param {() => ReturnType<typeof reloading>} [wayOut] of this page
 * @param {AbortSignal} [signal]
 */
export function showFailures(wayOut = () => reloading(), signal) {
  const failed = (/** @type {unknown} */ error) => {
    if (!isOurs(error) || document.querySelector("#toast [data-failure]")) return
    const { sentence, action } = wayOut()
    showToast(sentence, action)
    document.querySelector("#toast > :last-child")?.toggleAttribute("data-failure", true)
  }
  window.addEventListener("error", ({ error }) => failed(error), { signal })
  window.addEventListener("unhandledrejection", ({ reason }) => failed(reason), { signal })
}

/** @param {import("./i18n.js").Sentence} [sentence] */
export const reloading = (sentence = "state.failed") => ({ sentence: t(sentence), action: { text: t("state.lost.reload"), act: () => location.reload() } })

/** Whether the error was thrown by a script of this page: that stands first in its stack. @param {unknown} error */
function isOurs(error) {
  const stack = error instanceof Error || error instanceof DOMException ? (error.stack ?? "") : ""
  return /[\w-]+:\/\/[^\s)]+/.exec(stack)?.[0].startsWith(`${location.origin}/`) ?? false
}
