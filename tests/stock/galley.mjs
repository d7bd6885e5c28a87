// @ts-check
/** A running `galley` for the tests of the stock clients and of the page, and its users. */
import { spawn } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, resolve } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"

const here = dirname(fileURLToPath(import.meta.url))
// The server rejects unknown settings, so the variables of the tests are removed.
const isOurs = (/** @type {[string, unknown]} */ [name]) => name.startsWith("GALLEY_")
const inherited = Object.fromEntries(Object.entries(process.env).filter((each) => !isOurs(each)))
export const binary = resolve(process.env.GALLEY_BIN ?? join(here, "../../target/debug/galley"))

// The guests of a test share one address. A binary of an earlier version does not know these settings.
const unlimited = ["REQUESTS", "CLAIMS", "HANDLES"].map((what) => [`GALLEY_LIMITS__GUEST_${what}_PER_ADDRESS`, "0"])

/** A server in a folder of its own; `stop` ends it and removes the folder. */
export class Galley {
  /** Those that this process has started and not stopped: their logs belong to a failure. @type {Set<Galley>} */
  static started = new Set()
  /** Its log so far. */
  log = ""

  /**
   * @param {Record<string, string | undefined>} [settings] by their environment names
   * @param {string} [port] to listen on, where a load balancer has the public address
   * @param {string} [program] another binary than that of GALLEY_BIN
   */
  static async start(settings = {}, port = "0", program = binary) {
    if (!existsSync(program)) throw new Error(`${program}: build it, or name another in GALLEY_BIN`)
    const galley = new Galley(mkdtempSync(join(tmpdir(), "galley-")), settings)
    galley.binary = resolve(program)
    galley.port = port
    await galley.run()
    return galley
  }

  /** @param {string} folder @param {Record<string, string | undefined>} settings */
  constructor(folder, settings) {
    this.folder = folder
    this.settings = settings
    this.url = ""
    this.port = "0"
    this.binary = binary
    /** @type {import("node:child_process").ChildProcess | null} */
    this.process = null
  }

  /** Another server on the same data. End it before this one is stopped. @param {string} [port] */
  async beside(port = "0") {
    const galley = new Galley(this.folder, this.settings)
    galley.port = port
    await galley.run()
    return galley
  }

  /** Starts the process, on the port it had before if there was one. */
  async run() {
    const listen = { GALLEY_SERVER__LISTEN: `127.0.0.1:${this.port}` }
    // No test of a stop has a load balancer before the server.
    const limits = this.binary === binary ? Object.fromEntries(unlimited) : {}
    const env = { GALLEY_SERVER__LINGER: "0s", ...limits, ...inherited, ...this.settings, ...listen }
    const child = spawn(this.binary, { cwd: this.folder, env, stdio: ["ignore", "pipe", "pipe"] })
    this.process = child
    Galley.started.add(this)
    child.stderr.setEncoding("utf8").on("data", (/** @type {string} */ lines) => (this.log += lines))
    for await (const line of createInterface({ input: child.stdout })) {
      const url = /http:\/\/[^\s/]+/.exec(line)?.[0]
      if (!url) continue
      this.url = url
      if (this.port === "0") this.port = url.split(":").pop() ?? "0"
      // Unread, its end would stay unseen, and node would wait for it.
      child.stdout.resume()
      return
    }
    throw new Error(`${this.binary} said nothing of an address`)
  }

  /** @param {NodeJS.Signals} signal */
  async end(signal) {
    const child = this.process
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const ended = new Promise((done) => child.once("exit", done))
    child.kill(signal)
    await ended
  }

  get adminToken() {
    return readFileSync(join(this.folder, "data/admin-token"), "utf8").trim()
  }

  async stop() {
    await this.end("SIGKILL")
    Galley.started.delete(this)
    rmSync(this.folder, { recursive: true, force: true })
  }

  /** @param {string} method @param {string} path @param {unknown} body @param {string} [token] */
  async call(method, path, body, token) {
    /** @type {Record<string, string>} */
    const headers = { "content-type": "application/json" }
    if (token) headers.authorization = `Bearer ${token}`
    const response = await fetch(this.url + path, { method, headers, body: JSON.stringify(body) })
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
    return response.json()
  }

  /** A document with its link, its writer's token and its reviewer's. @param {string} text */
  async desk(text) {
    const writer = await this.call("POST", "/api/auth/guest", { name: "Kim" })
    const reviewer = await this.call("POST", "/api/auth/guest", { name: "Lee" })
    const document = await this.call("POST", "/api/documents", { title: "t", text }, writer.token)
    const path = `/api/documents/${document.id}/share-link`
    const link = await this.call("POST", path, {}, writer.token)
    const invite = { invite: link.invite.token }
    await this.call("POST", `/api/share-links/${link.id}/join`, invite, reviewer.token)
    return { document: document.id, link: link.id, writer: writer.token, reviewer: reviewer.token }
  }
}
