/**
 * One seat's connection: its claims, its sockets one after the other, and the server's events.
 *
 * It backs off with a random delay, or all clients of a restarted server would reconnect at once.
 *
 * Fires `phase` (read `phase`, `holder`, `queuePosition`, `waitTimedOut`, `reason`, `draining`) when any of them
 * changes, `attempt` (read `retryAt`) when it reconnects or backs off, `event` with each event of the
 * server, and `replied` when it has replied to a sync step 1 of the server.
 */

import type { Role } from "../lib/api.ts"
import { Awareness, type Y } from "../lib/vendor.ts"
import type { Holder, Phase, QueuePosition } from "../store.ts"
import { holderIn, lossReason, retryDelay } from "./close_codes.ts"
import { storeResumeSecret, takeResumeSecret } from "./resume_secret.ts"
import { SessionEnd } from "./session_end.ts"
import { holderOf, positionOf, secondsToWait } from "./wait_queue.ts"
import { MESSAGE_BYTES, YjsSocket } from "./yjs_socket.ts"

export type ServerEvent = { event: string, [field: string]: any }

/** The close code of a socket that broke. */
const ABNORMAL = 1006
/** A connect without a reply by then has failed, in ms: a browser would wait for minutes. */
const CONNECT_TIMEOUT = 10_000
/** The page probes a socket without a message for so long, in ms: the server echoes presence every 15 s. */
const SILENCE_MAX = 25_000
/** The page closes a probed socket if no message comes by then, in ms. */
const PROBE_TIMEOUT = 3_000
/** The interval of the check for silence, and for a sleep of the machine, in ms. */
const CHECK_EVERY = 2_000
/** More than this between two checks is sleep, in ms. */
const ASLEEP = 10_000
/** The same while the page is hidden: browsers call such pages once a minute. */
const ASLEEP_HIDDEN = 75_000
/** A wait that ends sooner than this was refused: the next claim backs off. In ms. */
const WAIT_MIN = 2_000

export class Connection extends EventTarget {
  declare seat
  declare awareness: Awareness
  phase: Phase = "opening"
  holder: Holder | null = null
  queuePosition: QueuePosition | null = null
  waitTimedOut = false
  reason = ""
  draining = false
  /** When the next attempt is made, in ms; `null`: one is being made. */
  retryAt: number | null = null

  #socket: YjsSocket | null = null
  #granted = false
  #uncertain = false
  #attempts = 0
  #wait = 0
  #reconnectWithin = 0
  #timer = 0
  #resume = ""
  #takesOver = false
  /** The time of the last claim with a wait, in ms. */
  #claimedAt = 0
  #checkedAt = Date.now()
  /** The socket that may be half-open. */
  #probed: YjsSocket | null = null
  #stopped = new AbortController()
  #end = new SessionEnd(() => this.renew())

  constructor(doc: Y.Doc, link: string, role: Role) {
    super()
    this.seat = `${link}/${role}`
    this.#resume = takeResumeSecret(this.seat)
    this.awareness = new Awareness(doc)
  }

