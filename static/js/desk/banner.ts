/**
 * The strip below the bar: what has happened, whether the work is safe, what to do. One at a time,
 * the gravest first, and nothing when all is well. Owns one element.
 */

import { announce } from "../lib/announce.ts"
import { deletedSentence, restoreButton } from "../lib/deleted_sentence.ts"
import { button, byId, drawWith, el, icon, write } from "../lib/dom.ts"
import { clock, i18n, number, t, tCount, type Sentence } from "../lib/i18n.ts"
import { now } from "../lib/server_clock.ts"
import { takenSentence, waitedSentence, waitingSentence } from "../seat/wait_queue.ts"
import type { Desk, Saving, Store } from "../store.ts"
import type { Refusal } from "../suggest/sync/refusals.ts"
import { unsavedActions, unsavedList, unsentParts } from "../unsaved/unsaved_list.ts"
import { percentOf } from "./document_size.ts"
import { RETURNABLE } from "./policy.ts"

type Lost = { sentences: string[], deletions: number }
type Notice = { key: string, parts: () => Node[] }

interface Actions {
  claim: () => void // the seat once more
  takeOver: () => void
  wait: () => void // enters the wait queue of the seat
  leaveQueue: () => void // leaves the wait queue
  lost: () => Lost
  discard: () => void // deletes the unsaved edits
  unsent: () => string[] // comments and replies that were written and not sent
  discardUnsent: () => void
  retryNow: () => void // makes the next attempt to connect
  stayActive: () => void // renews the idle timeout
  focusText: () => void // puts the focus into the text
  copyText: () => Promise<boolean> // all of the text; whether the browser let us
  saveText: () => void // all of the text, as a file
}

/** Reasons after which nothing that is here can go into this text by itself any more. */
const ENDED = ["revoked", "deleted", "replaced", "role", "reset", "malformed", "too-large"]

export class Banner {
  declare store: Store
  declare actions: Actions
  declare bar
  declare element
  declare count
  declare idle
  declare queueSentence
  declare attempt
  declare waitedFor
  declare timer: number
  #stopped = new AbortController()
  #key = ""
  /** The height of the bar with its notices, in px. */
  #height = 0

  constructor(store: Store, actions: Actions) {
    this.store = store
    this.actions = actions
    this.bar = byId("bar")
    this.element = byId("notice")
    this.count = el("span", { class: "notice-count" })
    this.idle = el("p", { role: "timer", "aria-live": "off" })
    this.queueSentence = el("span")
    this.attempt = el("span", { class: "quiet", role: "timer", "aria-live": "off" })
    this.waitedFor = el("p", { class: "waited quiet", role: "timer", "aria-live": "off" })
    this.timer = 0
  }

