// @ts-check
/**
 * One seat's connection: the stock y-websocket client and the server's events.
 *
 * The stock client reconnects at fixed times, so all clients of a restarted server would reconnect
 * at once. This class reconnects itself: it reports every close, and backs off with a random
 * delay of its own.
 *
 * Fires `phase` (read `phase`, `holder`, `queuePosition`, `waitTimedOut`, `reason`, `draining`) when any of them
 * changes, `attempt` (read `retryAt`) when it reconnects or backs off, `event` with each event of the
 * server, and `replied` when the provider has answered a sync step 1.
 */

import { readVarString, WebsocketProvider } from "../lib/vendor.js"
import { holderIn, lossReason, retryDelay } from "./close_codes.js"
import { storeResumeSecret, takeResumeSecret } from "./resume_secret.js"
import { holderOf, positionOf, secondsToWait } from "./wait_queue.js"

/**
 * @typedef {import("../store.js").Phase} Phase
 * @typedef {import("../store.js").Holder} Holder
 * @typedef {import("../store.js").QueuePosition} QueuePosition
 * @typedef {{ event: string, [field: string]: any }} ServerEvent
 */

/** The type of the frames that carry the server's events. */
const EVENT_FRAME = 100
/** The frame of the sync protocol, and its question "send me what I lack". */
const SYNC_FRAME = 0
const STEP_1 = 0
/** A connect without a reply by then has failed, in ms: a browser would wait for minutes. */
const ATTEMPT_MAX = 10_000
/** A query of all presence: the shortest message with a certain reply. */
const QUERY_AWARENESS = Uint8Array.of(3)
/** The page closes the socket if no reply comes by then, in ms. */
const PROBE_TIMEOUT = 3_000
/** The interval of the check for a sleep of the machine, in ms. */
const CLOCK_CHECK = 2_000
/** More than this between two checks is sleep, in ms. */
const ASLEEP = 10_000
/** The same while the page is hidden: browsers call such pages once a minute. */
const ASLEEP_HIDDEN = 75_000
/** A wait that ends sooner than this was refused: the next claim backs off. In ms. */
const WAIT_MIN = 2_000

export class Connection extends EventTarget {
  /** @type {Phase} */
  phase = "opening"
  /** @type {Holder | null} */
  holder = null
  /** @type {QueuePosition | null} */
  queuePosition = null
  waitTimedOut = false
  reason = ""
  draining = false
  /** When the next attempt is made, in ms; `null`: one is being made. @type {number | null} */
  retryAt = null

  #granted = false
  #uncertain = false
  #attempts = 0
  #wait = 0
  #timer = 0
  #attemptTimer = 0
  #resume = ""
  #takesOver = false
  /** The time of the last claim with a wait, in ms. */
  #claimedAt = 0
  #clockCheckedAt = Date.now()
  /** The socket of which it is not known whether it lives. @type {WebSocket | null} */
  #probed = null
  #stopped = new AbortController()

