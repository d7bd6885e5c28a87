// @ts-check
/**
 * The strip below the bar: what has happened, whether the work is safe, what to do. One at a time,
 * the gravest first, and nothing when all is well. Owns one element.
 */

import { button, byId, copy, el, icon } from "./dom.js"
import { clock, number, t, tCount, when, words } from "./words.js"

/**
 * @typedef {import("./store.js").Desk} Desk
 * @typedef {{ sentences: string[], deletions: number }} Lost
 * @typedef {{ key: string, parts: () => Node[] }} Notice
 *
 * @typedef {object} Ways out of it
 * @property {() => void} again
 * @property {() => void} takeOver
 * @property {() => Lost} lost
 * @property {() => void} copied
 * @property {() => void} keep the seat, although nothing was done for long
 * @property {() => void} text puts the focus into the text
 */

/** Reasons after which the same page can ask for its seat again. */
const RETURNABLE = ["taken_over", "expired", "evicted", "idle"]

export class Notices {
  #stopped = new AbortController()
  #key = ""

  /** @param {import("./store.js").Store} store @param {Ways} ways */
  constructor(store, ways) {
    this.store = store
    this.ways = ways
    this.element = byId("notice")
    this.count = el("span", { class: "notice-count" })
    this.idle = el("p", { role: "timer", "aria-live": "off" })
    this.timer = 0
  }

  start() {
    this.timer = window.setInterval(() => this.#tick(), 500)
    const { signal } = this.#stopped
    this.store.addEventListener("change", () => this.#draw(), { signal })
    words.addEventListener("change", () => this.#draw(), { signal })
    this.#draw()
  }

  stop() {
    this.#stopped.abort()
    window.clearInterval(this.timer)
  }

  #tick() {
    const { idleUntil } = this.store.state
    if (idleUntil === null) return
    const seconds = Math.max(Math.round((idleUntil - Date.now()) / 1_000), 0)
    const left = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`
    this.idle.textContent = t("state.idle", { left })
  }

  #draw() {
    const { state } = this.store
    this.#counted(state)
    const notice = this.#notice(state)
    const key = notice ? `${notice.key} ${words.language}` : ""
    if (key === this.#key) return
    const held = this.element.contains(document.activeElement)
    this.#key = key
    this.element.hidden = !notice
    this.element.dataset.grave = String(/^(lost|not-saved)/.test(key))
    this.element.replaceChildren(...(notice ? [icon("alert"), el("div", {}, ...notice.parts())] : []))
    if (held && !this.element.contains(document.activeElement)) this.ways.text()
  }

  /** The number changes with each keystroke: it must not be a new notice each time. @param {Desk} state */
  #counted({ saving }) {
    this.count.textContent = 0 < saving.count ? ` ${tCount("state.offline.count", saving.count)}` : ""
  }

  /** @param {Desk} state @returns {Notice | null} */
  #notice(state) {
    const { phase, saving, role } = state
    if (phase === "lost") return { key: `lost ${state.why}`, parts: () => this.#lost(state) }
    if (phase === "taken") return { key: `taken ${JSON.stringify(state.holder)}`, parts: () => this.#taken(state) }
    if (phase === "seated" && state.idleUntil !== null) return { key: "idle", parts: () => this.#idle() }
    if (phase === "uncertain") return said("uncertain", t("state.uncertain"))
    if (phase === "offline" && state.draining) return said("draining", t("state.draining"), this.count)
    if (phase === "offline") {
      const sentence = t(role === "writer" ? "state.offline" : "state.offline.reader")
      return said("offline", sentence, this.count)
    }
    if (phase === "seated" && (saving.refusing || saving.slow) && saving.since) {
      const time = clock(saving.since)
      const why = saving.refusing ? "state.not-saved" : "state.unanswered"
      return said(`not-saved ${why} ${time}`, t(why, { time }), this.count)
    }
    return null
  }

  /** @returns {Node[]} */
  #idle() {
    this.#tick()
    const keep = button(t("state.idle.keep"), { class: "button button-strong" }, () => this.ways.keep())
    return [this.idle, el("div", { class: "actions" }, keep)]
  }

  /** @param {Desk} state @returns {Node[]} */
  #taken({ holder, wasSeated }) {
    if (holder?.own) {
      const go = button(t("state.taken.own.go"), { class: "button button-strong" }, () => this.ways.takeOver())
      return [el("p", { text: t("state.taken.own") }), ...this.#unsaved(go, wasSeated)]
    }
    const time = holder?.since ? when(holder.since) : "–"
    const sentence = t("state.taken", { name: holder?.name ?? "", time })
    const go = button(t("common.retry"), {}, () => this.ways.again())
    return [el("p", { text: sentence }), ...this.#unsaved(go, wasSeated)]
  }

  /** @param {Desk} state @returns {Node[]} */
  #lost({ why }) {
    const name = /** @type {import("./words.js").Sentence} */ (`state.lost.${why}`)
    const returns = RETURNABLE.includes(why)
    const go = returns
      ? button(t(why === "taken_over" ? "state.taken.own.go" : "state.lost.again"), { class: "button button-strong" }, () =>
          why === "taken_over" ? this.ways.takeOver() : this.ways.again(),
        )
      : button(t("state.lost.reload"), {}, () => location.reload())
    return [el("p", { text: t(name) }), ...this.#unsaved(go, true)]
  }

  /**
   * What was not saved, to be copied, or that everything was; and the way on.
   *
   * @param {HTMLButtonElement} go
   * @param {boolean} hadText whether there was anything to lose
   * @returns {Node[]}
   */
  #unsaved(go, hadText) {
    const { sentences, deletions } = this.ways.lost()
    if (sentences.length === 0) {
      const safe = deletions === 0 ? t("state.lost.safe") : t("state.lost.removed", { count: number(deletions) })
      const parts = hadText && this.store.state.role === "writer" ? [el("p", { text: safe })] : []
      return [...parts, el("div", { class: "actions" }, go)]
    }
    const list = el("ul", { class: "unsaved" }, ...sentences.map((text) => el("li", { text })))
    const press = button(t("common.copy"), {}, async () => {
      const done = await copy(sentences.join("\n"))
      if (!done) return window.getSelection()?.selectAllChildren(list)
      press.lastElementChild?.replaceChildren(t("common.copied"))
      this.ways.copied()
    })
    const said = el("p", { text: tCount("state.lost.unsaved", sentences.length) })
    return [said, list, el("div", { class: "actions" }, press, go)]
  }
}

/** @param {string} key @param {string} sentence @param {...Node} more @returns {Notice} */
function said(key, sentence, ...more) {
  return { key, parts: () => [el("p", { text: sentence }, ...more)] }
}
