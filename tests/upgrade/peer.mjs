// @ts-check
/** A stock client that holds a seat and collects the server's events. */
import * as decoding from "lib0/decoding"
// @ts-expect-error -- it comes without types
import { WebSocket } from "ws"
import { WebsocketProvider } from "y-websocket"
import * as Y from "yjs"

const WAIT_MS = 60_000
const EVENT = 100

/**
 * @template T
 * @param {string} what
 * @param {() => T | undefined | false | null | Promise<T | undefined | false | null>} read
 * @returns {Promise<T>}
 */
export async function until(what, read) {
  const giveUpAt = Date.now() + WAIT_MS
  for (;;) {
    const found = await read()
    if (found) return found
    if (giveUpAt < Date.now()) throw new Error(`never saw: ${what}`)
    await new Promise((done) => setTimeout(done, 5))
  }
}

export class Peer {
  /**
   * @param {string} url
   * @param {string} link
   * @param {string} role
   * @param {string} token
   * @param {Record<string, string>} [params]
   */
  constructor(url, link, role, token, params = {}) {
    this.doc = new Y.Doc()
    this.content = this.doc.getText("content")
    /** @type {any[]} */
    this.events = []
    /** @type {{ code: number, reason: string }[]} */
    this.closes = []
    const options = { params: { token, events: "1", ...params }, disableBc: true, WebSocketPolyfill: WebSocket }
    const base = `${url.replace("http", "ws")}/ws/share-links`
    this.provider = new WebsocketProvider(base, `${link}/${role}`, this.doc, options)
    this.provider.messageHandlers[EVENT] = (_, /** @type {any} */ decoder) => {
      this.events.push(JSON.parse(decoding.readVarString(decoder)))
    }
    this.provider.on("connection-close", (/** @type {any} */ close) => this.closes.push(close))
  }

  get text() {
    return this.content.toString()
  }

  synced() {
    return until("sync", () => this.provider.synced)
  }

  /** @param {string} name */
  event(name) {
    return until(name, () => this.events.find((event) => event.event === name))
  }

  /** @param {string} text */
  append(text) {
    this.content.insert(this.content.length, text)
  }

  /** Waits until `document.saved` names all edits of this replica. */
  saved() {
    const mine = Y.decodeStateVector(Y.encodeStateVector(this.doc))
    return until("document.saved of everything", () =>
      this.events.some((event) => {
        if (event.event !== "document.saved") return false
        const saved = Y.decodeStateVector(Buffer.from(event.state_vector, "base64"))
        return [...mine].every(([client, clock]) => clock <= (saved.get(client) ?? 0))
      }))
  }

  /** @param {string} text */
  reads(text) {
    return until(`the text ${JSON.stringify(text)}`, () => this.text === text)
  }

  leave() {
    this.provider.destroy()
    this.doc.destroy()
  }
}
