// @ts-check
/**
 * The strip below the bar: what has happened, whether the work is safe, what to do. One at a time,
 * the gravest first, and nothing when all is well. Owns one element.
 */

import { announce } from "../lib/announce.js"
import { button, byId, el, icon } from "../lib/dom.js"
import { clock, number, t, tCount, words } from "../lib/i18n.js"
import { takenSentence, waitedSentence, waitingSentence } from "../seat/wait_queue.js"
import { unsavedActions, unsavedList } from "../unsaved/unsaved_list.js"
import { percentOf } from "./document_size.js"

/**
 * @typedef {import("../store.js").Desk} Desk
 * @typedef {{ sentences: string[], deletions: number }} Lost
 * @typedef {{ key: string, parts: () => Node[] }} Notice
 *
 * @typedef {object} Ways out of it
 * @property {() => void} again
 * @property {() => void} takeOver
 * @property {() => void} wait enters the wait queue of the seat
 * @property {() => void} leave leaves the wait queue
 * @property {() => Lost} lost
 * @property {() => void} discard what was lost, for good
 * @property {() => void} now makes the next attempt to connect
 * @property {() => void} keep the seat, although nothing was done for long
 * @property {() => void} text puts the focus into the text
 * @property {() => Promise<boolean>} copyText all of the text; whether the browser let us
 * @property {() => void} saveText all of the text, as a file
 */

/** Reasons after which the same page can claim its seat again. */
const RETURNABLE = ["taken_over", "expired", "evicted", "idle"]
/** Reasons after which nothing that is here can go into this text by itself any more. */
const ENDED = ["revoked", "role", "reset", "malformed", "too-large"]

export class Banner {
  #stopped = new AbortController()
  #key = ""

  /** @param {import("../store.js").Store} store @param {Ways} ways */
  constructor(store, ways) {
    this.store = store
    this.ways = ways
    this.element = byId("notice")
    this.count = el("span", { class: "notice-count" })
    this.idle = el("p", { role: "timer", "aria-live": "off" })
    this.line = el("span")
    this.attempt = el("span", { class: "quiet", role: "timer", "aria-live": "off" })
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
    const { idleUntil, place, retryAt } = this.store.state
    change(this.attempt, attemptSentence(retryAt, Date.now()))
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
    this.element.dataset.grave = String(/^(lost|not-saved|full|damaged)/.test(key))
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

  /** Nor is each step in the wait queue announced: the user may be pressing its button. @param {Desk} state */
  #moved({ place, holder, role }) {
    if (place) change(this.line, waitingSentence(place, holder, role))
  }

