/** One seat in a host's own editor, on top of the `WebsocketProvider` of `y-websocket`, which the host brings. */

import type { Awareness } from "y-protocols/awareness"
import type * as Y from "yjs"
import { closed, GalleyError } from "./failures.ts"
import { Reviews } from "./reviews.ts"
import { watchSaved, type SavedState } from "./saved_state.ts"

export { GalleyError, Reviews }

/** `uncertain`: the server rejects edits until it has renewed the lease. */
export type State = "closed" | "opening" | "waiting" | "open" | "uncertain"
/** `event` is the name; the fields are those of the protocol. */
export type ServerEvent = { event: string, [field: string]: any }
/** The values for listeners; `closed` is each end of a socket, also if the session reconnects. */
export type Events = { event: ServerEvent, state: State, saved: boolean, closed: GalleyError }

/** The part of a `WebsocketProvider` of y-websocket 3.1 that a session uses. */
export type Provider = { ws: WebSocket | null, params: Record<string, string>, protocols: string[], awareness: Awareness,
  synced: boolean, messageHandlers: ((...message: any[]) => void)[], connect(): void, disconnect(): void, destroy(): void,
  on(name: string, listener: (value: any) => void): unknown }

/**
 * `galley` is the origin of the server. `token` returns a new token of the user from the host's backend: a session
 * calls it at its start and a minute before each end. With `wait`, up to 300 s, a claim of a taken seat is queued.
 */
export type Options = { galley: string, link: string, role: "writer" | "reviewer", token: () => string | Promise<string>,
  doc: Y.Doc, WebsocketProvider: new (url: string, room: string, doc: any, options: object) => Provider, wait?: number }

/** Types of frames, and the first type of sync. */
const [SYNC, EVENT, TOKEN, STEP_1] = [0, 100, 101, 0]
/** In ms. */
const [RENEW_BEFORE, RENEW_PAUSE, TIMER_MAX, BACKOFF, BACKOFF_MAX] = [60_000, 1_000, 2 ** 31 - 1, 300, 10_000]
/** The close code of a socket that broke. */
const ABNORMAL = 1006
const LEFT = new GalleyError(1000, "left", { retry: "never" })

export class Session {
  readonly text: Y.Text
  readonly provider: Provider
  readonly reviews: Reviews
  /** For the editor: a reviewer's edit ends the session, because the replica no longer equals the document. */
  readonly editable: boolean
  state: State = "closed"
  /** All edits of this replica survive any crash of the server. */
  saved = true
  #token = ""
  #newToken: Options["token"]
  /** The token of the socket. */
  #presented = ""
  /** The server accepted a token since its last refusal. */
  #isAccepted = false
  #isGranted = false
  #savedState: SavedState
  #attempts = 0
  #drainDelay = 0
  #reconnectWithin = 0
  #opened: (error?: GalleyError) => void = () => undefined
  #reconnect: ReturnType<typeof setTimeout> | undefined
  #renewal: ReturnType<typeof setTimeout> | undefined
  #listeners: { name: keyof Events, listener: (value: any) => void }[] = []

