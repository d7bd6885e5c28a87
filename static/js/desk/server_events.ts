/**
 * Applies the server's events to the parts of the desk: store, reviews, unsaved edits, editor.
 *
 * An event about a peer names one user. The queue lengths and grant times are in the share link, which
 * the page reads again after such an event.
 */

import { showToast } from "../lib/announce.ts"
import * as api from "../lib/api.ts"
import { t } from "../lib/i18n.ts"
import { now } from "../lib/server_clock.ts"
import type { Reviews } from "../reviews/reviews.ts"
import type { Connection, ServerEvent } from "../seat/connection.ts"
import type { TurnBar } from "../seat/turn.ts"
import type { Questions } from "../sections/questions.ts"
import type { Store } from "../store.ts"
import type { SaveWatch } from "../unsaved/save_watch.ts"
import { ample, sizeIn, type Size } from "./document_size.ts"
import type { Editor } from "./editor.ts"
import { RETURNABLE } from "./policy.ts"

/** The page reads the share link once, this long after the last of several events, in ms. */
const READ_DELAY = 250
/** No event reports a wait queue that moves: the page polls a queue with waiters this often, in ms. */
const POLL_QUEUE_EVERY = 15_000

interface Parts {
  connection: Connection
  store: Store
  watch: SaveWatch
  reviews: Reviews
  editor: Editor
  turn: TurnBar
  questions: Questions
}

export class ServerEvents {
  declare connection
  declare store
  declare watch
  declare reviews
  declare editor
  declare turn
  declare questions
  declare role: api.Role
  declare link: string
  #timer = 0
  /** Whether the server said that the document is in the bin. */
  #isDeleted = false

  constructor({ connection, store, watch, reviews, editor, turn, questions }: Parts, role: api.Role, link: string) {
    this.connection = connection
    this.store = store
    this.watch = watch
    this.reviews = reviews
    this.editor = editor
    this.turn = turn
    this.questions = questions
    this.role = role
    this.link = link
  }

  start(signal: AbortSignal) {
    const apply = (event: Event) => this.#apply((event as CustomEvent<ServerEvent>).detail)
    this.connection.addEventListener("event", apply, { signal })
    this.connection.addEventListener("replied", () => this.watch.resent(), { signal })
    // A hidden page does not poll, so its title and occupancy may be old.
    document.addEventListener("visibilitychange", () => document.hidden || this.readLinkSoon(), { signal })
    window.addEventListener("focus", () => this.#isPaused && this.readLinkSoon(), { signal })
  }

  /** Reads the share link: title, occupancy, queue lengths. Several calls share one request. */
  readLinkSoon(after = READ_DELAY) {
    window.clearTimeout(this.#timer)
    this.#timer = window.setTimeout(async () => {
      const { link: before, occupancy } = this.store.state
      const link = await api.link(this.link).catch((error) => this.#refused(error))
      // A title, a turn or a peer that came meanwhile may be newer than the answer.
      if (link && (this.store.state.link !== before || this.store.state.occupancy !== occupancy)) return this.readLinkSoon()
      const invite = before?.invite ?? null
      if (link) this.store.applyLink({ ...link, invite })
      const { writer, reviewer } = this.store.state.occupancy
      // It was restored elsewhere.
      if (link && this.#isDeleted) return location.reload()
      const isUnknown = writer.here === null || reviewer.here === null
      if ((this.#isDeleted || isUnknown || 0 < writer.waiting + reviewer.waiting) && !document.hidden) this.readLinkSoon(POLL_QUEUE_EVERY)
    }, after)
  }

  /** Whether the page has no socket, and none is being opened: the server tells it nothing. */
  get #isPaused() {
    return ["taken", "lost"].includes(this.store.state.phase)
  }

  /** The document is deleted, or the role gone: a paused page learns it here. */
  #refused(error: unknown) {
    const { reason } = this.store.state
    if (!this.#isPaused || !(error instanceof api.Problem) || ![403, 404].includes(error.status)) return null
    const { deleted } = error
    const isLost = this.store.state.phase === "lost" && !RETURNABLE.includes(reason)
    this.#isDeleted = deleted !== null
    if (deleted) this.store.change({ phase: "lost", reason: "deleted", deletion: deleted })
    else if (!isLost) this.store.change({ phase: "lost", reason: this.role === "writer" ? "deleted" : "role" })
    return null
  }

  #apply(event: ServerEvent) {
    switch (event.event) {
      case "document.saved":
        return this.watch.saved(event.state_vector)
      case "review.created":
      case "review.updated":
        return this.reviews.apply(event.review)
      case "decision.made":
      case "decision.undone":
        return void this.reviews.read().catch(() => undefined)
      case "review.deleted":
        return this.reviews.drop(event.review.id)
      case "sections.changed":
        return void this.questions.read().catch(() => undefined)
      case "turn.changed":
        this.turn.apply(event.turn)
        // Two changes at once may arrive in either order.
        return this.readLinkSoon()
      case "peer.joined":
      case "peer.left":
        return this.#applyPeer(event.role, event.user, event.event === "peer.joined")
      case "seat.idle":
        return this.store.change({ idleUntil: Date.parse(event.release_at) })
      case "seat.granted":
        // The server sends the events of a damaged or nearly full document after the grant.
        this.store.change({ damaged: false })
        return this.#applySize(ample)
      case "document.size":
        return this.#applySize(sizeIn(event))
      case "denied":
        this.watch.denied()
        // Every other denial of a writer's edit comes with an event that says more.
        return event.reason === "not-the-writer" ? showToast(t("state.denied")) : undefined
      case "server.draining":
        return this.store.change({ draining: true })
      case "problem":
        return this.#applyProblem(event)
      default:
        // A newer server may send events that this page does not know.
        return undefined
    }
  }

  #applyPeer(role: api.Role, user: api.User, here: boolean) {
    if (role !== this.role) {
      const since = here ? new Date(now()).toISOString() : null
      this.store.changeOccupancy(role, { user, here, since, away: false })
    }
    this.readLinkSoon()
  }

  #applySize(size: Size) {
    this.editor.mayGrow(size.state !== "full")
    this.store.change({ size })
  }

  #applyProblem(problem: ServerEvent) {
    switch (problem.type) {
      case "/problems/not-saved":
        return this.watch.refused(problem.status === 507 ? "full" : "away")
      case "/problems/unsaved-full":
        return this.watch.refused("limit")
      case "/problems/document-too-large":
        // `document.size` says the same, and also says when the document has room again.
        return undefined
      case "/problems/document-reset":
        this.connection.stop()
        this.watch.seatLost("reset")
        this.store.change({ phase: "lost", reason: "reset" })
        // Last: `connection.stop` changes the phase, and a writer may type in an offline phase.
        return this.editor.mayType(false)
      case "/problems/document-damaged":
        this.editor.mayType(false)
        return this.store.change({ damaged: true })
      default:
        return void showToast(t("state.problem", { why: String(problem.title ?? "") }))
    }
  }
}
