// @ts-check
/**
 * The strip below the bar: what has happened, whether the work is safe, what to do. One at a time,
 * the gravest first, and nothing when all is well. Owns one element.
 */

import { button, byId, copy, el, icon } from "./dom.js"
import { percentOf } from "./full.js"
import { takenSentence, waitedSentence, waitingSentence } from "./line.js"
import { say } from "./say.js"
import { clock, number, t, tCount, words } from "./words.js"

/**
 * @typedef {import("./store.js").Desk} Desk
 * @typedef {{ sentences: string[], deletions: number }} Lost
 * @typedef {{ key: string, parts: () => Node[] }} Notice
 *
 * @typedef {object} Ways out of it
 * @property {() => void} again
 * @property {() => void} takeOver
 * @property {() => void} wait stands in line for the seat
 * @property {() => void} leave leaves the line
 * @property {() => Lost} lost
 * @property {() => void} copied
 * @property {() => void} keep the seat, although nothing was done for long
 * @property {() => void} text puts the focus into the text
 * @property {() => Promise<boolean>} copyText all of the text; whether the browser let us
 * @property {() => void} saveText all of the text, as a file
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
    this.line = el("span")
    this.waited = el("p", { class: "waited quiet", role: "timer", "aria-live": "off" })
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
    const { idleUntil, place } = this.store.state
    if (place) change(this.waited, waitedSentence(place.since, Date.now()))
    if (idleUntil === null) return
    const seconds = Math.max(Math.round((idleUntil - Date.now()) / 1_000), 0)
    const left = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`
    this.idle.textContent = t("state.idle", { left })
  }

  #draw() {
    const { state } = this.store
    this.#counted(state)
    this.#moved(state)
    const notice = this.#notice(state)
    const key = notice ? `${notice.key} ${words.language}` : ""
    if (key === this.#key) return
    const held = this.element.contains(document.activeElement)
    const stays = isLine(this.#key) && isLine(key)
    this.#key = key
    this.element.hidden = !notice
    this.element.dataset.grave = String(/^(lost|not-saved|full)/.test(key))
    this.element.replaceChildren(...(notice ? [icon("alert"), el("div", {}, ...notice.parts())] : []))
    if (!held || this.element.contains(document.activeElement)) return
    // Into the line and out again the focus stays where the choice is; out of a notice it is in the text.
    const next = stays ? this.element.querySelector("button[data-line]") : null
    if (next instanceof HTMLButtonElement) next.focus()
    else this.ways.text()
  }

  /** The number changes with each keystroke: it must not be a new notice each time. @param {Desk} state */
  #counted({ saving }) {
    this.count.textContent = 0 < saving.count ? ` ${tCount("state.offline.count", saving.count)}` : ""
  }

  /** Nor is each step forward in the line: its button may be pressed just now. @param {Desk} state */
  #moved({ place, holder, role }) {
    if (place) change(this.line, waitingSentence(place, holder, role))
  }

  /** @param {Desk} state @returns {Notice | null} */
  #notice(state) {
    const { phase, saving, role } = state
    if (phase === "lost") return { key: `lost ${state.why}`, parts: () => this.#lost(state) }
    if (phase === "taken") {
      return { key: `taken ${JSON.stringify([state.holder, state.inVain])}`, parts: () => this.#taken(state) }
    }
    if (phase === "waiting") return { key: `waiting ${state.holder?.own}`, parts: () => this.#waiting(state) }
    if (phase === "seated" && state.idleUntil !== null) return { key: "idle", parts: () => this.#idle() }
    if (phase === "uncertain") return said("uncertain", t("state.uncertain"))
    if (phase === "offline" && state.draining) return said("draining", t("state.draining"), this.count)
    if (phase === "offline") {
      const sentence = t(role === "writer" ? "state.offline" : "state.offline.reader")
      return said("offline", sentence, this.count)
    }
    if (phase === "seated" && state.size.state === "full" && !saving.refusing) {
      return { key: "full", parts: () => this.#full(state) }
    }
    if (phase === "seated" && (saving.refusing || saving.slow) && saving.since) {
      const time = clock(saving.since)
      const why = saving.refusing ? "state.not-saved" : "state.unanswered"
      return said(`not-saved ${why} ${time}`, t(why, { time }), this.count)
    }
    if (phase === "seated" && state.size.state === "near") {
      return said("near", t("state.near", { percent: `${percentOf(state.size)}%` }))
    }
    return null
  }

  /** @param {Desk} state @returns {Node[]} */
  #full({ role }) {
    const sentence = el("p", { text: t(role === "writer" ? "state.full" : "state.full.reader") }, this.count)
    const press = button(t("state.full.copy"), {}, async () => {
      if (await this.ways.copyText()) press.lastElementChild?.replaceChildren(t("common.copied"))
    })
    const save = button(t("state.full.save"), {}, () => this.ways.saveText())
    return [sentence, el("div", { class: "actions" }, press, save)]
  }

  /** @returns {Node[]} */
  #idle() {
    this.#tick()
    // The time goes by without a word; that it does is said once.
    say(this.idle.textContent ?? "")
    const keep = button(t("state.idle.keep"), { class: "button button-strong" }, () => this.ways.keep())
    return [this.idle, el("div", { class: "actions" }, keep)]
  }

  /** @param {Desk} state @returns {Node[]} */
  #taken({ holder, role, wasSeated, inVain }) {
    const sentence = el("p", { class: "line-words", text: takenSentence(holder, role, { inVain }) })
    const go = holder?.own
      ? [this.#takeOver(), this.#wait("")]
      : [this.#wait("button-strong", inVain), button(t("common.retry"), {}, () => this.ways.again())]
    return [sentence, ...this.#unsaved(go, wasSeated)]
  }

  /** @param {Desk} state @returns {Node[]} */
  #waiting({ holder }) {
    this.#tick()
    const leave = button(t("state.waiting.leave"), {}, () => this.ways.leave())
    leave.dataset.line = "leave"
    const takeOver = holder?.own ? [this.#takeOver()] : []
    const actions = el("div", { class: "actions" }, ...takeOver, leave, this.waited)
    return [el("p", { class: "line-words" }, this.line, this.count), actions]
  }

  #takeOver() {
    return button(t("state.taken.own.go"), { class: "button button-strong" }, () => this.ways.takeOver())
  }

  /** @param {string} kind @param {boolean} [again] */
  #wait(kind, again = false) {
    const words = t(again ? "state.taken.vain.wait" : "state.taken.wait")
    const wait = button(words, { class: `button ${kind}` }, () => this.ways.wait())
    wait.dataset.line = "wait"
    return wait
  }

  /** @param {Desk} state @returns {Node[]} */
  #lost({ why }) {
    const name = /** @type {import("./words.js").Sentence} */ (`state.lost.${why}`)
    const returns = RETURNABLE.includes(why)
    const sentence = el("p", { text: t(name) })
    if (why === "taken_over") return [sentence, ...this.#unsaved([this.#takeOver(), this.#wait("")], true)]
    const go = returns
      ? button(t("state.lost.again"), { class: "button button-strong" }, () => this.ways.again())
      : button(t("state.lost.reload"), {}, () => location.reload())
    return [sentence, ...this.#unsaved([go], true)]
  }

  /**
   * What was not saved, to be copied, or that everything was; and the way on.
   *
   * @param {HTMLButtonElement[]} go
   * @param {boolean} hadText whether there was anything to lose
   * @returns {Node[]}
   */
  #unsaved(go, hadText) {
    const { sentences, deletions } = this.ways.lost()
    if (sentences.length === 0) {
      const safe = deletions === 0 ? t("state.lost.safe") : t("state.lost.removed", { count: number(deletions) })
      const parts = hadText && this.store.state.role === "writer" ? [el("p", { text: safe })] : []
      return [...parts, el("div", { class: "actions" }, ...go)]
    }
    const list = el("ul", { class: "unsaved" }, ...sentences.map((text) => el("li", { text })))
    const press = button(t("common.copy"), {}, async () => {
      const done = await copy(sentences.join("\n"))
      if (!done) return window.getSelection()?.selectAllChildren(list)
      press.lastElementChild?.replaceChildren(t("common.copied"))
      this.ways.copied()
    })
    const said = el("p", { text: tCount("state.lost.unsaved", sentences.length) })
    return [said, list, el("div", { class: "actions" }, press, ...go)]
  }
}

/** Whether a notice is about the line. @param {string} key */
function isLine(key) {
  return /^(taken|waiting|lost taken_over)\b/.test(key)
}

/** Only what is new is drawn, and so said. @param {HTMLElement} element @param {string} text */
function change(element, text) {
  if (element.textContent !== text) element.textContent = text
}

/** @param {string} key @param {string} sentence @param {...Node} more @returns {Notice} */
function said(key, sentence, ...more) {
  return { key, parts: () => [el("p", { text: sentence }, ...more)] }
}
