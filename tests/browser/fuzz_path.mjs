// @ts-check
/**
 * The way of one page to the server: an HTTP proxy of its browser context, so that the page keeps the server's origin.
 *
 * A cut closes every connection and refuses new ones. A held path delays what either side sends.
 */

import { createServer, request } from "node:http"
import { connect } from "node:net"

/** @typedef {import("node:stream").Duplex} Duplex */

export class Path {
  /** @type {Set<Duplex>} */
  #sockets = new Set()
  #isCut = false
  /** The calls that wait for the release of a held path. @type {(() => void)[] | null} */
  #held = null
  /** Requests without a whole response. */
  pending = 0
  #server = createServer((incoming, outgoing) => this.#pass(() => this.#forward(incoming, outgoing)))

  constructor() {
    this.#server.on("connection", (socket) => (this.#isCut ? socket.destroy() : this.#watch(socket)))
    this.#server.on("connect", ({ url = "" }, socket) => {
      const { hostname, port } = new URL(`http://${url}`)
      const upstream = this.#watch(connect(Number(port), hostname))
      upstream.once("connect", () => socket.write("HTTP/1.1 200 OK\r\n\r\n"))
      this.#join(socket, upstream)
      this.#join(upstream, socket)
    })
  }

  /** @returns {Promise<string>} the address of the proxy */
  async start() {
    await new Promise((resolve) => this.#server.listen(0, "127.0.0.1", () => resolve(undefined)))
    const address = this.#server.address()
    return `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`
  }

  stop() {
    this.#isCut = true
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
  }

  get isOpen() {
    return !this.#isCut && this.#held === null
  }

  cut() {
    this.#held = null
    this.#isCut = true
    for (const socket of this.#sockets) socket.destroy()
  }

  hold() {
    if (!this.#isCut) this.#held ??= []
  }

  /** New connections pass, and so does what was held. */
  open() {
    this.#isCut = false
    const held = this.#held ?? []
    this.#held = null
    for (const pass of held) pass()
  }

  /** @param {() => void} act */
  #pass(act) {
    if (this.#held) this.#held.push(act)
    else act()
  }

  /** @template {Duplex} Socket @param {Socket} socket */
  #watch(socket) {
    this.#sockets.add(socket)
    socket.on("error", () => socket.destroy())
    socket.on("close", () => this.#sockets.delete(socket))
    return socket
  }

  /** @param {Duplex} from @param {Duplex} to */
  #join(from, to) {
    from.on("data", (/** @type {Buffer} */ bytes) => this.#pass(() => to.writable && to.write(bytes)))
    from.on("close", () => this.#pass(() => to.destroy()))
  }

  /** @param {import("node:http").IncomingMessage} incoming @param {import("node:http").ServerResponse} outgoing */
  #forward(incoming, outgoing) {
    const { method, url = "", headers } = incoming
    this.pending += 1
    outgoing.once("close", () => (this.pending -= 1))
    const upstream = request(url, { method, headers }, (answer) => {
      this.#pass(() => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(outgoing)
      })
    })
    upstream.once("error", () => outgoing.destroy())
    incoming.pipe(upstream)
  }
}
