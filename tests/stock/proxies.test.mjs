// @ts-check
/**
 * `config/haproxy.cfg` and `config/nginx.conf` before three servers: both sessions of a pair meet on one server, and
 * texts stay readable without Redis.
 * The test replaces their addresses and files, and leaves all else as it stands.
 */
import assert from "node:assert/strict"
import { spawn } from "node:child_process"
import { existsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { after, before, test } from "node:test"

// @ts-expect-error -- it comes without types
import { WebSocket } from "ws"

import { Galley } from "./galley.mjs"
import { read } from "./papers.mjs"
import { Redis, freePort } from "./redis.mjs"

const PAIRS = 50
const TIMEOUT_MS = 30_000
const SETTINGS = { GALLEY_DATABASE__SHARED_SQLITE: "true", GALLEY_LIMITS__GUEST_BURST: "1000" }

/** @type {Redis} */
let redis
/** @type {Galley[]} */
let servers = []
/** @type {{ document: string, link: string, writer: string, reviewer: string }[]} */
const pairs = []
/** @type {import("node:child_process").ChildProcess[]} */
const proxies = []

before(async () => {
  redis = await Redis.start()
  const one = await Galley.start({ ...SETTINGS, GALLEY_LOCKS__URL: redis.url })
  servers = [one, await one.beside(), await one.beside()]
  // One after the other: a busy machine would answer some of so many at once with 503.
  while (pairs.length < PAIRS) pairs.push(await one.desk("text"))
})
after(async () => {
  for (const proxy of proxies) proxy.kill("SIGKILL")
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

/** Starts the proxy with its example. @param {string} kind @returns {Promise<string>} */
async function start(kind) {
  const folder = servers[0]?.folder ?? ""
  const port = await freePort()
  const ports = servers.map((server) => server.port)
  const local = read(kind === "haproxy" ? "config/haproxy.cfg" : "config/nginx.conf")
    .replace(/(bind|listen) .*443.*?(;?)$/m, `$1 127.0.0.1:${port}$2`)
    .replace(/^ *ssl_certificate.*$/gm, "")
    .replace(/10\.0\.0\.(\d):8080/g, (_, number) => `127.0.0.1:${ports[number - 1]}`)
    .replace("/var/log/nginx", folder)
  const file = join(folder, `${kind}.conf`)
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
  const around = kind === "haproxy" ? local : `daemon off; master_process off; pid nginx.pid; events {}
    http { ${temporary.map((name) => `${name}_temp_path ${folder}/${name};`).join(" ")} ${local} }`
  writeFileSync(file, around)
  const path = existsSync(`/usr/sbin/${kind}`) ? `/usr/sbin/${kind}` : kind
  const words = kind === "haproxy" ? ["-db", "-f", file] : ["-p", folder, "-e", "stderr", "-c", file]
  const proxy = spawn(path, words, { stdio: "inherit" })
  proxies.push(proxy)
  const url = `http://127.0.0.1:${port}`
  const responds = () => fetch(`${url}/healthz`).then(({ ok }) => ok, () => false)
  await until(`${kind} starts`, responds)
  assert.notEqual((await fetch(`${url}/metrics`)).status, 200)
  return url
}

/** The page, a text and its reviews respond 200 while Redis does not. @param {string} kind @param {string} url */
async function readsWithoutRedis(kind, url) {
  const [pair] = pairs
  const headers = { authorization: `Bearer ${pair?.writer}` }
  const paths = ["/", `/api/documents/${pair?.document}/text`, `/api/share-links/${pair?.link}/reviews`]
  const status = async (/** @type {string} */ path) => (await fetch(url + path, { headers })).status
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
    return kind === "nginx" || (await probes()) >= before + 4
  })
  redis.signal("SIGCONT")
  await until("each server is ready", async () => !(await degraded()).some(Boolean))
}

for (const kind of ["haproxy", "nginx"]) {
  test(`${kind} routes both sessions of each of ${PAIRS} pairs to one of three servers`, async () => {
    const url = await start(kind)
    const sockets = pairs.flatMap(({ link, ...tokens }) => [
      [link, "writer", tokens.writer],
      [link, "reviewer", tokens.reviewer],
    ].map(([id, role, token]) =>
      new WebSocket(`${url.replace("http", "ws")}/ws/share-links/${id}/${role}?token=${token}`)))
    await until("each session holds its seat", async () => (await seats()).length === 2 * PAIRS)
    /** @type {Map<string, Set<string>>} */
    const nodes = new Map()
    for (const { share_link_id: link, node } of await seats()) {
      nodes.set(link, (nodes.get(link) ?? new Set()).add(node))
    }
    const split = [...nodes.values()].filter((each) => each.size > 1)
    assert.equal(split.length, 0, `${split.length} of ${PAIRS} pairs are split`)
    assert.equal(new Set([...nodes.values()].flatMap((each) => [...each])).size, servers.length)
    for (const socket of sockets) socket.close()
    await until("all seats are free", async () => (await seats()).length === 0)
    await readsWithoutRedis(kind, url)
  })
}
