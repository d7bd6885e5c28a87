// @ts-check
/**
 * One seat's connection: the stock y-websocket client, and what the server says beside it.
 *
 * The stock client comes back at fixed times, so that a restarted server meets all of its clients
 * at once. Here coming back is in our hands: every close is reported, and we connect again after
 * our own wait, which differs from client to client.
 *
 * Fires `phase` (read `phase`, `holder`, `why`) and `told` with each event of the server.
 */

import { readVarString, WebsocketProvider } from "./vendor.js"

/**
 * @typedef {import("./store.js").Phase} Phase
 * @typedef {import("./store.js").Holder} Holder
 * @typedef {{ event: string, [field: string]: any }} Told
 */

/** The type of the frames that carry the server's events. */
const EVENT_FRAME = 100
/** Longest wait before another attempt, in ms. */
const WAIT_MAX = 10_000

/**
 * How long to wait before another attempt: longer each time, and never for all the same.
 *
 * @param {number} attempt 1 for the first after a connection that worked
 * @param {number} random in 0–1
 */
export function waitBefore(attempt, random) {
  const most = Math.min(300 * 2 ** attempt, WAIT_MAX)
  return Math.round(most * (0.5 + random / 2))
}

/**
 * Why a seat is over, as the page says it: the end of a `state.lost.*`.
 *
 * @param {number} code
 * @param {string} reason
 */
export function lostBecause(code, reason) {
  const said = ["taken_over", "expired", "evicted", "idle", "revoked"].find((why) => why === reason)
  if (said) return said
  if (code === 4401) return "signin"
  if (code === 4403) return "role"
  if (code === 4404) return "revoked"
  if (code === 4411) return "idle"
  if (code === 4413) return "too-large"
  return code === 4410 ? "expired" : "malformed"
}

/**
 * Who has the seat, as the close frame says it.
 *
 * @param {string} reason JSON
 * @returns {Holder}
 */
export function holderIn(reason) {
  try {
    const { holder } = JSON.parse(reason)
    return {
      name: String(holder?.name ?? ""),
      since: typeof holder?.since === "string" ? holder.since : null,
      own: holder?.you === true,
    }
  } catch {
    return { name: "", since: null, own: false }
  }
}

export class Connection extends EventTarget {
  /** @type {Phase} */
  phase = "opening"
  /** @type {Holder | null} */
  holder = null
  why = ""
  draining = false

  #granted = false
  #uncertain = false
  #attempts = 0
  #wait = 0
  #timer = 0
  #stopped = new AbortController()

  /**
   * @param {import("./vendor.js").Y.Doc} doc
   * @param {string} link
   * @param {import("./api.js").Role} role
   */
  constructor(doc, link, role) {
    super()
    const server = `${location.origin.replace(/^http/, "ws")}/ws/share-links`
    this.provider = new WebsocketProvider(server, `${link}/${role}`, doc, {
      connect: false,
      disableBc: true,
      params: { events: "1" },
      // Never by itself: `#closed` decides.
      shouldReconnect: () => false,
    })
    this.awareness = this.provider.awareness
    this.provider.messageHandlers[EVENT_FRAME] = (_encoder, decoder) => {
      const text = readVarString(decoder)
      // Later, not inside the provider's own reading: whoever listens may close the socket.
      queueMicrotask(() => this.#told(text))
    }
  }

  start() {
    const { signal } = this.#stopped
    this.provider.on("sync", this.#settle)
    this.provider.on("status", this.#status)
    this.provider.on("closed", this.#closed)
    window.addEventListener("online", () => this.#connectNow(), { signal })
    document.addEventListener("visibilitychange", () => document.hidden || this.#connectNow(), { signal })
    this.provider.connect()
  }

  /** Leaves the seat. */
  stop() {
    this.#stopped.abort()
    window.clearTimeout(this.#timer)
    this.provider.destroy()
  }

  /** Asks for the seat once more. @param {{ takeover?: boolean }} [options] */
  again({ takeover = false } = {}) {
    if (takeover) this.provider.params = { events: "1", takeover: "1" }
    this.#attempts = 0
    this.why = ""
    this.#become("opening")
    this.provider.connect()
  }

  /** @param {{ status: string }} given */
  #status = ({ status }) => {
    if (status !== "disconnected") return
    this.#granted = false
    this.#uncertain = false
    if (this.phase === "seated" || this.phase === "uncertain") this.#become("offline")
  }

  #settle = () => {
    if (!this.#granted || !this.provider.synced) return
    this.#attempts = 0
    this.#become(this.#uncertain ? "uncertain" : "seated")
  }

  /** @param {string} text */
  #told(text) {
    /** @type {Told} */
    let told
    try {
      told = JSON.parse(text)
    } catch {
      return
    }
    if (told.event === "seat.granted") {
      this.#granted = true
      this.draining = false
      // A second take-over must be asked for by a person, or two tabs would evict each other.
      this.provider.params = { events: "1" }
      if (typeof told.resume === "string" && told.resume !== "") {
        this.provider.params.resume = told.resume
      }
      this.#settle()
    } else if (told.event === "seat.uncertain" || told.event === "seat.restored") {
      this.#uncertain = told.event === "seat.uncertain"
      this.#settle()
    } else if (told.event === "seat.lost") {
      this.why = lostBecause(4410, String(told.reason))
    } else if (told.event === "server.draining") {
      this.draining = true
      this.#wait = Number(told.reconnect_after_ms) || 0
    }
    this.dispatchEvent(new CustomEvent("told", { detail: told }))
  }

  /** @param {{ code: number, reason: string }} close */
  #closed = ({ code, reason }) => {
    if (code === 4409) {
      this.holder = holderIn(reason)
      return this.#become("taken")
    }
    if (4400 <= code && code < 4500) {
      this.why = lostBecause(code, reason || this.why)
      return this.#become("lost")
    }
    this.#attempts++
    if (this.phase !== "opening" || 2 < this.#attempts) this.#become("offline")
    window.clearTimeout(this.#timer)
    const wait = this.#wait + waitBefore(this.#attempts, Math.random())
    this.#wait = 0
    this.#timer = window.setTimeout(() => this.provider.connect(), wait)
  }

  /** The network is back, or somebody looks at the page again: no need to wait longer. */
  #connectNow() {
    if (this.phase !== "offline" && this.phase !== "opening") return
    window.clearTimeout(this.#timer)
    this.provider.connect()
  }

  /** @param {Phase} phase */
  #become(phase) {
    if (phase === this.phase) return
    this.phase = phase
    this.dispatchEvent(new Event("phase"))
  }
}
