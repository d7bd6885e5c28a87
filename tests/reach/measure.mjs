// @ts-check
/**
 * Measures what each act costs on real servers, and whole runs for `calibrate`; writes `measured.json`.
 *
 *     GALLEY_BIN=target/release/galley node tests/reach/measure.mjs [FILE]
 *
 * `PAIRS` and `SECONDS` change the size of each measurement. Servers, a private Redis and a private PostgreSQL are processes of this machine; their processor time is that of
 * `/proc`, so other work on the machine falsifies waits and not costs. The clients are this process.
 */

import { execFileSync } from "node:child_process"
import { readFileSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

// @ts-expect-error -- it comes without types
import { WebSocket } from "ws"
import * as Y from "yjs"

import { Galley } from "../stock/galley.mjs"
import { Redis } from "../stock/redis.mjs"
import { Postgres } from "../upgrade/postgres.mjs"

const started = Date.now()
const tell = (/** @type {string} */ what) => console.error(`${Math.round((Date.now() - started) / 1e3)} s: ${what}`)

/** @typedef {Awaited<ReturnType<Galley["desk"]>>} Desk */

/** Seconds of each measurement, after some to settle. */
const SECONDS = Number(process.env.SECONDS ?? 15)
const SETTLE = 3
/** Pairs of most measurements. */
const PAIRS = Number(process.env.PAIRS ?? 240)
/** A tick of the processor clock in /proc, in seconds. */
const CLOCK = 1 / Number(execFileSync("getconf", ["CLK_TCK"], { encoding: "utf8" }))
const LIMITS = ["MESSAGES_PER_SECOND", "MESSAGE_BURST", "REQUESTS_PER_SECOND", "REQUEST_BURST", "JOINS_PER_SECOND", "JOIN_BURST", "GUESTS_PER_SECOND", "GUEST_BURST"]
/** Commands that a client sends; the others of the statistics belong to scripts. */
const OF_CLIENTS = /^cmdstat_(evalsha|eval|publish|spublish|subscribe|unsubscribe|ssubscribe|sunsubscribe|script\|load):calls=(\d+)/gm

const sleep = (/** @type {number} */ ms) => new Promise((done) => setTimeout(done, ms))
const now = () => performance.now()
/** @param {number[]} values @param {number} share */
const quantile = (values, share) => [...values].sort((a, b) => a - b)[Math.max(0, Math.ceil(share * values.length) - 1)] ?? 0

/** The processor time of a process and of the children that it has waited for, in seconds. @param {number} pid */
function processor(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  return [11, 12, 13, 14].reduce((sum, at) => sum + Number(fields[at]), 0) * CLOCK
}

/** The processes below one. @param {number} parent */
function below(parent) {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name)).map(Number)
  return pids.filter((pid) => {
    try {
      return Number(readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) \S+ /s, "").split(" ")[0]) === parent
    } catch {
      return false
    }
  })
}

/** A client of one seat. It types into its document, or sees what arrives. */
class Seat {
  /** @type {any} */
  socket = null
  doc = new Y.Doc()
  resume = ""
  attempts = 0
  granted = () => {}
  length = 0

  /** @param {Pair} pair @param {"writer" | "reviewer"} role @param {Galley} server */
  constructor(pair, role, server) {
    Object.assign(this, { pair, role, server })
    /** @type {Pair} */ this.pair
    /** @type {"writer" | "reviewer"} */ this.role
    /** @type {Galley} */ this.server
    this.doc.on("update", (/** @type {Uint8Array} */ update, /** @type {unknown} */ origin) => {
      if (origin !== this) this.socket.send(frame(2, update))
    })
  }

  /** @returns {Promise<number>} ms until the seat is granted */
  sit() {
    const { pair, role } = this
    const began = now()
    const query = new URLSearchParams({ events: "1", token: pair.desk[role], ...(this.resume && { resume: this.resume }) })
    const socket = new WebSocket(`${this.server.url.replace("http", "ws")}/ws/share-links/${pair.desk.link}/${role}?${query}`, { perMessageDeflate: false })
    this.socket = socket
    socket.on("open", () => socket.send(frame(0, Y.encodeStateVector(this.doc))))
    socket.on("message", (/** @type {Buffer} */ data) => this.receive(data))
    socket.on("error", () => {})
    socket.on("close", (/** @type {number} */ code, /** @type {Buffer} */ reason) => socket === this.socket && this.closed(code, String(reason)))
    return new Promise((done) => (this.granted = () => done(now() - began)))
  }

