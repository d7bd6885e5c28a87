// @ts-check
/**
 * `config/haproxy.cfg` and `config/nginx.conf` before three servers: both sessions of a pair meet on one server, all
 * other requests are spread, and texts stay readable without Redis. The test replaces their addresses and files, and
 * leaves all else as it stands.
 */
import assert from "node:assert/strict"
import { execFileSync, spawn, spawnSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { after, before, test } from "node:test"

// @ts-expect-error -- it comes without types
import { WebSocket } from "ws"

import { Galley, binary } from "./galley.mjs"
import { read } from "./papers.mjs"
import { Redis, freePort } from "./redis.mjs"

const KINDS = ["haproxy", "nginx"]
// Each with two sockets; Debian's nginx.conf ends at 384 of them.
const PAIRS = process.env.GALLEY_SHORT ? 50 : 450
const TIMEOUT_MS = 60_000
// The proxies have a certificate that they sign themselves.
process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0"
const SETTINGS = { GALLEY_DATABASE__SHARED_SQLITE: "true", GALLEY_LIMITS__GUEST_BURST: "1000" }

/** @type {Redis} */
let redis
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
  for (const kind of KINDS) urls[kind] = `https://127.0.0.1:${await freePort()}`
  // One of both proxies leads to the public address.
  const one = await Galley.start({ ...SETTINGS, GALLEY_LOCKS__URL: redis.url, GALLEY_SERVER__PUBLIC_URL: urls.nginx })
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
})

/** @param {string} what @param {() => Promise<unknown>} holds */
async function until(what, holds) {
  const deadline = Date.now() + TIMEOUT_MS
  while (!(await holds())) {
    assert.ok(Date.now() < deadline, what)
    await new Promise((later) => setTimeout(later, 50))
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

/** The page, a text and its reviews respond 200 while Redis does not. @param {string} kind */
async function readsWithoutRedis(kind) {
  const headers = { authorization: `Bearer ${users.writer}` }
  const paths = ["/", `/api/documents/${documents[0]}/text`, `/api/share-links/${links[0]}/reviews`]
  const status = async (/** @type {string} */ path) => (await fetch(urls[kind] + path, { headers })).status
  const degraded = () => Promise.all(servers.map(async (server) => {
    const ready = await fetch(`${server.url}/readyz`)
    return ready.status === 200 && (await ready.json()).degraded?.length === 1
  }))
  /** The probes that the first server has answered. */
  const probes = async () => {
    const metrics = await (await fetch(`${servers[0]?.url}/metrics`)).text()
    const lines = metrics.split("\n").filter((line) => /^galley_http_requests_total.*"\/readyz"/.test(line))
    return lines.reduce((sum, line) => sum + Number(line.split(" ").pop()), 0)
  }
  redis.signal("SIGSTOP")
  await until("each server is degraded", async () => (await degraded()).every(Boolean))
  const before = await probes()
  await until("HAProxy has probed more often than it needs to take a server out", async () => {
    for (const path of paths) assert.equal(await status(path), 200, path)
    return kind === "nginx" || (await probes()) >= before + 8
  })
  redis.signal("SIGCONT")
  await until("each server is ready", async () => !(await degraded()).some(Boolean))
}

for (const kind of KINDS) {
  test(`${kind} routes both sessions of each pair to one of three servers, and all stay`, async () => {
    const base = `${urls[kind]?.replace("http", "ws")}/ws/share-links`
    /** @type {WebSocket[]} */
    const sockets = []
    // So many at a time that no claim waits long for SQLite.
    for (let from = 0; from < PAIRS; from += 50) {
      sockets.push(...links.slice(from, from + 50).flatMap((link) => /** @type {const} */ (["writer", "reviewer"])
        .map((role) => new WebSocket(`${base}/${link}/${role}?token=${users[role]}`))))
      await until("each session holds its seat", async () => (await seats()).length === sockets.length)
    }
    /** @type {Map<string, Set<string>>} */
    const nodes = new Map()
    for (const { share_link_id: link, node } of await seats()) {
      nodes.set(link, (nodes.get(link) ?? new Set()).add(node))
    }
    const split = [...nodes.values()].filter((each) => each.size > 1)
    assert.equal(split.length, 0, `${split.length} of ${PAIRS} pairs are split`)
    assert.equal(new Set([...nodes.values()].flatMap((each) => [...each])).size, servers.length)
    const pongs = sockets.map((socket) => new Promise((pong) => socket.once("pong", pong)))
    for (const socket of sockets) socket.ping()
    await Promise.all(pongs)
    for (const socket of sockets) socket.close()
    await until("all seats are free", async () => (await seats()).length === 0)
    await readsWithoutRedis(kind)
  })

  test(`${kind} spreads 60 requests of one path over three servers`, async () => {
    const path = `/api/share-links/${links[0]}`
    const headers = { authorization: `Bearer ${users.writer}` }
    const counts = () => Promise.all(servers.map(async (server) => {
      const lines = await (await fetch(`${server.url}/metrics`)).text()
      const ours = [...lines.matchAll(/^galley_http_requests_total\{.*route="\/api\/share-links\/\{id\}".* (\d+)$/gm)]
      return ours.reduce((sum, [, count]) => sum + Number(count), 0)
    }))
    const earlier = await counts()
    for (let left = 60; left > 0; left--) assert.equal((await fetch(urls[kind] + path, { headers })).status, 200)
    const now = await counts()
    const took = now.map((count, at) => count - (earlier[at] ?? 0))
    assert.ok(took.every((count) => 15 <= count && count <= 25), `${kind}: ${took}`)
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
