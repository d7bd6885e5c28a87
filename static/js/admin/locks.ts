/** Held locks by class, with alarms: a table of classes, each of which opens to its locks. */

import { heldLocks, type LockAlarm, type LockClass, type LockList } from "../lib/api.ts"
import { button, byId, el, icon, write } from "../lib/dom.ts"
import { errorText } from "../lib/error_text.ts"
import { clock, i18n, length, number, t } from "../lib/i18n.ts"

/** How many locks of a class are shown. */
const SHOWN = 100
const HEADS = [
  "admin.locks.class",
  "admin.locks.held",
  "admin.locks.waiting",
  "admin.locks.oldest",
] as const
const LOCK_HEADS = [
  "admin.locks.name",
  "admin.user",
  "admin.node",
  "admin.locks.age",
  "admin.locks.ttl",
  "admin.locks.waiting",
] as const

/** A class as one would call it. */
const classLabel = (name: string) => (name === "seat" ? t("admin.locks.seat") : name)

const duration = (ms: number | null) => (ms === null ? "–" : length(ms))

/** The alarm and its remedy, in the reader's language. */
export function alarmSentence({ class: name, alarm, measured, since }: LockAlarm) {
  const share = new Intl.NumberFormat(i18n.language, { style: "percent", maximumFractionDigits: 1 })
  const seconds = new Intl.NumberFormat(i18n.language, { maximumFractionDigits: 1 })
  const measuredText = alarm === "failures" ? share.format(measured) : t("admin.seconds", { count: seconds.format(measured) })
  const begun = t("admin.alarm.since", { time: clock(new Date(since)) })
  return `${t(`admin.alarm.${alarm}`, { name: classLabel(name), measured: measuredText })} (${begun})`
}

/** One class: its row, and the row below it while it is open. */
class ClassRows {
  declare name: string
  declare rows
  #cells = HEADS.map((_, at) => (at === 0 ? el("th", { scope: "row" }) : el("td", { class: "number" })))
  #open = button(t("admin.locks.show"), { class: "button button-quiet" }, () => this.#toggle())
  #inside = el("div", { class: "inside", role: "region", tabindex: "0" })
  #panel
  #token = ""

  constructor(name: string) {
    this.name = name
    const id = `class-${encodeURIComponent(name)}`
    this.#open.setAttribute("aria-expanded", "false")
    this.#open.setAttribute("aria-controls", id)
    this.#panel = el("tr", { id, class: "panel", hidden: true }, el("td", { colspan: String(HEADS.length + 1) }, this.#inside))
    this.rows = [el("tr", {}, ...this.#cells, el("td", { class: "does" }, this.#open)), this.#panel]
  }

  draw(found: LockClass, token: string) {
    this.#token = token
    const texts = [classLabel(found.class), number(found.held), number(found.waiting), duration(found.oldest_age_ms)]
    for (const [at, cell] of this.#cells.entries()) write(cell, texts[at] ?? "")
    this.#inside.setAttribute("aria-label", classLabel(found.class))
    this.#open.setAttribute("aria-label", t("admin.locks.show.all", { name: classLabel(found.class) }))
    write(this.#open.firstElementChild ?? this.#open, t("admin.locks.show"))
    if (!this.#panel.hidden) this.#read(found.held)
  }

  #toggle() {
    this.#panel.hidden = !this.#panel.hidden
    this.#open.setAttribute("aria-expanded", String(!this.#panel.hidden))
    if (!this.#panel.hidden) this.#read(Infinity)
  }

  /** @param all how many there are */
  async #read(all: number) {
    try {
      const { locks, classes } = await heldLocks(this.#token, { of: this.name, limit: SHOWN })
      const held = classes[0]?.held ?? Math.min(all, locks.length)
      const heads = LOCK_HEADS.map((name) => el("th", { scope: "col", text: t(name) }))
      const lines = locks.map((lock) => {
        const ttl = lock.ttl_ms === null ? "–" : t("admin.seconds", { count: (lock.ttl_ms / 1000).toFixed(1) })
        const rest = [lock.user?.name ?? "–", lock.node ?? "–", duration(lock.age_ms), ttl, number(lock.waiting)]
        const cells = rest.map((text, at) => el("td", { text, ...(at === 1 ? { class: "id", title: text } : {}) }))
        return el("tr", {}, el("th", { scope: "row", class: "id", title: lock.name, text: lock.name }), ...cells)
      })
      const caption = el("caption", { class: "hidden", text: t("admin.locks.show.all", { name: classLabel(this.name) }) })
      const table = el("table", {}, caption, el("thead", {}, el("tr", {}, ...heads)), el("tbody", {}, ...lines))
      const more = t("admin.locks.more", { count: number(locks.length), all: number(held) })
      this.#inside.replaceChildren(table, ...(locks.length < held ? [el("p", { class: "quiet", text: more })] : []))
    } catch (error) {
      this.#inside.replaceChildren(el("p", { text: errorText(error) }))
    }
  }
}

export class Locks {
  #classes: Map<string, ClassRows> = new Map()
  #list: LockList | null = null
  #token = ""

  show(list: LockList, token: string) {
    this.#list = list
    this.#token = token
    this.draw()
  }

  /** Draws all anew, in another language perhaps. */
  redraw() {
    const heads = HEADS.map((name, at) => el("th", { scope: "col", class: at === 0 ? "" : "number", text: t(name) }))
    const end = el("th", { scope: "col" }, el("span", { class: "hidden", text: t("admin.what") }))
    byId("class-columns").replaceChildren(...heads, end)
    this.draw()
  }

  draw() {
    if (this.#list === null) return
    const { classes, alarms } = this.#list
    const names = classes.map((found) => found.class)
    const isSame = names.join("\n") === [...this.#classes.keys()].join("\n")
    if (!isSame) this.#classes = new Map(names.map((name) => [name, this.#classes.get(name) ?? new ClassRows(name)]))
    for (const found of classes) this.#classes.get(found.class)?.draw(found, this.#token)
    if (!isSame) {
      const focused = document.activeElement
      byId("classes").replaceChildren(...[...this.#classes.values()].flatMap(({ rows }) => rows))
      // A row that is moved loses the focus.
      if (focused instanceof HTMLElement && byId("classes").contains(focused)) focused.focus()
    }
    byId("no-locks").hidden = classes.length !== 0
    const sentences = alarms.map(alarmSentence)
    const list = byId("alarms")
    // A screen reader speaks each change of this list.
    if ([...list.children].map((line) => line.textContent).join("\n") !== sentences.join("\n")) {
      list.replaceChildren(...sentences.map((text) => el("li", {}, icon("alert"), el("span", { text }))))
    }
  }
}