  /**
   * @param {import("../lib/vendor.js").Y.Doc} doc
   * @param {string} link
   * @param {import("../lib/api.js").Role} role
   */
  constructor(doc, link, role) {
    super()
    this.seat = `${link}/${role}`
    this.#resume = takeResumeSecret(this.seat)
    const server = `${location.origin.replace(/^http/, "ws")}/ws/share-links`
    this.provider = new WebsocketProvider(server, this.seat, doc, {
      connect: false,
      disableBc: true,
      params: { events: "1" },
      // Never by itself: `#closed` decides.
      shouldReconnect: () => false,
    })
    this.awareness = this.provider.awareness
    this.provider.messageHandlers[EVENT_FRAME] = (_encoder, decoder) => {
      const text = readVarString(decoder)
      // In a microtask, after the provider's own handler: a listener may close the socket.
      queueMicrotask(() => this.#receive(text))
    }
    const sync = this.provider.messageHandlers[SYNC_FRAME]
    this.provider.messageHandlers[SYNC_FRAME] = (encoder, decoder, ...rest) => {
      const isQuestion = decoder.arr[decoder.pos] === STEP_1
      sync?.(encoder, decoder, ...rest)
      // Behind the answer, in the order of the events about it.
      if (isQuestion) queueMicrotask(() => this.dispatchEvent(new Event("replied")))
    }
  }

  start() {
    const { signal } = this.#stopped
    this.provider.on("sync", this.#enter)
    this.provider.on("status", this.#status)
    this.provider.on("closed", this.#closed)
    this.provider.on("connection-close", this.#closedSilent)
    window.addEventListener("online", () => this.#wake(), { signal })
    document.addEventListener("visibilitychange", () => document.hidden || this.#wake(), { signal })
    const check = window.setInterval(this.#checkClock, CLOCK_CHECK)
    signal.addEventListener("abort", () => window.clearInterval(check))
    window.addEventListener("pagehide", () => storeResumeSecret(this.seat, this.#resume), { signal })
    // It was only put aside, and is shown again.
    window.addEventListener("pageshow", ({ persisted }) => persisted && takeResumeSecret(this.seat), { signal })
    this.#connect()
  }

  /** Leaves the seat. */
  stop() {
    this.#stopped.abort()
    window.clearTimeout(this.#timer)
    window.clearTimeout(this.#attemptTimer)
    this.provider.destroy()
  }

  /** Asks for the seat once more. @param {{ takeover?: boolean }} [options] */
  claim({ takeover = false } = {}) {
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
    this.queuePosition = { position: null, since: Date.now(), away: false }
    this.#setPhase("waiting")
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
    this.provider.disconnect()
  }

  /** Claims the seat, or continues the wait unless its time is over. */
  #claim() {
    if (!this.queuePosition) return this.#connect()
    this.#claimedAt = Date.now()
    const seconds = secondsToWait(this.queuePosition.since, this.#claimedAt)
    if (0 < seconds) return this.#connect({ wait: String(seconds) })
    this.#leaveQueue()
    this.waitTimedOut = true
    this.#setPhase("taken")
  }

  /** @param {Record<string, string>} [more] */
  #connect(more = {}) {
    window.clearTimeout(this.#timer)
    /** @type {Record<string, string>} */
    const params = { events: "1", ...more }
    if (this.#resume !== "") params.resume = this.#resume
    if (this.#takesOver) params.takeover = "1"
    this.provider.params = params
    this.#attempt(null)
    this.provider.connect()
    const { ws } = this.provider
    window.clearTimeout(this.#attemptTimer)
    this.#attemptTimer = window.setTimeout(() => {
      if (ws !== this.provider.ws || !this.provider.wsconnecting) return
      this.provider.disconnect()
      this.#failed()
    }, ATTEMPT_MAX)
  }

  /** @param {{ status: string }} event */
  #status = ({ status }) => {
    if (status !== "disconnected") return
    this.#granted = false
    this.#uncertain = false
    if (this.phase === "seated" || this.phase === "uncertain") this.#setPhase("offline")
  }

  #enter = () => {
    if (!this.#granted || !this.provider.synced) return
    this.#attempts = 0
    this.queuePosition = null
    this.waitTimedOut = false
    this.#setPhase(this.#uncertain ? "uncertain" : "seated")
  }

  /** @param {string} text */
  #receive(text) {
    /** @type {ServerEvent} */
    let event
    try {
      event = JSON.parse(text)
    } catch {
      return
    }
    if (event.event === "seat.granted") {
      this.#granted = true
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

  /** @param {{ code: number, reason: string }} close */
  #closed = ({ code, reason }) => {
    if (code === 4409) {
      // It is another session's by now: the secret of this one opens nothing any more.
      this.#resume = ""
      this.holder = holderIn(reason)
      this.queuePosition = null
      return this.#setPhase("taken")
    }
    if (code === 4408 && this.queuePosition && WAIT_MIN <= Date.now() - this.#claimedAt) return this.#claim()
    if (code === 4408 && this.queuePosition) return this.#retryLater()
    if (4400 <= code && code < 4500) {
      this.queuePosition = null
      this.#resume = ""
      this.reason = lossReason(code, reason || this.reason)
      return this.#setPhase("lost")
    }
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
    const wait = this.#wait + retryDelay(this.#attempts, Math.random())
    this.#wait = 0
    this.#timer = window.setTimeout(() => this.#claim(), wait)
    this.#attempt(Date.now() + wait)
  }

  /** @param {number | null} retryAt */
  #attempt(retryAt) {
    if (retryAt === this.retryAt) return
    this.retryAt = retryAt
    this.dispatchEvent(new Event("attempt"))
  }

  /**
   * The provider closed a silent socket. It would then reconnect by itself with the parameters of the
   * last claim: a takeover or a wait that has ended.
   *
   * @param {unknown} close
   */
  #closedSilent = (close) => {
    // Where we disconnected ourselves it should not connect any more, and we know.
    if (close !== null || !this.provider.shouldConnect) return
    // No more than that: it is in the middle of its closing.
    this.provider.shouldConnect = false
    this.#failed()
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
    if (this.provider.wsconnecting) this.provider.disconnect()
    this.#claim()
  }

  /**
   * The network is back, the page is visible again, or the machine has slept: the back-off ends.
   * An open socket may be half-open, so the page probes the server,
   * and closes the socket if no reply comes.
   */
  #wake() {
    this.retryNow()
    const { ws, wsconnected } = this.provider
    if (!ws || !wsconnected || this.#probed === ws) return
    this.#probed = ws
    const lastMessage = this.provider.wsLastMessageReceived
    ws.send(QUERY_AWARENESS)
    window.setTimeout(() => {
      this.#probed = null
      const isSame = ws === this.provider.ws && lastMessage === this.provider.wsLastMessageReceived
      if (!isSame || this.#stopped.signal.aborted) return
      this.provider.disconnect()
      this.#claim()
    }, PROBE_TIMEOUT)
  }

  /** A clock that is late by more than it can be has stood still, and so did everything else. */
  #checkClock = () => {
    const now = Date.now()
    if ((document.hidden ? ASLEEP_HIDDEN : ASLEEP) < now - this.#clockCheckedAt) this.#wake()
    this.#clockCheckedAt = now
  }

  /** @param {Phase} phase */
  #setPhase(phase) {
    // The queue position and the holder change within one phase.
    if (phase === this.phase && phase !== "waiting" && phase !== "taken") return
    this.phase = phase
    this.dispatchEvent(new Event("phase"))
  }
}
