/**
 * Shows that something on the page failed: without a sentence a press that throws looks like one without effect.
 *
 * The browser logs the cause. A loop of a ResizeObserver has no error, and that of an extension comes from another origin.
 */

import { showToast } from "./announce.ts"
import { t, type Sentence } from "./i18n.ts"

/** @param wayOut of this page */
export function showFailures(wayOut: () => ReturnType<typeof reloading> = () => reloading(), signal?: AbortSignal) {
  const failed = (error: unknown) => {
    if (!isOurs(error) || document.querySelector("#toast [data-failure]")) return
    const { sentence, action } = wayOut()
    showToast(sentence, action)
    document.querySelector("#toast > :last-child")?.toggleAttribute("data-failure", true)
  }
  window.addEventListener("error", ({ error }) => failed(error), { signal })
  window.addEventListener("unhandledrejection", ({ reason }) => failed(reason), { signal })
}

export const reloading = (sentence: Sentence = "state.failed") =>
  ({ sentence: t(sentence), action: { text: t("state.lost.reload"), act: () => location.reload() } })

/** Whether the error was thrown by a script of this page: that stands first in its stack. */
function isOurs(error: unknown) {
  const stack = error instanceof Error || error instanceof DOMException ? (error.stack ?? "") : ""
  return /[\w-]+:\/\/[^\s)]+/.exec(stack)?.[0].startsWith(`${location.origin}/`) ?? false
}
