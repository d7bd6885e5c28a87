// @ts-check
/**
 * An hour of editing, in less than a minute: writers of three documents on two servers, with reviewers, all
 * of them stock clients. They lose their connection, type offline, reconnect to the other server, and
 * switch devices; the test also kills servers.
 *
 * `GALLEY_SESSION_HOURS` sets the number of hours, `GALLEY_SEED` replays a run.
 */
import assert from "node:assert/strict"
import { randomInt } from "node:crypto"
import { after, before, test } from "node:test"

import { Galley } from "./galley.mjs"
import { StockUser, Random } from "./stock_users.mjs"
import { Redis, freePort } from "./redis.mjs"

const DESKS = 3
/** The keystrokes of a fast typist in an hour. */
const KEYS_AN_HOUR = 18_000
const HOURS = Number(process.env.GALLEY_SESSION_HOURS ?? (process.env.GALLEY_SHORT ? 0.25 : 1))
const SEED = Number(process.env.GALLEY_SEED ?? randomInt(2 ** 31))
/** Rests at which all replicas must agree, and kills, in an hour. */
const RESTS_AN_HOUR = 4
const TIMEOUT_MS = 60_000
/** Short, so that the seats of a killed server are soon free. */
const SETTINGS = {
  GALLEY_DATABASE__SHARED_SQLITE: "true",
  GALLEY_SEATS__LEASE: "3s",
  GALLEY_SEATS__RENEW_EVERY: "500ms",
  // The clients type faster than users do.
  GALLEY_LIMITS__MESSAGES_PER_SECOND: "5000",
  GALLEY_LIMITS__MESSAGE_BURST: "50000",
}

/** @type {Redis} */
let redis
/** @type {Galley[]} */
let servers = []

before(async () => {
  redis = await Redis.start()
  const one = await Galley.start({ ...SETTINGS, GALLEY_LOCKS__URL: redis.url }, String(await freePort()))
  servers = [one, await one.beside(String(await freePort()))]
})
after(async () => {
  for (const user of users) user.end()
  for (const server of servers.slice(1)) await server.end("SIGKILL")
  await servers[0]?.stop()
  await redis.stop()
})

/**
 * @template T
 * @param {() => string} what
 * @param {() => T | Promise<T>} read
 */
async function until(what, read) {
  const deadline = Date.now() + TIMEOUT_MS
  for (;;) {
    const found = await read()
    if (found) return
    assert.ok(Date.now() < deadline, `GALLEY_SEED=${SEED}: never saw: ${what()}`)
    await pause(10)
  }
}

/** @param {number} ms @returns {Promise<void>} */
const pause = (ms) => new Promise((done) => setTimeout(done, ms))

/** All clients: an open one keeps node running. @type {StockUser[]} */
const users = []

/** @param {ConstructorParameters<typeof StockUser>[0]} who */
function newUser(who) {
  const user = new StockUser(who)
  users.push(user)
  return user
}

/** A document, its writer and its reviewer. */
class Desk {
  /** @param {number} number */
  static async open(number) {
    const first = /** @type {Galley} */ (servers[0])
    return new Desk(number, await first.desk("처음 Beginning 🙂\n"))
  }

