/** Announcements: to a screen reader, and if useful for a short time on the screen. */

import { button, byId, el } from "./dom.ts"

/** How long a passing sentence stays on the screen, in ms. */
const SHOWN = 6_000
/** The same, for a sentence with an action, in ms. */
const SHOWN_WITH_ACTION = 10_000
/** How many passing sentences are on the screen at once. */
const SHOWN_MAX = 3
/** How long a sentence has the region for itself before the next one replaces it, in ms. */
const HELD = 900
/** How many sentences wait for the region. Beyond that the oldest is dropped: it is out of date. */
const WAITING_MAX = 6

const waiting: string[] = []
let timer = 0

/** Says it to a screen reader, politely, after the sentences before it. */
export function announce(sentence: string) {
  if (sentence === "" || waiting.at(-1) === sentence) return
  waiting.push(sentence)
  if (WAITING_MAX < waiting.length) waiting.shift()
  if (timer === 0) say()
}

function say() {
  const region = byId("announcer")
  const sentence = waiting.shift()
  timer = 0
  if (sentence === undefined) return
  // The same sentence twice is said twice only if the region changes in between.
  region.textContent = ""
  window.setTimeout(() => (region.textContent = sentence), 30)
  timer = window.setTimeout(say, HELD)
}

/**
 * Shows it for a while; what is shown there is said, too. An action, such as undo, ends with the toast.
 * A later sentence stands below an earlier one and does not replace it.
 *
 * @returns hides it
 */
export function showToast(sentence: string, action?: { text: string, act: () => void }): () => void {
  const region = byId("toast")
  // The region says each sentence as it comes, and not all of them again.
  region.ariaAtomic = "false"
  for (const shown of region.children) if (shown.firstChild?.textContent === sentence) shown.remove()
  makeRoom(region)
  const toast = el("p", {}, el("span", { text: sentence }))
  if (action) {
    /** The element that had the focus before the toast. */
    let before: EventTarget | null = null
    toast.addEventListener("focusin", ({ relatedTarget }) => (before = relatedTarget ?? before))
    const press = () => {
      const hadFocus = toast.contains(document.activeElement)
      toast.remove()
      if (hadFocus && before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true })
      action.act()
    }
    const act = button(action.text, { class: "button" }, press)
    // A description: with the sentence in its name, the region says it twice.
    act.ariaDescription = sentence
    toast.append(act)
  }
  region.append(toast)
  hideLater(toast, action ? SHOWN_WITH_ACTION : SHOWN)
  return () => toast.remove()
}

/** Removes the oldest toast without a button, or else the oldest: with a button the user would lose an undo. */
function makeRoom(region: HTMLElement) {
  while (SHOWN_MAX <= region.childElementCount) {
    const plain = [...region.children].find((shown) => shown.querySelector("button") === null)
    const oldest = plain ?? region.firstElementChild
    oldest?.remove()
  }
}

/** Removes a toast later, but not while it has the pointer or the focus: a press would miss its button. @param after in ms */
function hideLater(toast: HTMLElement, after: number) {
  window.setTimeout(() => {
    if (toast.matches(":hover, :focus-within")) hideLater(toast, 1_000)
    else toast.remove()
  }, after)
}
