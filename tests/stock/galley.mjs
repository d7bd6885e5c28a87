// @ts-check
/** A running `galley` for the tests of the stock clients, and people to use it. */
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, resolve } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"

const here = dirname(fileURLToPath(import.meta.url))
const binary = resolve(process.env.GALLEY_BIN ?? join(here, "../../target/debug/galley"))

/** A server in a folder of its own; `stop` ends it and removes the folder. */
export class Galley {
  /** @param {Record<string, string>} settings by their environment names */
  static async start(settings = {}) {
    const folder = mkdtempSync(join(tmpdir(), "galley-stock-"))
    const galley = new Galley(folder, settings)
    await galley.run()
    return galley
  }

  /** @param {string} folder @param {Record<string, string>} settings */
  constructor(folder, settings) {
    this.folder = folder
    this.settings = settings
    this.url = ""
    this.port = "0"
  }

  /** Starts the process, on the port it had before if there was one. */
  async run() {
    const listen = { GALLEY_SERVER__LISTEN: `127.0.0.1:${this.port}` }
    const env = { ...process.env, ...this.settings, ...listen }
    this.process = spawn(binary, { cwd: this.folder, env, stdio: ["ignore", "pipe", "ignore"] })
    for await (const line of createInterface({ input: this.process.stdout })) {
      this.url = /** @type {RegExpMatchArray} */ (line.match(/http:\/\/[^\s/]+/))[0]
      this.port = /** @type {string} */ (this.url.split(":").pop())
      return
    }
    throw new Error(`${binary} did not start`)
  }

  /** @param {NodeJS.Signals} signal */
  async end(signal) {
    const process = /** @type {import("node:child_process").ChildProcess} */ (this.process)
    if (process.exitCode !== null || process.signalCode !== null) return
    const ended = new Promise((done) => process.once("exit", done))
    process.kill(signal)
    await ended
  }

  async stop() {
    await this.end("SIGKILL")
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
