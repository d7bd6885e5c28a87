/**
 * The time line: versions by day, newest first, one of them chosen.
 *
 * A list box: the arrows, Home and End move and choose, Enter goes into what is shown beside it.
 * Drawn anew it keeps what is chosen, and the focus where it was.
 */

import type { Version } from "../lib/api.ts"
import { button, el } from "../lib/dom.ts"
import { authorName, clock, i18n, number, t } from "../lib/i18n.ts"
import { now } from "../lib/server_clock.ts"

/** How long one must stay on a version before it is compared, in ms: arrows may be held down. */
const CHOOSE_DELAY = 120

export class Timeline {
  declare actions: { choose: (version: Version) => void, into: () => void, more: () => Promise<void> }
  declare list
  declare moreButton
  declare element
  chosen: string | null = null
  #versions: readonly Version[] = []
  #timer = 0

  constructor(actions: { choose: (version: Version) => void, into: () => void, more: () => Promise<void> }) {
    this.actions = actions
    this.list = el("div", { role: "listbox", class: "history-list" })
    this.moreButton = button("", { class: "button button-quiet history-more" }, () => this.#more())
    this.element = el("div", { class: "history-line" }, this.list, this.moreButton)
    this.list.addEventListener("keydown", (event) => this.#key(event))
    this.list.addEventListener("click", (event) => {
      const option = event.target instanceof Element ? event.target.closest("[role=option]") : null
      if (option instanceof HTMLElement) this.choose(option.dataset.id ?? "", { focus: true })
    })
  }

  focus() {
    this.#option(this.chosen)?.focus()
  }

  /** Nothing is chosen any more: the newest is, when there are versions again. */
  clear() {
    window.clearTimeout(this.#timer)
    this.chosen = null
    this.#versions = []
  }

  /** @param options `wait`: another may follow at once */
  choose(id: string, { focus = false, wait = false }: { focus?: boolean, wait?: boolean } = {}) {
    const version = this.#versions.find((version) => version.id === id)
    if (!version) return
    this.chosen = id
    this.#mark()
    const option = this.#option(id)
    if (focus) option?.focus()
    option?.scrollIntoView({ block: "nearest" })
    window.clearTimeout(this.#timer)
    if (wait) this.#timer = window.setTimeout(() => this.actions.choose(version), CHOOSE_DELAY)
    else this.actions.choose(version)
  }

  /** @param versions newest first */
  draw(versions: readonly Version[], { more }: { more: boolean }) {
    const hadFocus = this.list.contains(document.activeElement)
    const top = this.element.scrollTop
    const isNew = !versions.some(({ id }) => id === this.chosen)
    this.#versions = versions
    this.list.setAttribute("aria-label", t("history.versions"))
    this.list.replaceChildren(...this.#days(versions))
    this.moreButton.hidden = !more
    this.moreButton.firstElementChild?.replaceChildren(t("history.more"))
    this.element.scrollTop = top
    const newest = versions[0]
    if (isNew && newest) this.choose(newest.id)
    else this.#mark()
    if (hadFocus) this.focus()
  }

  #days(versions: readonly Version[]) {
    const days: HTMLElement[] = []
    let last = ""
    for (const version of versions) {
      const date = new Date(version.created_at)
      if (date.toDateString() !== last) {
        last = date.toDateString()
        const id = `history-day-${date.getFullYear()}-${date.getMonth()}-${date.getDate()}`
        const heading = el("div", { id, class: "history-day", role: "presentation", text: dayOf(date) })
        days.push(el("div", { role: "group", "aria-labelledby": id }, heading))
      }
      days.at(-1)?.append(this.#entry(version, date))
    }
    return days
  }

  #entry(version: Version, date: Date) {
    const { id, kind, characters, authors } = version
    const who = authors.map(authorName).join(", ")
    const size = t("start.characters", { count: number(characters) })
    return el(
      "div",
      { role: "option", class: "version", tabindex: "-1", "aria-selected": "false", "data-id": id, "data-kind": kind },
      el("time", { datetime: version.created_at, text: clock(date) }),
      el("span", { class: "version-name", text: nameOf(version) }),
      el("span", { class: "version-more quiet", text: who === "" ? size : `${who} · ${size}` }),
    )
  }

  #mark() {
    for (const option of this.list.querySelectorAll("[role=option]")) {
      const isChosen = option instanceof HTMLElement && option.dataset.id === this.chosen
      option.setAttribute("aria-selected", String(isChosen))
      option.setAttribute("tabindex", isChosen ? "0" : "-1")
    }
  }

  #option(id: string | null): HTMLElement | null {
    return this.list.querySelector(`[data-id="${CSS.escape(id ?? "")}"]`)
  }

  #key(event: KeyboardEvent) {
    if (event.altKey || event.ctrlKey || event.metaKey) return
    const at = this.#versions.findIndex(({ id }) => id === this.chosen)
    const last = this.#versions.length - 1
    const to = { ArrowDown: Math.min(at + 1, last), ArrowUp: Math.max(at - 1, 0), Home: 0, End: last }[event.key]
    if (to !== undefined) {
      event.preventDefault()
      const version = this.#versions[to]
      if (version) this.choose(version.id, { focus: true, wait: true })
    } else if (event.key === "Enter" || event.key === "ArrowRight") {
      event.preventDefault()
      this.actions.into()
    }
  }

  async #more() {
    const last = this.#versions.at(-1)
    await this.actions.more()
    // The button may be gone: the focus goes on where the list does.
    const next = this.#versions[this.#versions.findIndex(({ id }) => id === last?.id) + 1]
    if (next) this.#option(next.id)?.focus()
  }
}

/** The name of a version: its label, or the reason why the server stored it. */
export function nameOf({ kind, label, restored_from: from, number: own }: Version) {
  if (kind === "named") return label ?? t("history.number", { number: own })
  return kind === "restore" ? t("history.kind.restore", { number: from ?? "?" }) : t(`history.kind.${kind}`)
}

function dayOf(date: Date) {
  const today = new Date(now())
  if (date.toDateString() === today.toDateString()) return t("history.today")
  today.setDate(today.getDate() - 1)
  if (date.toDateString() === today.toDateString()) return t("history.yesterday")
  const year = date.getFullYear() === new Date(now()).getFullYear() ? {} : { year: "numeric" as const }
  return new Intl.DateTimeFormat(i18n.language, { ...year, month: "long", day: "numeric", weekday: "short" }).format(date)
}