  /** @param {number} code @param {string} reason */
  closed(code, reason) {
    tell(`${this.role}: closed by ${code} ${reason}`)
    // The promise of `sit` waits for the seat of this attempt, too.
    const { granted } = this
    setTimeout(() => void this.sit().then(granted), 500)
  }

  /** @param {Buffer} data */
  receive(data) {
    if (data[0] === 100) {
      const event = JSON.parse(data.subarray(data.indexOf(123)).toString())
      if (event.event !== "seat.granted") return
      this.resume = event.resume
      this.attempts = 0
      return this.granted()
    }
    if (data[0] !== 0) return
    const content = bytesOf(data)
    if (data[1] === 0) return this.socket.send(frame(1, Y.encodeStateAsUpdate(this.doc, content)))
    Y.applyUpdate(this.doc, content, this)
    const { length } = this.doc.getText("content")
    if (this.role === "reviewer" && data[1] === 2) this.pair.arrived(length - this.length)
    this.length = length
  }

  leave() {
    const { socket } = this
    this.socket = null
    socket.close()
  }
}

/** @param {number} kind of the sync protocol @param {Uint8Array} content */
function frame(kind, content) {
  const head = [0, kind]
  let rest = content.length
  while (rest > 127) {
    head.push(128 | (rest & 127))
    rest >>= 7
  }
  return Buffer.concat([Buffer.from([...head, rest]), content])
}

/** The content of a sync frame. @param {Buffer} data */
function bytesOf(data) {
  let at = 2
  while ((data[at] ?? 0) > 127) at++
  return data.subarray(at + 1)
}

class Pair {
  /** When each edit under way was typed. @type {number[]} */
  sent = []
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  timer

  /** @param {Desk} desk @param {Galley} first of the writer @param {Galley} second of the reviewer @param {number[]} waits */
  constructor(desk, first, second, waits) {
    Object.assign(this, { desk, waits })
    /** @type {Desk} */ this.desk
    /** @type {number[]} */ this.waits
    this.writer = new Seat(this, "writer", first)
    this.reviewer = new Seat(this, "reviewer", second)
    this.seats = [this.writer, this.reviewer]
  }

  /** @param {number} letters */
  arrived(letters) {
    this.sent.splice(0, letters).forEach((at) => this.waits.push(now() - at))
  }

  /** Types until `stop`. @param {number} rate keys a second */
  type(rate) {
    this.timer = setTimeout(() => {
      this.type(rate)
      if (this.writer.socket?.readyState !== WebSocket.OPEN) return
      this.sent.push(now())
      this.writer.doc.getText("content").insert(0, "x")
    }, ((0.5 + Math.random()) / rate) * 1e3)
  }

  stop() {
    clearTimeout(this.timer)
  }
}

/** Servers on one Redis and one PostgreSQL, and pairs. */
class Stand {
  /** Those that run: an error of the program ends them. @type {Set<Stand>} */
  static started = new Set()
  /** @type {number[]} */
  waits = []
  /** @type {Pair[]} */
  pairs = []
  /** @type {Desk[]} */
  desks = []

  /** @param {number} count of servers */
  static async start(count) {
    const stand = new Stand()
    Stand.started.add(stand)
    stand.redis = await Redis.start()
    stand.postgres = Postgres.start()
    const limits = LIMITS.map((name) => [`GALLEY_LIMITS__${name}`, "1000000"])
    const settings = { ...Object.fromEntries(limits), GALLEY_DATABASE__URL: stand.postgres.url, GALLEY_LOCKS__URL: stand.redis.url, GALLEY_LOG__LEVEL: "error" }
    const first = await Galley.start(settings)
    stand.servers = [first]
    while (stand.servers.length < count) stand.servers.push(await first.beside())
    return stand
  }

