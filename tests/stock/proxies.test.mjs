// @ts-check
/**
 * `config/haproxy.cfg` and `config/nginx.conf` before three servers: both sessions of a pair meet on one server, all
 * other requests are spread, and two people work on while servers restart and die, and while Redis and PostgreSQL are
 * away. The test replaces their addresses and files, and leaves all else as it stands.
 */
import assert from "node:assert/strict"
import { execFileSync, spawn, spawnSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { after, before, test } from "node:test"

// @ts-expect-error -- it comes without types
import { WebSocket } from "ws"
import * as Y from "yjs"

import { Peer } from "../upgrade/peer.mjs"
import { Postgres } from "../upgrade/postgres.mjs"
import { Galley, binary } from "./galley.mjs"
import { read } from "./papers.mjs"
import { Redis, freePort } from "./redis.mjs"

const KINDS = ["haproxy", "nginx"]
const isShort = Boolean(process.env.GALLEY_SHORT)
// Each with two sockets; Debian's nginx.conf ends at 384 of them.
const PAIRS = isShort ? 50 : 450
/** Probes of HAProxy, one a second, for which Redis is away; the second one could take a server out. */
const PROBES_AWAY = isShort ? 4 : 30
const PROBES = /^galley_http_requests_total\{(?=.*"\/readyz")(?=.*"200")/
const TIMEOUT_MS = 60_000
// The proxies have a certificate that they sign themselves.
process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0"
const SETTINGS = { GALLEY_LIMITS__GUEST_BURST: "1000", GALLEY_SERVER__LINGER: isShort ? "0s" : "3s" }

/** @type {Redis} */
let redis
/** @type {Postgres} */
let postgres
/** @type {Galley[]} */
let servers = []
/** @type {{ writer: string, reviewer: string }} */
let users
/** Share links, each of a document of its own. @type {string[]} */
const links = []
/** @type {string[]} */
const documents = []
/** @type {import("node:child_process").ChildProcess[]} */
const proxies = []
/** @type {Record<string, string>} */
const urls = {}

before(async () => {
  redis = await Redis.start()
  postgres = Postgres.start()
  for (const kind of KINDS) urls[kind] = `https://127.0.0.1:${await freePort()}`
  // One of both proxies leads to the public address.
  const stores = { GALLEY_LOCKS__URL: redis.url, GALLEY_DATABASE__URL: postgres.url }
  const one = await Galley.start({ ...SETTINGS, ...stores, GALLEY_SERVER__PUBLIC_URL: urls.nginx })
  servers = [one, await one.beside(), await one.beside()]
  const { writer, reviewer } = (users = await one.desk("text"))
  // One after the other: a busy machine would answer some of so many at once with 503.
  while (links.length < PAIRS) {
    const document = await one.call("POST", "/api/documents", { title: "t", text: "text" }, writer)
    const link = await one.call("POST", `/api/documents/${document.id}/share-link`, {}, writer)
    await one.call("POST", `/api/share-links/${link.id}/join`, { invite: link.invite.token }, reviewer)
    links.push(link.id)
    documents.push(document.id)
  }
  for (const kind of KINDS) await start(kind)
})
after(async () => {
  // nginx ends its workers.
  for (const proxy of proxies) proxy.kill("SIGTERM")
  for (const server of servers.slice(1)) await server.end("SIGKILL")
  await servers[0]?.stop()
  await redis.stop()
  postgres.stop()
})

/** @param {string | (() => string)} what @param {() => Promise<unknown>} holds */
async function until(what, holds) {
  const deadline = Date.now() + TIMEOUT_MS
  while (!(await holds())) {
    assert.ok(Date.now() < deadline, typeof what === "string" ? what : what())
    await new Promise((later) => setTimeout(later, 50))
  }
}

/** Waits for a count, as long as it changes: a busy machine seats a hundred sessions one after the other. @param {string} what @param {() => Promise<number>} count @param {number} goal */
async function reaches(what, count, goal) {
  for (let last = -1; last !== goal; ) {
    const before = last
    await until(() => `${what}: ${last} of ${goal}`, async () => (last = await count()) !== before || last === goal)
  }
}

/** The held seats of all servers. @returns {Promise<{ share_link_id: string, node: string }[]>} */
async function seats() {
  const [one] = servers
  const headers = { authorization: `Bearer ${one?.adminToken}` }
  return (await (await fetch(`${one?.url}/api/admin/sessions`, { headers })).json()).sessions
}

/** Starts the proxy with its file. @param {string} kind */
async function start(kind) {
  const folder = join(servers[0]?.folder ?? "", kind)
  mkdirSync(folder)
  const [key, chain] = ["galley.key", "galley.pem"].map((name) => join(folder, name))
  execFileSync("openssl", ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE", "-keyout", key ?? "", "-out", chain ?? ""], { stdio: "ignore" })
  // HAProxy reads the key behind the certificate.
  writeFileSync(chain ?? "", readFileSync(key ?? ""), { flag: "a" })
  const url = urls[kind] ?? ""
  const ports = servers.map((server) => server.port)
  const local = read(kind === "haproxy" ? "config/haproxy.cfg" : "config/nginx.conf")
    .replace(/(bind|listen) [:\d]*443/, `$1 ${new URL(url).host}`)
    .replaceAll(/\/(etc|var\/log)\/(nginx|haproxy)\//g, `${folder}/`)
    .replaceAll(/10\.0\.0\.(\d):8080/g, (_, number) => `127.0.0.1:${ports[number - 1]}`)
    // Only root may become another user.
    .replaceAll(/^ *(user|group) .*\n/gm, process.getuid?.() === 0 ? "$&" : "")
  const file = join(folder, "conf")
  writeFileSync(file, local)
  const path = existsSync(`/usr/sbin/${kind}`) ? `/usr/sbin/${kind}` : kind
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
  if (kind === "nginx") writeFileSync(file, local.replace("http {", `$& ${temporary.map((name) => `${name}_temp_path ${folder}/${name};`).join(" ")}`))
  const words = kind === "haproxy" ? ["-f", file] : ["-p", folder, "-c", file, "-g", `daemon off; pid ${folder}/pid;`]
  execFileSync(path, [kind === "haproxy" ? "-c" : "-t", ...words], { stdio: "inherit" })
  const proxy = spawn(path, kind === "haproxy" ? ["-db", ...words] : words, { stdio: ["ignore", "ignore", "inherit"] })
  proxies.push(proxy)
  const responds = () => fetch(`${url}/healthz`).then(({ ok }) => ok, () => false)
  await until(`${kind} starts`, responds)
  assert.notEqual((await fetch(`${url}/metrics`)).status, 200)
}

/** The sum of a server's series of that pattern. @param {Galley | undefined} server @param {RegExp} series */
async function sum(server, series) {
  const lines = (await (await fetch(`${server?.url}/metrics`)).text()).split("\n").filter((line) => series.test(line))
  return lines.reduce((sum, line) => sum + Number(line.split(" ").pop()), 0)
}

/** The servers that serve reads only. */
async function degraded() {
  const ready = await Promise.all(servers.map((server) => fetch(`${server.url}/readyz`)))
  const bodies = await Promise.all(ready.map(async (response) => response.status === 200 && (await response.json())))
  return bodies.filter((body) => body.degraded?.length === 1).length
}

/** Letters that this writer has typed and a server has called saved. @param {Peer} writer */
function savedLetters({ events, doc }) {
  const { state_vector } = events.findLast(({ event }) => event === "document.saved")
  return Y.decodeStateVector(Buffer.from(state_vector, "base64")).get(doc.clientID) ?? 0
}

/**
 * Troubles of servers and stores while two people work. `read` holds that both can read now, `seated` waits until
 * both store again, and `heard` is whether the writer was notified.
 *
 * @typedef {{ read: () => Promise<void>, seated: () => Promise<void>, heard: (what: string) => boolean }} Work
 * @type {Record<string, (kind: string, work: Work) => Promise<void>>}
 */
const TROUBLES = {
  async restarts(kind, { seated }) {
    for (const server of servers) {
      await server.end("SIGTERM")
      await server.run()
      await until("HAProxy finds the server", async () => kind === "nginx" || 0 < (await sum(server, PROBES)))
      await seated()
    }
  },
  async kill() {
    const held = await Promise.all(servers.map((server) => sum(server, /^galley_seats_held\{role="writer"\}/)))
    const server = servers[held.indexOf(1)]
    await server?.end("SIGKILL")
    await server?.run()
  },
  async redis(kind, { read, heard }) {
    redis.signal("SIGSTOP")
    await until("each server is degraded", async () => (await degraded()) === servers.length)
    const before = await sum(servers[0], PROBES)
    await until("HAProxy has probed so often, and edits are rejected", async () => {
      await read()
      const isSeen = kind === "nginx" || before + PROBES_AWAY <= (await sum(servers[0], PROBES))
      return isSeen && (isShort || heard("seat.uncertain"))
    })
    redis.signal("SIGCONT")
    await until("each server is ready", async () => (await degraded()) === 0)
  },
  async postgres(_kind, { heard }) {
    await postgres.controlMeanwhile("stop")
    await until("the writer is notified", async () => heard("/problems/not-saved"))
    await postgres.controlMeanwhile("start")
  },
}
/** In a short run each proxy has those that concern it most. @type {Record<string, string[]>} */
const OF_SHORT = { haproxy: ["kill", "redis"], nginx: ["restarts", "postgres"] }

for (const kind of KINDS) {
  test(`${kind} routes both sessions of each pair to one of three servers, and all stay`, async (context) => {
    const base = `${urls[kind]?.replace("http", "ws")}/ws/share-links`
    /** @type {WebSocket[]} */
    const sockets = []
    context.after(() => sockets.forEach((socket) => socket.terminate()))
    /** @type {string[]} */
    const ended = []
    // So many at a time that no claim waits long for the database.
    for (let from = 0; from < PAIRS; from += 50) {
      sockets.push(...links.slice(from, from + 50).flatMap((link) => /** @type {const} */ (["writer", "reviewer"])
        .map((role) => new WebSocket(`${base}/${link}/${role}?token=${users[role]}`)
          .on("close", (/** @type {number} */ code, /** @type {Buffer} */ reason) => ended.push(`${code} ${reason}`))
          .on("error", (/** @type {Error} */ error) => ended.push(error.message)))))
      await reaches("each session holds its seat", async () => (await seats()).length, sockets.length)
      assert.deepEqual(ended, [])
    }
    /** @type {Map<string, Set<string>>} */
    const nodes = new Map()
    for (const { share_link_id: link, node } of await seats()) {
      nodes.set(link, (nodes.get(link) ?? new Set()).add(node))
    }
    const split = [...nodes.values()].filter((each) => each.size > 1)
    assert.equal(split.length, 0, `${split.length} of ${PAIRS} pairs are split`)
    assert.equal(new Set([...nodes.values()].flatMap((each) => [...each])).size, servers.length)
    let pongs = 0
    for (const socket of sockets) socket.once("pong", () => pongs++).ping()
    await reaches("each socket answers", async () => pongs, sockets.length)
    for (const socket of sockets) socket.close()
    await reaches("all seats are free", async () => (await seats()).length, 0)
  })

  test(`${kind} spreads 60 requests of one path over three servers`, async () => {
    const path = `/api/share-links/${links[0]}`
    const headers = { authorization: `Bearer ${users.writer}` }
    const counts = () => Promise.all(servers.map((server) => sum(server, /^galley_http_requests_total\{.*route="\/api\/share-links\/\{id\}"/)))
    const earlier = await counts()
    for (let left = 60; left > 0; left--) assert.equal((await fetch(urls[kind] + path, { headers })).status, 200)
    const now = await counts()
    const took = now.map((count, at) => count - (earlier[at] ?? 0))
    assert.ok(took.every((count) => 15 <= count && count <= 25), `${kind}: ${took}`)
  })

  test(`${kind}: two people work on through restarts, a kill and absent stores, and nothing saved is lost`, async (context) => {
    const proxy = Object.assign(new Galley("", {}), { url: urls[kind] ?? "" })
    const { document, link, ...tokens } = await proxy.desk("text")
    const reviews = `/api/share-links/${link}/reviews`
    const writer = new Peer(proxy.url, link, "writer", tokens.writer)
    const reviewer = new Peer(proxy.url, link, "reviewer", tokens.reviewer)
    context.after(() => [writer, reviewer].forEach((peer) => peer.leave()))
    await Promise.all([writer.synced(), reviewer.synced()])
    const typing = setInterval(() => writer.append(String.fromCharCode(97 + (writer.text.length % 26))), 50)
    context.after(() => clearInterval(typing))
    /** Stored reviews. @type {Set<string>} */
    const stored = new Set()
    const body = { anchor: { start: 0, end: 4, quote: "text" }, body: "?" }
    let isOver = false
    context.after(() => (isOver = true))
    const reviewing = (async () => {
      while (!isOver) {
        // A refused one, or one without an answer, is none that a person takes for stored.
        await proxy.call("POST", reviews, body, tokens.reviewer).then(({ id }) => stored.add(id), () => undefined)
        await new Promise((later) => setTimeout(later, 100))
      }
    })()
    /** @param {string} url @param {string} path */
    const get = async (url, path) => {
      const response = await fetch(url + path, { headers: { authorization: `Bearer ${tokens.writer}` } })
      assert.equal(response.status, 200, path)
      return response.text()
    }
    let saved = 0
    const read = async () => {
      saved = Math.max(saved, savedLetters(writer))
      const least = "text".length + saved
      const [text = ""] = await Promise.all([`/api/documents/${document}/text`, "/", reviews].map((path) => get(proxy.url, path)))
      assert.ok(least <= text.length && writer.text.startsWith(text), `${least} letters are saved: ${text}`)
    }
    const seated = async () => {
      const [letters, count] = [writer.text.length, stored.size + 1]
      const now = () => `both store again: ${savedLetters(writer)} letters of ${letters}, ${stored.size} reviews after ${count}, ${JSON.stringify([writer, reviewer].map(({ events }) => events.slice(-2)))}`
      await until(now, async () => letters < "text".length + savedLetters(writer) && count < stored.size)
      await read()
    }
    for (const [name, trouble] of Object.entries(TROUBLES)) {
      if (isShort && !OF_SHORT[kind]?.includes(name)) continue
      const [told, closed] = [writer.events.length, writer.closes.length]
      const heard = (/** @type {string} */ what) => writer.events.slice(told).some(({ event, type }) => [event, type].includes(what))
      await trouble(kind, { read, seated, heard })
      await seated()
      // Without a store the sockets stay.
      if (name === "redis" || name === "postgres") assert.deepEqual(writer.closes.slice(closed), [])
    }
    clearInterval(typing)
    isOver = true
    await Promise.all([writer.saved(), reviewing])
    for (const { url } of servers) assert.equal(await get(url, `/api/documents/${document}/text`), writer.text)
    for (let query = "?limit=200"; query; ) {
      const page = JSON.parse(await get(proxy.url, reviews + query))
      for (const { id } of page.reviews) stored.delete(id)
      query = page.next_cursor ? `?limit=200&cursor=${page.next_cursor}` : ""
    }
    assert.deepEqual([...stored], [])
  })
}

test("the doctor passes nginx, and learns through HAProxy that its servers have another public_url", () => {
  const [one] = servers
  const doctor = (/** @type {string | undefined} */ url) => {
    // Few connections, for any limit of files.
    const env = { ...process.env, ...one?.settings, GALLEY_LIMITS__CONNECTIONS: "100", GALLEY_SERVER__PUBLIC_URL: url, SSL_CERT_FILE: join(one?.folder ?? "", "certificates") }
    return spawnSync(binary, ["doctor"], { cwd: one?.folder, env, encoding: "utf8" })
  }
  const certificates = KINDS.map((kind) => readFileSync(join(one?.folder ?? "", kind, "galley.pem"), "utf8").split("-----BEGIN PRIVATE")[0])
  writeFileSync(join(one?.folder ?? "", "certificates"), certificates.join(""))
  const passed = doctor(urls.nginx)
  assert.deepEqual([passed.status, passed.stderr], [0, ""], passed.stdout)
  assert.match(passed.stdout, /^ok +server\.public_url: https:\/\/127\.0\.0\.1:\d+ leads to a server with these settings$/m)
  const failed = doctor(urls.haproxy)
  assert.equal(failed.status, 2)
  assert.match(failed.stdout, /^FAULT +server\.public_url: .* responds with 403: its server has another server\.public_url/m)
})