  /** @param {Desk} state @returns {Notice | null} */
  #notice(state) {
    const { phase, saving } = state
    if (phase === "lost") return { key: `lost ${state.why}`, parts: () => this.#lost(state) }
    if (phase === "taken") {
      return { key: `taken ${JSON.stringify([state.holder, state.inVain])}`, parts: () => this.#taken(state) }
    }
    if (phase === "waiting") return { key: `waiting ${state.holder?.own}`, parts: () => this.#waiting(state) }
    if (phase === "seated" && state.idleUntil !== null) return { key: "idle", parts: () => this.#idle() }
    if (phase === "uncertain") return said("uncertain", t("state.uncertain"))
    if (phase === "offline" && state.quiet) return null
    if (phase === "offline") return this.#offline(state)
    if (phase === "seated" && state.damaged) return said("damaged", t("state.damaged"), this.count)
    if (phase === "seated" && state.size.state === "full" && saving.refusing === "no") {
      return { key: "full", parts: () => this.#full(state) }
    }
    if (phase === "seated" && (saving.refusing !== "no" || saving.slow) && saving.since) {
      const time = clock(saving.since)
      const why = lateSentence(saving)
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

  /** @param {Desk} state @returns {Notice} */
  #offline({ role, draining, wasSeated, saving: { kept } }) {
    if (!wasSeated) return this.#away("unreached", t("state.unreached"))
    if (draining) return this.#away("draining", t("state.draining"))
    if (role !== "writer") return this.#away("offline", t("state.offline.reader"))
    // The sentence may not claim an edit that the journal does not hold.
    if (kept === "yes") return this.#away("offline", t("state.offline"))
    return this.#away(`not-saved ${kept}`, t(kept === "full" ? "state.offline.full" : "state.offline.never"))
  }

  /** Without a connection: when it is tried again, and that one need not wait for it. @param {string} key @param {string} sentence @returns {Notice} */
  #away(key, sentence) {
    const parts = () => {
      this.#tick()
      const now = button(t("state.offline.now"), {}, () => this.ways.now())
      return [el("p", { text: sentence }, this.count), el("div", { class: "actions" }, now, this.attempt)]
    }
    return { key, parts }
  }

  /** @returns {Node[]} */
  #idle() {
    this.#tick()
    // A screen reader announces the countdown once, not each second.
    announce(this.idle.textContent ?? "")
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
    const name = /** @type {import("../lib/i18n.js").Sentence} */ (`state.lost.${why}`)
    const returns = RETURNABLE.includes(why)
    const sentence = el("p", { text: t(name) })
    if (why === "taken_over") return [sentence, ...this.#unsaved([this.#takeOver(), this.#wait("")], true)]
    const go = returns
      ? button(t("state.lost.again"), { class: "button button-strong" }, () => this.ways.again())
      : button(t("state.lost.reload"), {}, () => location.reload())
    return [sentence, ...this.#unsaved([go], true)]
  }

  /**
   * The unsaved text with its actions, or a sentence that all is saved; and the next step.
   *
   * @param {HTMLButtonElement[]} go
   * @param {boolean} hadText whether there was anything to lose
   * @returns {Node[]}
   */
  #unsaved(go, hadText) {
    const { sentences, deletions } = this.ways.lost()
    const { role, link, why } = this.store.state
    if (sentences.length + deletions === 0) {
      const parts = hadText && role === "writer" ? [el("p", { text: t("state.lost.safe") })] : []
      return [...parts, el("div", { class: "actions" }, ...go)]
    }
    const said = sentences.length === 0 ? t("state.lost.removed", { count: number(deletions) }) : tCount("state.lost.unsaved", sentences.length)
    const kept = el("p", { class: "quiet", text: t(ENDED.includes(why) ? "state.lost.kept.here" : "state.lost.kept") })
    kept.hidden = this.store.state.saving.kept !== "yes"
    const acts = unsavedActions(sentences, link?.title ?? "", () => this.ways.discard())
    return [el("p", { text: said }), unsavedList(sentences), kept, el("div", { class: "actions" }, ...go, ...acts)]
  }
}

/** Why it is not saved, and what to do. @param {import("../store.js").Saving} saving */
function lateSentence({ refusing, kept }) {
  if (refusing === "no") return "state.unanswered"
  if (refusing === "away") return "state.not-saved"
  if (refusing === "limit") return kept === "yes" ? "state.unsaved-full" : "state.unsaved-full.unkept"
  // The sentence may not claim an edit that the journal does not hold.
  return kept === "yes" ? "state.disk-full" : "state.disk-full.unkept"
}

/** When the next attempt to connect is made. @param {number | null} retryAt @param {number} now */
function attemptSentence(retryAt, now) {
  if (retryAt === null) return t("state.offline.trying")
  return t("state.offline.next", { seconds: number(Math.max(Math.ceil((retryAt - now) / 1_000), 1)) })
}

/** Whether a notice is about the wait queue. @param {string} key */
function isLine(key) {
  return /^(taken|waiting|lost taken_over)\b/.test(key)
}

/** Draws only a changed text, so a screen reader announces each text once. @param {HTMLElement} element @param {string} text */
function change(element, text) {
  if (element.textContent !== text) element.textContent = text
}

/** @param {string} key @param {string} sentence @param {...Node} more @returns {Notice} */
function said(key, sentence, ...more) {
  return { key, parts: () => [el("p", { text: sentence }, ...more)] }
}