  constructor() {
    /** @type {Redis} */ this.redis
    /** @type {Postgres} */ this.postgres
    /** @type {Galley[]} */ this.servers = []
  }

  /** @param {number} count @param {number} [split] share of the pairs on two servers */
  async make(count, split = 0) {
    const [first] = this.servers
    while (first && this.desks.length < count) this.desks.push(await first.desk("A text."))
    const at = (/** @type {number} */ number) => /** @type {Galley} */ (this.servers[number % this.servers.length])
    this.pairs = this.desks.map((desk, number) => new Pair(desk, at(number), at(number < split * count ? number + 1 : number), this.waits))
  }

  get seats() {
    return this.pairs.flatMap((pair) => pair.seats)
  }

  /** Seats all, so many at a time; returns the ms of each. @param {number} atOnce */
  async sit(atOnce) {
    const [left, waits] = [this.seats, /** @type {number[]} */ ([])]
    const some = async () => {
      for (let seat = left.shift(); seat; seat = left.shift()) waits.push(await seat.sit())
    }
    await Promise.all(Array.from({ length: atOnce }, some))
    return waits
  }

  async leave() {
    this.pairs.forEach((pair) => pair.stop())
    this.seats.forEach((seat) => seat.leave())
    await sleep(1_000)
  }

  /** @param {string} section */
  info(section) {
    const port = this.redis.url.split(":").pop() ?? ""
    return execFileSync("redis-cli", ["-p", port, "info", section], { encoding: "utf8" })
  }

  async count() {
    const postmaster = Number(readFileSync(join(this.postgres.folder, "data/postmaster.pid"), "utf8").split("\n")[0])
    const [cpu, calls] = [this.info("cpu"), this.info("commandstats")]
    const used = [...cpu.matchAll(/^used_cpu_(?:sys|user):([\d.]+)/gm)].reduce((sum, [, seconds]) => sum + Number(seconds), 0)
    const metrics = await Promise.all(this.servers.map(async ({ url }) => (await fetch(`${url}/metrics`)).text()))
    const all = (/** @type {RegExp} */ name) => metrics.reduce((sum, text) => sum + Number(name.exec(text)?.[1] ?? 0), 0)
    return {
      at: now() / 1e3,
      server: this.servers.reduce((sum, { process }) => sum + processor(process?.pid ?? 0), 0),
      redis: used,
      postgres: [postmaster, ...below(postmaster)].reduce((sum, pid) => sum + processor(pid), 0),
      commands: [...calls.matchAll(OF_CLIENTS)].reduce((sum, [, , count]) => sum + Number(count), 0),
      groups: all(/^galley_document_persist_seconds_count(?:\{.*\})? (\S+)/m),
      committing: all(/^galley_document_persist_seconds_sum(?:\{.*\})? (\S+)/m),
    }
  }

  /** Processor time, commands and groups of `act`. @param {() => Promise<unknown>} act */
  async cost(act) {
    const before = await this.count()
    const result = await act()
    const after = await this.count()
    const entries = Object.entries(after).map(([name, value]) => [name, value - before[/** @type {keyof typeof before} */ (name)]])
    return { ...Object.fromEntries(entries), result }
  }

  /** The same for a second of typing. @param {number} rate @param {number} [count] of the pairs */
  async typing(rate, count = PAIRS) {
    if (rate) this.pairs.slice(0, count).forEach((pair) => pair.type(rate))
    await sleep(SETTLE * 1e3)
    this.waits.length = 0
    const { at, server, redis, postgres, commands, groups, committing } = await this.cost(() => sleep(SECONDS * 1e3))
    this.pairs.forEach((pair) => pair.stop())
    const [edits, waits] = [this.waits.length, [...this.waits]]
    await sleep(500)
    return { server: server / at, redis: redis / at, postgres: postgres / at, commands: commands / at, groups: groups / at, commit: groups ? committing / groups : 0, edits: edits / at, waits }
  }

  async stop() {
    Stand.started.delete(this)
    this.seats.forEach((seat) => (seat.socket = null))
    for (const server of this.servers.reverse()) await server.stop()
    await this.redis.stop()
    this.postgres.stop()
  }
}

