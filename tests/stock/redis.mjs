// @ts-check
/** A private Redis, for several servers. */
import { spawn } from "node:child_process"
import { createServer } from "node:net"
import { createInterface } from "node:readline"

export class Redis {
  static async start() {
    const port = await freePort()
    const child = spawn("redis-server", ["--port", String(port), "--bind", "127.0.0.1", "--save", ""], {
      stdio: ["ignore", "pipe", "ignore"],
    })
    for await (const line of createInterface({ input: child.stdout })) {
      if (!/Ready to accept connections/.test(line)) continue
      // Unread, its end would stay unseen, and node would wait for it.
      child.stdout.resume()
      return new Redis(child, port)
    }
    throw new Error("redis-server did not start")
  }

  /** @param {import("node:child_process").ChildProcess} child @param {number} port */
  constructor(child, port) {
    this.process = child
    this.url = `redis://127.0.0.1:${port}`
  }

  /** @param {NodeJS.Signals} signal */
  signal(signal) {
    this.process.kill(signal)
  }

  async stop() {
    const ended = new Promise((done) => this.process.once("exit", done))
    this.process.kill("SIGKILL")
    await ended
  }
}

/** @returns {Promise<number>} */
export function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer().once("error", reject)
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      const port = typeof address === "object" && address ? address.port : 0
      server.close(() => resolve(port))
    })
  })
}
