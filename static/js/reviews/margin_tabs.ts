/**
 * The tabs in the head of the margin: open, done and lost reviews, each with its count.
 *
 * A tab without reviews is hidden, except the first. Arrow keys move between tabs, as the pattern
 * "Tabs" of the ARIA Authoring Practices has it.
 *
 * Fires `change` when another tab is shown.
 */

import { byId, el } from "../lib/dom.ts"
import { number, t, tCount } from "../lib/i18n.ts"

type Tab = "open" | "done" | "lost"

const TABS = ["open", "done", "lost"] as const

/** Does what may hide the menu beside the tabs: it closes, or the next press on it would, and a tab takes its focus. */
export function changeMenu(change: () => void) {
  const menu = byId("margin-more", HTMLDetailsElement)
  const hadFocus = menu.contains(document.activeElement)
  change()
  if (menu.checkVisibility()) return
  menu.open = false
  if (hadFocus) byId("tab-open").focus({ preventScroll: true })
}

export class MarginTabs extends EventTarget {
  shown: Tab = "open"

  start(signal: AbortSignal) {
    for (const tab of TABS) {
      const button = byId(`tab-${tab}`)
      button.addEventListener("click", () => this.show(tab), { signal })
      button.addEventListener("keydown", (event) => this.#press(event), { signal })
    }
    this.#draw()
  }

  show(tab: Tab) {
    if (tab === this.shown) return
    this.shown = tab
    this.#draw()
    this.dispatchEvent(new Event("change"))
  }

  draw(counts: Record<Tab, number>, unread: Record<Tab, number>) {
    for (const tab of TABS) {
      const button = byId(`tab-${tab}`)
      const sentence = tCount(`review.tab.${tab}`, counts[tab])
      const mark = t("unread.count", { count: number(unread[tab]) })
      const words = unread[tab] === 0 ? sentence : `${sentence}, ${mark}`
      if (button.dataset.words !== words) {
        button.dataset.words = words
        const dot = el("span", { class: "unread" }, el("span", { class: "hidden", text: ` (${mark})` }))
        const short = el("span", { "aria-hidden": "true", text: `${t(`review.tab.short.${tab}`)} ${number(counts[tab])}` })
        button.replaceChildren(short, el("span", { class: "hidden", text: sentence }), ...(unread[tab] === 0 ? [] : [dot]))
      }
      button.hidden = tab !== "open" && counts[tab] === 0
    }
    if (this.shown !== "open" && counts[this.shown] === 0) this.show("open")
  }

  #draw() {
    for (const tab of TABS) {
      const button = byId(`tab-${tab}`)
      const isShown = tab === this.shown
      button.setAttribute("aria-selected", String(isShown))
      button.tabIndex = isShown ? 0 : -1
      byId(`panel-${tab}`).hidden = !isShown
    }
  }

  #press(event: KeyboardEvent) {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0
    if (step === 0 || event.altKey || event.ctrlKey || event.metaKey) return
    const visible = TABS.filter((tab) => !byId(`tab-${tab}`).hidden)
    const next = visible[(visible.indexOf(this.shown) + step + visible.length) % visible.length]
    if (!next) return
    event.preventDefault()
    this.show(next)
    byId(`tab-${next}`).focus()
  }
}