  constructor({ galley, link, role, token, doc, WebsocketProvider, wait }: Options) {
    this.editable = role === "writer"
    this.text = doc.getText("content")
    this.#newToken = token
    const params = { events: "1", ...(wait ? { wait: String(wait) } : {}) }
    // Tabs exchange edits by the server alone, and the session decides about each reconnect.
    const options = { connect: false, disableBc: true, params, shouldReconnect: () => false }
    this.provider = new WebsocketProvider(`${galley.replace(/^http/, "ws")}/ws/share-links`, `${link}/${role}`, doc, options)
    this.#savedState = watchSaved(this.text, this.provider, (saved) => saved !== this.saved && this.#emit("saved", (this.saved = saved)))
    const current = async () => (this.state === "closed" ? this.#renew() : this.#token)
    this.reviews = new Reviews({ link: `${galley}/api/share-links/${link}`, text: this.text, token: current })
    this.#receiveMessages(this.provider.messageHandlers)
    this.provider.on("sync", () => this.#enter())
    this.provider.on("status", ({ status }) => this.#change(status))
    this.provider.on("closed", ({ code, reason }) => this.#end(code, reason))
  }

  /** @returns removes the listener */
  on<K extends keyof Events>(name: K, listener: (value: Events[K]) => void): () => void {
    const entry = { name, listener }
    this.#listeners.push(entry)
    return () => void (this.#listeners = this.#listeners.filter((other) => other !== entry))
  }

  /**
   * Claims the seat, also again after a close. Rejects with a `GalleyError` when the session does not reconnect.
   *
   * @param options `takeover`: ends another session of the same user
   */
  open({ takeover = false }: { takeover?: boolean } = {}): Promise<this> {
    if (takeover) this.provider.params.takeover = "1"
    this.#setState("opening")
    this.#connect(0)
    return new Promise((resolve, reject) => (this.#opened = (error) => (error ? reject(error) : resolve(this))))
  }

  /** Leaves the seat for good. The document stays with the host. */
  close(): void {
    this.#finish(LEFT)
    this.#savedState.stop()
    this.provider.destroy()
  }

  #receiveMessages(handlers: Provider["messageHandlers"]): void {
    const sync = handlers[SYNC]
    handlers[SYNC] = (encoder, decoder, ...more) => {
      const isStep1 = decoder.arr[decoder.pos] === STEP_1
      sync?.(encoder, decoder, ...more)
      if (isStep1) this.#savedState.setAnswered(true)
    }
    handlers[EVENT] = (_encoder, { arr, pos }: { arr: Uint8Array, pos: number }) => {
      // The JSON follows its length, whose last byte is below 128.
      this.#receive(JSON.parse(new TextDecoder().decode(arr.subarray(arr.findIndex((byte, at) => pos <= at && byte < 128) + 1))))
    }
  }

  #receive(event: ServerEvent): void {
    this.#emit("event", event)
    switch (event.event) {
      case "seat.granted":
        this.#isGranted = this.#isAccepted = true
        delete this.provider.params.takeover
        this.provider.params.resume = event.resume
        this.#reconnectWithin = Number(event.reconnect_within_ms) || 0
        this.#present()
        return this.#enter()
      case "seat.waiting":
        this.#isAccepted = true
        return this.#setState("waiting")
      case "seat.uncertain":
        return this.#setState("uncertain")
      case "seat.restored":
        return this.#enter()
      case "document.saved":
        return this.#savedState.saved(event.state_vector)
      case "server.draining":
        return void (this.#drainDelay = event.reconnect_after_ms)
      case "denied":
        this.#savedState.setAnswered(false)
        return event.reason === "not-the-writer" ? this.#finish(closed(4403, event.reason)) : undefined
      case "problem":
        return event.type === "/problems/document-reset" ? this.#finish(closed(4410, "document-reset")) : undefined
    }
  }

  #change(status: string): void {
    if (status === "connecting") this.#presented = this.#token
    if (status !== "disconnected") return
    this.#isGranted = false
    this.#savedState.setAnswered(false)
    if (this.state !== "closed") this.#setState("opening")
  }

  #enter(): void {
    if (!this.#isGranted || !this.provider.synced) return
    this.#attempts = 0
    this.#setState("open")
    this.#opened()
  }

  #end(code: number, reason: string): void {
    const error = closed(code, reason, this.#isAccepted)
    if (!error.reconnects) return this.#finish(error)
    this.#emit("closed", error)
    // Clients of a lost server reconnect at random times; one that closes a socket lives.
    if (code !== ABNORMAL) this.#reconnectWithin = 0
    const bound = Math.min(BACKOFF * 2 ** this.#attempts, BACKOFF_MAX)
    const most = this.#attempts++ === 0 ? Math.max(bound, this.#reconnectWithin) : bound
    const backoff = bound / 2 + Math.random() * (most - bound / 2)
    if (code === 4401) this.#isAccepted = false
    this.#connect(this.#drainDelay + backoff)
    this.#drainDelay = 0
  }

  /** A token that the server has not accepted is replaced first. */
  #connect(delay: number): void {
    clearTimeout(this.#reconnect)
    this.#reconnect = setTimeout(async () => {
      try {
        if (!this.#isAccepted) await this.#renew()
        if (this.state !== "closed") this.provider.connect()
      } catch {
        this.#finish(closed(4401, "no-token"))
      }
    }, delay)
  }

  #finish(error: GalleyError): void {
    if (this.state === "closed") return
    clearTimeout(this.#reconnect)
    clearTimeout(this.#renewal)
    this.#isAccepted = false
    delete this.provider.params.resume
    this.#setState("closed")
    this.provider.disconnect()
    if (error !== LEFT) this.#emit("closed", error)
    this.#opened(error)
  }

  async #renew(): Promise<string> {
    clearTimeout(this.#renewal)
    try {
      this.#token = await this.#newToken()
      this.provider.protocols = ["galley", `galley.token.${this.#token}`]
      this.#present()
      return this.#token
    } finally {
      this.#scheduleRenewal()
    }
  }

  /** A token of less than two minutes is renewed at half of its rest, as is one after a failure. */
  #scheduleRenewal(): void {
    const left = endOf(this.#token) - Date.now()
    if (this.state === "closed" || !(0 < left)) return
    const delay = Math.min(Math.max(left - RENEW_BEFORE, left / 2, RENEW_PAUSE), TIMER_MAX)
    this.#renewal = setTimeout(() => this.#renew().catch(() => undefined), delay)
  }

  /** Renews the token of an open socket, which keeps its seat or its position in the queue. */
  #present(): void {
    const { ws } = this.provider
    if (ws?.readyState !== WebSocket.OPEN || this.#token === this.#presented) return
    this.#presented = this.#token
    const bytes = new TextEncoder().encode(this.#token)
    // A var-string, whose length takes two bytes: a token has 128 to 16,383.
    ws.send(Uint8Array.of(TOKEN, 128 | (bytes.length & 127), bytes.length >> 7, ...bytes))
  }

  #setState(state: State): void {
    if (state !== this.state) this.#emit("state", (this.state = state))
  }

  #emit<K extends keyof Events>(name: K, value: Events[K]): void {
    for (const each of this.#listeners) if (each.name === name) each.listener(value)
  }
}

/** The end of a token, in ms since 1970. Throws for a text that is no token. */
const endOf = (token: string): number =>
  1_000 * JSON.parse(atob((token.split(".")[1] ?? "").replaceAll("-", "+").replaceAll("_", "/"))).exp