  start() {
    this.timer = window.setInterval(() => this.#tick(), 500)
    const { signal } = this.#stopped
    const sizes = new ResizeObserver(() => this.#resized())
    sizes.observe(this.bar)
    signal.addEventListener("abort", () => sizes.disconnect())
    drawWith([this.store], () => this.#draw(), signal)
  }

  stop() {
    this.#stopped.abort()
    window.clearInterval(this.timer)
  }

  /**
   * A notice covers a text in use instead of pushing it: the page scrolls by as much as the bar grew. At the
   * top of an unused page the notice pushes the text, and covers nothing.
   */
  #resized() {
    const by = this.bar.offsetHeight - this.#height
    this.#height += by
    const isInUse = 0 < window.scrollY || document.activeElement?.closest("#desk")
    if (isInUse && by !== 0) window.scrollBy({ top: by, behavior: "instant" })
  }

  #tick() {
    const { idleUntil, queuePosition, retryAt } = this.store.state
    write(this.attempt, attemptSentence(retryAt, performance.now()))
    if (queuePosition) write(this.waitedFor, waitedSentence(performance.now() - queuePosition.since, now()))
    if (idleUntil === null) return
    const seconds = Math.max(Math.round((idleUntil - now()) / 1_000), 0)
    const left = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`
    this.idle.textContent = t("state.idle", { left })
  }

  #draw() {
    const { state } = this.store
    this.#drawCount(state)
    this.#drawQueuePosition(state)
    const notice = this.#notice(state)
    const key = notice ? `${notice.key} ${i18n.language}` : ""
    if (key === this.#key) return
    const hadFocus = this.element.contains(document.activeElement)
    const staysInQueue = isQueueNotice(this.#key) && isQueueNotice(key)
    this.#key = key
    this.element.hidden = !notice
    this.element.dataset.grave = String(/^(lost|not-saved|full|damaged)/.test(key))
    this.element.replaceChildren(...(notice ? [icon("alert"), el("div", {}, ...notice.parts())] : []))
    if (!hadFocus || this.element.contains(document.activeElement)) return
    // Into the line and out again the focus stays where the choice is; out of a notice it is in the text.
    const next = staysInQueue ? this.element.querySelector("button[data-queue]") : null
    if (next instanceof HTMLButtonElement) next.focus()
    else this.actions.focusText()
  }

  /** The number changes with each keystroke: it must not be a new notice each time. */
  #drawCount({ saving, role }: Desk) {
    const { count, characters, since } = saving
    if (role === "reviewer") {
      const time = since ? clock(since) : ""
      return write(this.count, 0 < count ? ` ${tCount("suggesting.unsent", count, { time })}` : "")
    }
    const sentence = characters === 0 ? t("state.offline.deletions") : tCount("state.offline.count", characters)
    this.count.textContent = 0 < count ? ` ${sentence}` : ""
  }

  /** Nor is each step in the wait queue announced: the user may be pressing its button. */
  #drawQueuePosition({ queuePosition, holder, role }: Desk) {
    if (queuePosition) write(this.queueSentence, waitingSentence(queuePosition, holder, role))
  }

  #notice(state: Desk): Notice | null {
    const { phase, saving, role } = state
    if (phase === "lost" && (state.deletion || state.reason === "deleted")) {
      return { key: `lost deleted ${state.deletion?.at}`, parts: () => this.#deleted(state) }
    }
    if (phase === "lost") return { key: `lost ${state.reason}`, parts: () => this.#lost(state) }
    if (phase === "taken") {
      return { key: `taken ${JSON.stringify([state.holder, state.waitTimedOut])}`, parts: () => this.#taken(state) }
    }
    if (phase === "waiting") return { key: `waiting ${state.holder?.own}`, parts: () => this.#waiting(state) }
    if (phase === "seated" && state.idleUntil !== null) return { key: "idle", parts: () => this.#idle() }
    if (phase === "uncertain") return sentenceNotice("uncertain", t("state.uncertain"))
    if (phase === "offline" && state.quiet) return null
    if (phase === "offline") return this.#offline(state)
    if (phase === "seated" && state.damaged) return sentenceNotice("damaged", t("state.damaged"), this.count)
    if (phase === "seated" && state.size.state === "full" && saving.refusing === "no") {
      return { key: "full", parts: () => this.#full(state) }
    }
    if (role === "reviewer" && phase === "seated" && (saving.refusing !== "no" || saving.slow) && saving.since) {
      const why = saving.refusing === "no" ? "" : t(`suggesting.${saving.refusing as Refusal}`)
      return sentenceNotice(`not-saved suggestions ${saving.refusing}`, why, this.count)
    }
    if (phase === "seated" && (saving.refusing !== "no" || saving.slow) && saving.since) {
      const time = clock(saving.since)
      const why = lateSentence(saving)
      return sentenceNotice(`not-saved ${why} ${time}`, t(why, { time }), this.count)
    }
    if (phase === "seated" && state.silentSince !== null) {
      const time = clock(new Date(state.silentSince))
      return sentenceNotice(`silent ${time}`, t(role === "writer" ? "state.silent" : "state.silent.reader", { time }), this.count)
    }
    if (phase === "seated" && state.size.state === "near") {
      return sentenceNotice("near", t("state.near", { percent: `${percentOf(state.size)}%` }))
    }
    return null
  }

  #full({ role }: Desk): Node[] {
    const sentence = el("p", { text: t(role === "writer" ? "state.full" : "state.full.reader") }, this.count)
    return [sentence, el("div", { class: "actions" }, ...this.#textButtons())]
  }

  /** All of the text, to the clipboard or as a file. */
  #textButtons() {
    const press = button(t("state.full.copy"), {}, async () => {
      if (await this.actions.copyText()) press.lastElementChild?.replaceChildren(t("common.copied"))
    })
    return [press, button(t("state.full.save"), {}, () => this.actions.saveText())]
  }

  #offline({ role, draining, wasSeated, saving: { retained } }: Desk): Notice {
    if (!wasSeated) return this.#away("unreached", t("state.unreached"))
    if (draining) return this.#away("draining", t("state.draining"))
    if (role !== "writer") return this.#away("offline", t("state.offline.reader"))
    // The sentence may not claim an edit that the journal does not hold.
    if (retained === "yes") return this.#away("offline", t("state.offline"))
    return this.#away(`not-saved ${retained}`, t(retained === "full" ? "state.offline.full" : "state.offline.never"))
  }

  /** Without a connection: when it is tried again, and that one need not wait for it. */
  #away(key: string, sentence: string): Notice {
    const parts = () => {
      this.#tick()
      const now = button(t("state.offline.now"), {}, () => this.actions.retryNow())
      return [el("p", { text: sentence }, this.count), el("div", { class: "actions" }, now, this.attempt)]
    }
    return { key, parts }
  }

  #idle(): Node[] {
    this.#tick()
    // A screen reader announces the countdown once, not each second.
    announce(this.idle.textContent ?? "")
    const keep = button(t("state.idle.stay"), { class: "button button-strong" }, () => this.actions.stayActive())
    return [this.idle, el("div", { class: "actions" }, keep)]
  }

  #taken({ holder, role, wasSeated, waitTimedOut }: Desk): Node[] {
    const sentence = el("p", { class: "queue-sentence", text: takenSentence(holder, role, { timedOut: waitTimedOut }) })
    const next = holder?.own
      ? [this.#takeOver(), this.#wait("")]
      : [this.#wait("button-strong", waitTimedOut), button(t("common.retry"), {}, () => this.actions.claim())]
    return [sentence, ...this.#unsaved(next, wasSeated)]
  }

  #waiting({ holder }: Desk): Node[] {
    this.#tick()
    const leave = button(t("state.waiting.leave"), {}, () => this.actions.leaveQueue())
    leave.dataset.queue = "leave"
    const takeOver = holder?.own ? [this.#takeOver()] : []
    const actions = el("div", { class: "actions" }, ...takeOver, leave, this.waitedFor)
    return [el("p", { class: "queue-sentence" }, this.queueSentence, this.count), actions]
  }

  #takeOver() {
    return button(t("state.taken.own.go"), { class: "button button-strong" }, () => this.actions.takeOver())
  }

  #wait(kind: string, retries: boolean = false) {
    const words = t(retries ? "state.taken.timeout.wait" : "state.taken.wait")
    const wait = button(words, { class: `button ${kind}` }, () => this.actions.wait())
    wait.dataset.queue = "wait"
    return wait
  }

  #lost(state: Desk): Node[] {
    const { reason } = state
    const returns = RETURNABLE.includes(reason)
    const sentence = el("p", { text: lostSentence(state) })
    if (reason === "taken_over") return [sentence, ...this.#unsaved([this.#takeOver(), this.#wait("")], true)]
    const next = returns
      ? button(t("state.lost.again"), { class: "button button-strong" }, () => this.actions.claim())
      : button(t("state.lost.reload"), {}, () => location.reload())
    // The document may be deleted: the page offers its text and does not call it saved.
    if (reason === "revoked") return [sentence, ...this.#unsent(), ...this.#unsaved([...this.#textButtons(), next], false)]
    return [sentence, ...this.#unsent(), ...this.#unsaved([next], true)]
  }

  /** Offers the words that were not sent, which have no other way out. */
  #unsent() {
    const { reason, link } = this.store.state
    const texts = ENDED.includes(reason) ? this.actions.unsent() : []
    return unsentParts(texts, link?.title ?? "", () => this.actions.discardUnsent())
  }

  /** The page offers its text and does not call it saved. */
  #deleted(state: Desk): Node[] {
    const { wasSeated, servedAt, link } = state
    const restore = isOwnDeletion(state) && link ? [restoreButton(link.document_id)] : []
    const text = wasSeated || servedAt !== null ? this.#textButtons() : []
    const home = el("a", { class: "button", href: "/", text: t("menu.home") })
    return [el("p", { text: lostSentence(state) }), ...this.#unsent(), ...this.#unsaved([...restore, ...text, home], false)]
  }

  /**
   * The unsaved text with its actions, or a sentence that all is saved; and the next step.
   *
   * @param hadText whether there was anything to lose
   */
  #unsaved(next: HTMLElement[], hadText: boolean): Node[] {
    const { sentences, deletions } = this.actions.lost()
    const { role, link, reason } = this.store.state
    if (sentences.length + deletions === 0) {
      const parts = hadText && role === "writer" ? [el("p", { text: t("state.lost.safe") })] : []
      return [...parts, el("div", { class: "actions" }, ...next)]
    }
    const sentence = sentences.length === 0 ? t("state.lost.removed", { count: number(deletions) }) : tCount("state.lost.unsaved", sentences.length)
    const note = el("p", { class: "quiet", text: t(ENDED.includes(reason) ? "state.lost.retained.here" : "state.lost.retained") })
    note.hidden = this.store.state.saving.retained !== "yes"
    const unsavedButtons = unsavedActions(sentences, link?.title ?? "", () => this.actions.discard())
    return [el("p", { text: sentence }), unsavedList(sentences), note, el("div", { class: "actions" }, ...next, ...unsavedButtons)]
  }
}

const isOwnDeletion = ({ deletion, me }: Desk) => deletion !== null && deletion.by.id === me?.id

/** Why the seat is lost. */
function lostSentence(state: Desk) {
  const { reason, deletion } = state
  if (deletion || reason === "deleted") return deletedSentence(deletion, isOwnDeletion(state))
  return t(`state.lost.${reason}` as Sentence)
}

/** Why nothing can be sent any more, or `""`. */
export function refusalOf(state: Desk) {
  return state.phase === "lost" && !RETURNABLE.includes(state.reason) ? lostSentence(state) : ""
}

/** Why it is not saved, and what to do. */
function lateSentence({ refusing, retained }: Saving) {
  if (refusing === "no") return "state.unanswered"
  if (refusing === "away") return "state.not-saved"
  if (refusing === "limit") return retained === "yes" ? "state.unsaved-full" : "state.unsaved-full.unretained"
  // The sentence may not claim an edit that the journal does not hold.
  return retained === "yes" ? "state.disk-full" : "state.disk-full.unretained"
}

/** When the next attempt to connect is made. */
function attemptSentence(retryAt: number | null, now: number) {
  if (retryAt === null) return t("state.offline.trying")
  return t("state.offline.next", { seconds: number(Math.max(Math.ceil((retryAt - now) / 1_000), 1)) })
}

/** Whether a notice is about the wait queue. */
function isQueueNotice(key: string) {
  return /^(taken|waiting|lost taken_over)\b/.test(key)
}

function sentenceNotice(key: string, sentence: string, ...more: Node[]): Notice {
  return { key, parts: () => [el("p", { text: sentence }, ...more)] }
}