  /** @param {number} number @param {Awaited<ReturnType<Galley["desk"]>>} desk */
  constructor(number, desk) {
    this.desk = desk
    this.random = new Random(SEED + number)
    const { link } = desk
    this.writer = newUser({ role: "writer", link, token: desk.writer, url: this.#server(), version: number, name: "Kim" })
    this.reviewer = newUser({ role: "reviewer", link, token: desk.reviewer, url: this.#server(), version: number + 1, name: "Lee" })
    this.version = number
    this.keys = 0
  }

  #server() {
    return this.random.one(servers).url
  }

  async connectBoth() {
    for (const newUser of [this.writer, this.reviewer]) newUser.connect(this.#server())
    await until(() => "both there", () => this.writer.isSynced && this.reviewer.isSynced)
  }

  /** Types until the total of pressed keys is reached, through all events in between. @param {number} keys */
  async work(keys) {
    while (this.writer.keys + this.keys < keys) {
      this.writer.act(this.random)
      const dice = this.random.below(1_000)
      if (dice < 4) await this.#offline()
      else if (dice < 6) await this.#otherDevice()
      else if (dice < 9) await this.#reviewerAway()
      // The client handles messages between two keys.
      else if (dice < 400) await pause(0)
    }
  }

  /** The writer types offline, and reconnects, perhaps to another server. */
  async #offline() {
    this.writer.disconnect()
    for (let acts = this.random.below(20); 0 < acts; acts -= 1) this.writer.act(this.random)
    await pause(this.random.below(100))
    this.writer.connect(this.#server())
    await until(() => `the writer back: ${this.writer.refusals}`, () => this.writer.isSynced)
  }

  /** The writer types offline on one device and connected on another; both are merged. */
  async #otherDevice() {
    this.writer.disconnect()
    const before = this.writer.read().length
    const { link } = this.desk
    const other = newUser({ role: "writer", link, token: this.desk.writer, url: this.#server(), version: this.version + 1, name: "Kim" })
    other.connect(this.#server())
    await until(() => `the other device: ${other.refusals}`, () => other.isSynced)
    for (let acts = 5; 0 < acts; acts -= 1) {
      this.writer.act(this.random)
      other.act(this.random)
    }
    // The writer's last edits may reach the other device late, or only with the writer, if a server was
    // killed before it stored them. Edits on a server without the other device are stored.
    for (const server of servers) {
      await until(() => "a server with all of the other device", async () => (await this.read(server)) === other.read())
    }
    this.keys += other.keys
    assert.deepEqual(other.refusals, [])
    other.end()
    this.writer.connect(this.#server())
    await until(() => `both devices in one, of ${before}`, () => this.writer.isSynced)
  }

  /** The reviewer leaves, its presence is removed, and it reconnects, perhaps to another server. */
  async #reviewerAway() {
    this.reviewer.disconnect()
    await until(() => `the reviewer gone: ${this.writer.presentRoles()}`, () => !this.writer.presentRoles().includes("reviewer"))
    this.reviewer.connect(this.#server())
    await until(() => `the reviewer back: ${this.reviewer.refusals}`, () => this.reviewer.isSynced)
  }

  /** Holds that all replicas are equal, and that each client sees the presence of the others only. */
  async rest() {
    await until(() => "both there", () => this.writer.isSynced && this.reviewer.isSynced)
    await until(() => "the reviewer reading the same", () => this.reviewer.read() === this.writer.read())
    for (const server of servers) {
      await until(() => "a server with the same", async () => (await this.read(server)) === this.writer.read())
    }
    const others = (/** @type {StockUser} */ newUser) => newUser.presentRoles().filter((role) => role !== "self").sort().join()
    for (const newUser of [this.writer, this.reviewer]) {
      const clients = () => newUser.provider.awareness.getStates().size
      await until(() => `two people: ${newUser.presentRoles()}`, () => clients() === 2 && others(newUser) !== "")
      assert.deepEqual(newUser.refusals, [], `GALLEY_SEED=${SEED}`)
    }
  }

  /** The text on a server; null if it is down. @param {Galley} server */
  async read(server) {
    const headers = { authorization: `Bearer ${this.desk.writer}` }
    const response = fetch(`${server.url}/api/documents/${this.desk.document}/text`, { headers })
    const answer = await response.catch(() => null)
    return answer?.ok ? answer.text() : null
  }
}

test("an hour of editing with stock clients ends with the same text everywhere", async () => {
  console.log(`session: ${HOURS} h from GALLEY_SEED=${SEED} on`)
  const random = new Random(SEED)
  const desks = await Promise.all(Array.from({ length: DESKS }, (_, number) => Desk.open(number)))
  await Promise.all(desks.map((desk) => desk.connectBoth()))
  const rests = Math.max(Math.round(RESTS_AN_HOUR * HOURS), 1)
  const each = (KEYS_AN_HOUR * HOURS) / DESKS
  for (let rest = 1; rest <= rests; rest += 1) {
    const working = Promise.all(desks.map((desk) => desk.work((each * rest) / rests)))
    await pause(random.below(1_000))
    const victim = random.one(servers)
    await victim.end("SIGKILL")
    await pause(random.below(500))
    await victim.run()
    await working
    await Promise.all(desks.map((desk) => desk.rest()))
  }
  const texts = desks.map((desk) => desk.writer.read())
  for (const { writer, reviewer } of desks) {
    writer.disconnect()
    reviewer.disconnect()
  }
  // A server without the document in memory: it reads the database.
  const third = await /** @type {Galley} */ (servers[0]).beside()
  try {
    for (const [number, desk] of desks.entries()) {
      assert.equal(await desk.read(third), texts[number], `GALLEY_SEED=${SEED}`)
    }
  } finally {
    await third.end("SIGKILL")
  }
  const keys = desks.reduce((sum, desk) => sum + desk.writer.keys + desk.keys, 0)
  console.log(`session: ${keys} keys, ${texts.map((text) => text.length)} characters`)
})
