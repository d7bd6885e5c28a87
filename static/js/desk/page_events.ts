/**
 * Applies the events of the page's own parts to the store, and does what follows when the connection changes its phase.
 *
 * `policy.ts` has the rules of a change of phase, and `server_events.ts` applies the events of the server.
 */

import { announce, showToast } from "../lib/announce.ts"
import { t } from "../lib/i18n.ts"
import type { ReviewActions } from "../reviews/actions.ts"
import type { Reviews } from "../reviews/reviews.ts"
import type { SelectionBar } from "../reviews/selection_bar.ts"
import type { AnswerWatch } from "../seat/answer_watch.ts"
import type { Connection } from "../seat/connection.ts"
import type { Questions } from "../sections/questions.ts"
import { peersOf, type Store } from "../store.ts"
import type { ReviewerPage } from "../suggest/reviewer_page.ts"
import type { RecoveredDrafts } from "../unsaved/recovered_drafts.ts"
import type { SaveWatch } from "../unsaved/save_watch.ts"
import type { Editor } from "./editor.ts"
import { divideDrafts, ENDED_LINKS, lossOf, mayType, regainedSentence, stateAfter } from "./policy.ts"
import type { Presence } from "./presence.ts"
import type { ServerEvents } from "./server_events.ts"

interface Parts {
  store: Store
  connection: Connection
  answers: AnswerWatch
  editor: Editor
  watch: SaveWatch
  drafts: RecoveredDrafts
  reviews: Reviews
  actions: ReviewActions
  selection: SelectionBar
  presence: Presence
  questions: Questions
  events: ServerEvents
  typed: ReviewerPage | null // what a reviewer's page has more
}

/** The banner stays silent this long while the page moves to another server, in ms. */
const QUIET = 2_000

export class PageEvents {
  declare parts: Parts
  declare store: Store
  #quiet = 0

  constructor(parts: Parts) {
    this.parts = parts
    this.store = parts.store
  }

  start(signal: AbortSignal) {
    const { connection, answers, actions, watch, presence, typed } = this.parts
    connection.addEventListener("phase", () => this.#phase(), { signal })
    connection.addEventListener("attempt", () => this.store.change({ retryAt: connection.retryAt }), { signal })
    connection.addEventListener("set-back", () => showToast(t("state.set-back")), { signal })
    answers.addEventListener("change", () => this.store.change({ silentSince: answers.since }), { signal })
    const ready = () => this.store.seated && this.store.state.silentSince === null && actions.ready()
    answers.addEventListener("change", ready, { signal })
    window.addEventListener("online", ready, { signal })
    if (!typed) watch.addEventListener("change", () => this.store.change({ saving: watch.state }), { signal })
    presence.addEventListener("change", () => this.#peer(), { signal })
    for (const type of ["keydown", "pointerdown", "wheel"]) {
      window.addEventListener(type, () => this.confirmActivity(), { signal, passive: true })
    }
  }

  #phase() {
    const { connection, editor, selection, events, watch, typed, actions, reviews, questions, presence } = this.parts
    const before = this.store.state
    this.store.change(stateAfter(before, connection))
    const { phase, reason, quiet, wasSeated, role } = this.store.state
    window.clearTimeout(this.#quiet)
    if (quiet) this.#quiet = window.setTimeout(() => this.store.change({ quiet: false }), QUIET)
    // Before the first sync the text is unknown, so nothing may call it empty.
    document.body.dataset.read = String(wasSeated || this.store.state.servedAt !== null)
    if (phase === "seated") editor.endServed()
    if (before.phase === "taken" && phase === "taken") showToast(t("state.taken.still"))
    editor.mayType(mayType(this.store.state))
    selection.drawSoon()
    if (phase === "lost" && ["taken_over", ...ENDED_LINKS].includes(reason)) events.readLinkSoon(0)
    const loss = lossOf(this.store.state)
    if (loss !== null) watch.seatLost(loss)
    if (loss !== null) typed?.lose()
    if (role === "writer" && ["seated", "taken", "lost"].includes(phase)) this.applyDrafts()
    if (phase !== "seated") return
    watch.seatRegained()
    const sentence = regainedSentence(before, phase)
    if (sentence) announce(t(sentence))
    actions.ready()
    reviews.read().then(() => this.#read(), () => undefined)
    questions.read().catch(() => undefined)
    events.readLinkSoon()
    presence.publish()
  }

  /** The reviews are here, for the first time with this seat. */
  #read() {
    if (!this.store.seated) return
    this.parts.actions.restore()
    // The suggestions are in the text with the next task.
    window.setTimeout(() => this.parts.typed?.ready(), 0)
  }

  /** Answers the idle warning with a sign of life. */
  confirmActivity() {
    if (this.store.state.idleUntil === null) return
    this.store.change({ idleUntil: null })
    this.parts.presence.publishActivity()
  }

  /** Applies the drafts of closed pages, or offers them to their writer. */
  async applyDrafts() {
    const { watch } = this.parts
    const drafts = await watch.draftsOfClosedPages()
    const { applied, offered } = divideDrafts(drafts, this.store.state.phase, (draft) => watch.mayRecover(draft))
    for (const draft of applied) watch.recover(draft)
    if (0 < applied.length) showToast(t("state.recovered"))
    this.parts.drafts.show(offered)
  }

  #peer() {
    const away = this.parts.presence.other?.away ?? false
    const { role } = this.store.state
    if (role !== null) for (const peer of peersOf(role)) this.store.changeOccupancy(peer, { away })
  }
}