/** The costs of single acts, in µs. */
async function costsOfActs() {
  const stand = await Stand.start(1)
  await stand.make(PAIRS)
  const sessions = 2 * PAIRS
  tell("documents made")
  const empty = await stand.typing(0)
  const first = await stand.cost(() => stand.sit(2))
  tell("seated")
  const idle = await stand.typing(0)
  const few = await stand.typing(4, PAIRS / 8)
  const many = await stand.typing(4)
  tell("typed")
  const reviews = await stand.cost(() => reviewAll(stand))
  const leave = await stand.cost(() => stand.leave())
  await stand.stop()
  const us = (/** @type {number} */ seconds) => Math.round(seconds * 1e8) / 100
  const net = (/** @type {"server" | "postgres" | "redis"} */ what) => (idle[what] - empty[what]) / sessions
  // Two loads, two unknowns: the edit or row, and the group.
  const solve = (/** @type {"server" | "postgres"} */ what) => {
    const [a, b] = [few, many].map((it) => ({ cost: it[what] - idle[what], edits: it.edits, groups: it.groups }))
    if (!a || !b) throw new Error("two loads")
    const each = (b.cost * a.groups - a.cost * b.groups) / (b.edits * a.groups - a.edits * b.groups)
    return { each, group: (a.cost - each * a.edits) / a.groups }
  }
  const [server, postgres] = [solve("server"), solve("postgres")]
  const ticks = 1 / 4
  const joins = { server: first.server - idle.server * first.at, postgres: first.postgres - idle.postgres * first.at, redis: first.redis - idle.redis * first.at }
  console.error(JSON.stringify({ empty: { ...empty, waits: 0 }, idle: { ...idle, waits: 0 }, few: { ...few, waits: 0 }, many: { ...many, waits: 0 } }))
  return {
    server_edit: us(server.each),
    server_group: us(server.group),
    server_join: us(Math.max(first.server - (idle.server * first.at) / 2, joins.server) / sessions),
    server_review: us((reviews.server - idle.server * reviews.at) / reviews.result),
    server_idle: us(net("server")),
    commit_wait: us(Math.max(0, few.commit - postgres.group - postgres.each)),
    redis_claim: us((first.redis - (idle.redis * first.at) / 2 + leave.redis - idle.redis * leave.at) / sessions),
    postgres_group: us(postgres.group + postgres.each),
    postgres_row: us(postgres.each),
    postgres_join: us((first.postgres - (idle.postgres * first.at) / 2) / sessions),
    postgres_review: us((reviews.postgres - idle.postgres * reviews.at) / reviews.result),
    postgres_idle: us(net("postgres")),
    commands_join: Math.round(first.commands / sessions),
    commands_leave: Math.round(leave.commands / sessions),
    commands_tick: Math.max(0, Math.round(idle.commands / ticks - Math.ceil(sessions / 250))),
    relay_p50: us(quantile(few.waits, 0.5) / 1e3),
    relay_p99: us(quantile(few.waits, 0.99) / 1e3),
    join_p50: us(quantile(first.result, 0.5) / 1e3),
    join_p99: us(quantile(first.result, 0.99) / 1e3),
  }
}

/** One review in each document, four at a time. @param {Stand} stand */
async function reviewAll(stand) {
  const left = stand.pairs.filter((pair) => pair.reviewer.socket?.readyState === WebSocket.OPEN)
  const some = async () => {
    for (let pair = left.shift(); pair; pair = left.shift()) {
      const quote = pair.writer.doc.getText("content").toString().slice(0, 4)
      const body = { anchor: { start: 0, end: 4, quote }, body: "?" }
      await pair.reviewer.server.call("POST", `/api/share-links/${pair.desk.link}/reviews`, body, pair.desk.reviewer)
    }
  }
  const count = left.length
  await Promise.all(Array.from({ length: 4 }, some))
  return count
}