  start() {
    const { signal } = this.#stopped
    window.addEventListener("online", () => this.#wake(), { signal })
    document.addEventListener("visibilitychange", () => document.hidden || this.#wake(), { signal })
    const check = window.setInterval(() => this.#check(), CHECK_EVERY)
    signal.addEventListener("abort", () => window.clearInterval(check))
    window.addEventListener("pagehide", () => storeResumeSecret(this.seat, this.#resume), { signal })
    // It was only put aside, and is shown again.
    window.addEventListener("pageshow", ({ persisted }) => persisted && takeResumeSecret(this.seat), { signal })
    this.#connect()
    void this.#end.look()
  }

  /** When the last message of the open socket arrived, in ms; `null`: no seat is held over one. */
  get lastMessageAt() {
    return this.#granted && this.#socket?.isOpen ? this.#socket.lastMessageAt : null
  }

  /** Requests a message from the server. */
  query() {
    this.#socket?.probe()
  }

  /** Leaves the seat. */
  stop() {
    this.#stopped.abort()
    this.#end.stop()
    window.clearTimeout(this.#timer)
    this.#disconnect()
  }

  /** Asks for the seat once more. */
  claim({ takeover = false }: { takeover?: boolean } = {}) {
    this.#leaveQueue()
    this.#attempts = 0
    this.reason = ""
    // Where the answer is likely to be the same, what is on the screen stays until it is there.
    if (takeover || this.phase !== "taken") this.#setPhase("opening")
    this.#takesOver = takeover
    this.#connect()
  }

  /** Waits in the wait queue until the seat is free. */
  wait() {
    this.#attempts = 0
    this.reason = ""
    this.waitTimedOut = false
    this.#takesOver = false
    this.queuePosition = { position: null, since: performance.now(), away: false }
    this.#setPhase("waiting")
    this.#claim()
  }

  /** Opens the socket again, with the newest token: for its end, and so that the others see the name in it. */
  renew() {
    if (!this.#socket?.isOpen || this.queuePosition) return
    // As when a server hands its clients over: without a notice for a moment.
    this.draining = true
    this.#disconnect()
    this.#claim()
  }

  /** Leaves the wait queue. */
  leaveQueue() {
    this.#leaveQueue()
    this.#setPhase("taken")
  }

  #leaveQueue() {
    window.clearTimeout(this.#timer)
    this.waitTimedOut = false
    if (!this.queuePosition) return
    this.queuePosition = null
    this.#disconnect()
  }

  /** Claims the seat, or continues the wait unless its time is over. */
  #claim() {
    if (!this.queuePosition) return this.#connect()
    this.#claimedAt = performance.now()
    const seconds = secondsToWait(this.queuePosition.since, this.#claimedAt)
    if (0 < seconds) return this.#connect({ wait: String(seconds) })
    this.#leaveQueue()
    this.waitTimedOut = true
    this.#setPhase("taken")
  }

  #connect(more: Record<string, string> = {}) {
    window.clearTimeout(this.#timer)
    const params: Record<string, string> = { events: "1", ...more }
    if (this.#resume !== "") params.resume = this.#resume
    if (this.#takesOver) params.takeover = "1"
    this.#attempt(null)
    if (this.#socket) return
    const url = `${location.origin.replace(/^http/, "ws")}/ws/share-links/${this.seat}?${new URLSearchParams(params)}`
    this.#socket = new YjsSocket(url, this.awareness, {
      synced: () => this.#enter(),
      replied: () => this.dispatchEvent(new Event("replied")),
      event: (text) => this.#receive(text),
      closed: (close) => this.#closed(close),
    })
  }

  /** The seat is offline until the next grant. */
  #disconnect() {
    this.#socket?.close()
    this.#socket = null
    this.#granted = false
    this.#uncertain = false
    if (this.phase === "seated" || this.phase === "uncertain") this.#setPhase("offline")
  }

  #enter() {
    if (!this.#granted || !this.#socket?.isSynced) return
    this.#attempts = 0
    this.queuePosition = null
    this.waitTimedOut = false
    this.#setPhase(this.#uncertain ? "uncertain" : "seated")
  }

  #receive(text: string) {
    let event: ServerEvent
    try {
      event = JSON.parse(text)
    } catch {
      return
    }
    if (event.event === "seat.granted") {
      this.#granted = true
      if (this.#socket) this.#socket.messageBytes = Number(event.message_bytes) || MESSAGE_BYTES
      this.#reconnectWithin = Number(event.reconnect_within_ms) || 0
      this.draining = false
      // Only the user starts a second takeover, or two tabs would evict each other.
      this.#takesOver = false
      this.#resume = typeof event.resume === "string" ? event.resume : ""
      this.#enter()
    } else if (event.event === "seat.waiting" && this.queuePosition) {
      this.#attempts = 0
      this.holder = holderOf(event.holder, this.holder)
      this.queuePosition = { ...this.queuePosition, position: positionOf(event.position), away: false }
      this.#setPhase("waiting")
    } else if (event.event === "seat.uncertain" || event.event === "seat.restored") {
      this.#uncertain = event.event === "seat.uncertain"
      this.#enter()
    } else if (event.event === "seat.lost") {
      this.reason = lossReason(4410, String(event.reason))
    } else if (event.event === "server.draining") {
      this.draining = true
      this.#wait = Number(event.reconnect_after_ms) || 0
    }
    this.dispatchEvent(new CustomEvent("event", { detail: event }))
  }

  /** @param close by the server or the network */
  #closed({ code, reason }: CloseEvent) {
    this.#disconnect()
    // A server that closes a socket lives.
    if (code !== ABNORMAL) this.#reconnectWithin = 0
    if (code === 4409) {
      // It is another session's by now: the secret of this one opens nothing any more.
      this.#resume = ""
      this.holder = holderIn(reason)
      this.queuePosition = null
      return this.#setPhase("taken")
    }
    if (code === 4408 && this.queuePosition && WAIT_MIN <= performance.now() - this.#claimedAt) return this.#claim()
    if (code === 4408 && this.queuePosition) return this.#retryLater()
    if (4400 <= code && code < 4500) {
      this.queuePosition = null
      this.#resume = ""
      this.reason = lossReason(code, reason || this.reason)
      return this.#setPhase("lost")
    }
    if (code === 1012 && reason === "database-set-back") this.dispatchEvent(new Event("set-back"))
    this.#failed()
  }

  #failed() {
    if (this.queuePosition) this.#loseQueuePosition()
    else if (this.phase !== "opening" || 2 <= this.#attempts) this.#setPhase("offline")
    this.#retryLater()
  }

  #retryLater() {
    this.#attempts++
    window.clearTimeout(this.#timer)
    const wait = this.#wait + retryDelay(this.#attempts, Math.random(), this.#reconnectWithin)
    this.#wait = 0
    this.#timer = window.setTimeout(() => this.#claim(), wait)
    this.#attempt(performance.now() + wait)
  }

  #attempt(retryAt: number | null) {
    if (retryAt === this.retryAt) return
    this.retryAt = retryAt
    this.dispatchEvent(new Event("attempt"))
  }

  /** The queue position is lost with its connection. The wait is not. */
  #loseQueuePosition() {
    if (!this.queuePosition || this.queuePosition.away) return
    this.queuePosition = { ...this.queuePosition, position: null, away: true }
    this.#setPhase("waiting")
  }

  /** Reconnects now: on the user's request, or after a sign that it may succeed. */
  retryNow() {
    if (this.phase !== "offline" && this.phase !== "opening" && !this.queuePosition?.away) return
    // One that hangs was made of another network, perhaps.
    if (!this.#socket?.isOpen) this.#disconnect()
    this.#claim()
  }

  /**
   * The network is back, the page is visible again, or the machine has slept: the back-off ends.
   * An open socket may be half-open.
   */
  #wake() {
    this.retryNow()
    this.#probe()
  }

  /**
   * Requests a message from the server, and replaces the socket if none comes: at once where the page knows why it may be
   * half-open, else with the pause of a lost server, which all its clients notice.
   */
  #probe(reconnect = () => this.#claim()) {
    const socket = this.#socket
    if (!socket?.isOpen || this.#probed === socket) return
    this.#probed = socket
    const { lastMessageAt } = socket
    socket.probe()
    window.setTimeout(() => {
      this.#probed = null
      if (socket !== this.#socket || socket.lastMessageAt !== lastMessageAt) return
      this.#disconnect()
      reconnect()
    }, PROBE_TIMEOUT)
  }

  /** A timer that is later than it can be stood still, and so did all else: the machine slept, in which its monotonic clock may stand. */
  #check() {
    const now = Date.now()
    const slept = (document.hidden ? ASLEEP_HIDDEN : ASLEEP) < now - this.#checkedAt
    this.#checkedAt = now
    if (slept) return this.#wake()
    const silence = this.#socket ? now - this.#socket.lastMessageAt : 0
    if (SILENCE_MAX < silence) this.#probe(() => this.#retryLater())
    if (silence <= CONNECT_TIMEOUT || this.#socket?.isOpen) return
    this.#disconnect()
    this.#failed()
  }

  #setPhase(phase: Phase) {
    // The queue position and the holder change within one phase.
    if (phase === this.phase && phase !== "waiting" && phase !== "taken") return
    this.phase = phase
    this.dispatchEvent(new Event("phase"))
  }
}
