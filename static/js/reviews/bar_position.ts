/** Where a small bar beside the text stands: below its subject, inside the window and the paper, under no bar of the page. */

import { byId } from "../lib/dom.ts"

/** Its distance from its subject and from the bars, in px. */
const GAP = 6

/**
 * Puts a bar below its subject, or at the edge of the window that the subject reaches beyond.
 *
 * @param bar of the desk, which is not hidden
 * @param subject in the window
 * @returns whether it is shown: a subject outside the window has none
 */
export function moveBelow(bar: HTMLElement, { top, bottom, left }: { top: number, bottom: number, left: number }): boolean {
  const desk = byId("desk").getBoundingClientRect()
  const topMin = Math.max(0, byId("bar").getBoundingClientRect().bottom) + GAP
  bar.hidden = bottom < topMin || window.innerHeight < top
  if (bar.hidden) return false
  const foot = byId("text-counts-bar").getBoundingClientRect().top
  const topMax = Math.min(window.innerHeight, foot) - bar.offsetHeight - GAP
  bar.style.top = `${Math.round(Math.max(topMin, Math.min(bottom + GAP, topMax)) - desk.top)}px`
  const leftMax = byId("paper").getBoundingClientRect().right - desk.left - bar.offsetWidth - 12
  bar.style.left = `${Math.round(Math.max(12, Math.min(left - desk.left - 40, leftMax)))}px`
  return true
}