/** A run whose figures the simulation predicts. @param {number} servers @param {number} rate @param {number} split */
async function typed(servers, rate, split) {
  const stand = await Stand.start(servers)
  await stand.make(PAIRS, split)
  const empty = await stand.cost(() => sleep(3_000))
  await stand.sit(8)
  tell(`${servers} servers, seated`)
  const found = await stand.typing(rate)
  tell("typed")
  const measured = {
    "server cores": found.server,
    ...(split && { "Redis cores": found.redis - empty.redis / empty.at }),
    "PostgreSQL cores": found.postgres,
    "Redis commands a second": found.commands,
    "groups a second": found.groups,
    "edit p50 ms": quantile(found.waits, 0.5),
    "edit p99 ms": quantile(found.waits, 0.99),
  }
  return { stand, run: { name: `${servers} servers, ${PAIRS} pairs × ${rate}/s, ${split * 100} % split`, pairs: PAIRS, servers, rate, split, visits: 0, down: 0, commit_ms: found.commit * 1e3, fault_at: SETTLE + SECONDS, seconds: SETTLE + SECONDS, measured }, found }
}

/** `kill -9` of the first server, which starts again `after` the kill if it is the only one. @param {Stand} stand @param {number} rate */
async function killed(stand, rate) {
  const [lost] = stand.servers
  if (!lost) throw new Error("no server")
  const others = stand.servers.length > 1 ? stand.servers.slice(1) : [lost]
  const again = /** @type {number[]} */ ([])
  const struck = stand.seats.filter((seat) => seat.server === lost && seat.socket?.readyState === WebSocket.OPEN)
  stand.pairs.forEach((pair) => pair.type(rate))
  await sleep(2_000)
  const began = now()
  const back = struck.map((seat) => new Promise((done) => {
    const retry = () => {
      const bound = Math.min(300 * 2 ** ++seat.attempts, 10_000)
      setTimeout(() => {
        seat.server = /** @type {Galley} */ (others[seat.pair.desk.link.charCodeAt(8) % others.length])
        void seat.sit().then(() => {
          again.push((now() - began) / 1e3)
          done(null)
        })
      }, bound * (0.5 + Math.random() / 2))
    }
    seat.closed = retry
  }))
  await lost.end("SIGKILL")
  if (others[0] === lost) await lost.run()
  const down = (now() - began) / 1e3
  await Promise.race([Promise.all(back), sleep(40_000)])
  if (again.length < struck.length) tell(`${struck.length - again.length} are not seated again`)
  stand.pairs.forEach((pair) => pair.stop())
  const alone = stand.servers.length === 1
  const measured = { "seated again p50 s": quantile(again, 0.5), "seated again p95 s": quantile(again, 0.95) }
  return { name: `kill -9 of one of ${stand.servers.length}`, pairs: PAIRS, servers: stand.servers.length, rate, split: 0, visits: 0, commit_ms: 1, down: alone ? down : 60, fault_at: 10, seconds: 40, measured }
}

async function measure() {
  const file = process.argv[2] ?? fileURLToPath(new URL("measured.json", import.meta.url))
  const load = readFileSync("/proc/loadavg", "utf8").split(" ")[1]
  const costs = await costsOfActs()
  const runs = []
  const one = await typed(1, 3, 0)
  runs.push(one.run, await killed(one.stand, 3))
  await one.stand.stop()
  const three = await typed(3, 3, 0)
  runs.push(three.run, await killed(three.stand, 3))
  await three.stand.stop()
  // A split edit costs its server a publication, and the other one its application.
  const split = await typed(3, 3, 1)
  runs.push(split.run)
  await split.stand.stop()
  const more = (/** @type {"server" | "redis"} */ what) => Math.round((Math.max(0, split.found[what] - three.found[what]) / split.found.edits) * 1e8) / 100
  const about = `node tests/reach/measure.mjs, ${new Date().toISOString().slice(0, 10)}, ${PAIRS} pairs, load ${load} before`
  // The renewal is that of the bench `renewal`: 10,000 locks in 20.2 ms.
  const all = { ...costs, server_received: more("server"), redis_message: more("redis"), redis_renewal: 2, round_trip: 100 }
  writeFileSync(file, `${JSON.stringify({ about, costs: all, runs }, null, 2)}\n`)
}

try {
  await measure()
} finally {
  for (const stand of Stand.started) await stand.stop()
}
