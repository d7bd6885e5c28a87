// @ts-check
/**
 * A rolling restart: servers of two versions on one Redis and one PostgreSQL. `tests/upgrade/run` starts it.
 *
 *     node tests/upgrade/rolling.mjs OLD NEW
 *
 * In each direction, a writer on one version and a reviewer on the other edit, review and hand seats over.
 * Then the writer's server stops, by SIGTERM and by SIGKILL, and the users continue on the other.
 */
import assert from "node:assert/strict"
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"

import { Galley } from "../stock/galley.mjs"
import { Redis } from "../stock/redis.mjs"
import { Peer, until } from "./peer.mjs"
import { Postgres } from "./postgres.mjs"

const EDITS = 50
const [old, current] = process.argv.slice(2).map((path) => resolve(path))
if (!old || !current) throw new Error("usage: rolling.mjs OLD NEW")
const binaries = { old, new: current }
/** @typedef {keyof typeof binaries} Version */
let passed = 0
let failed = 0

/** @param {string} name @param {() => Promise<string | void>} run */
async function check(name, run) {
  const began = performance.now()
  try {
    const note = await run()
    passed += 1
    console.log(`ok      ${name} (${note ?? `${Math.round(performance.now() - began)} ms`})`)
  } catch (error) {
    failed += 1
    console.log(`FAILED  ${name}: ${error instanceof Error ? error.message : error}`)
  }
}

const redis = await Redis.start()
const postgres = Postgres.start()
const folder = mkdtempSync(join(tmpdir(), "galley-"))

/** Starts a server of a version; all share the database, the locks and the secret. @param {Version} version */
async function start(version) {
  const settings = { GALLEY_DATABASE__URL: postgres.url, GALLEY_LOCKS__URL: redis.url }
  // A server of before the linger rejects its setting.
  for (const more of [{}, { GALLEY_SERVER__LINGER: undefined }]) {
    const galley = new Galley(folder, { ...settings, ...more })
    galley.binary = binaries[version]
    try {
      await galley.run()
      return galley
    } catch (error) {
      if ("GALLEY_SERVER__LINGER" in more) throw error
    }
  }
  throw new Error("unreachable")
}

/** @param {Galley} galley @param {string} path @param {string} token */
async function get(galley, path, token) {
  const response = await fetch(galley.url + path, { headers: { authorization: `Bearer ${token}` } })
  assert.ok(response.ok, `${path}: ${response.status}`)
  const body = await response.text()
  return response.headers.get("content-type")?.includes("json") ? JSON.parse(body) : body
}

/** Types `EDITS` letters and measures until the other replica has each. @param {Peer} from @param {Peer} to */
async function latency(from, to) {
  /** @type {number[]} */
  const times = []
  for (let count = 0; count < EDITS; count += 1) {
    const began = performance.now()
    from.append(count % 10 === 9 ? "다. " : "가")
    await to.reads(from.text)
    times.push(performance.now() - began)
  }
  times.sort((one, other) => one - other)
  const at = (/** @type {number} */ part) => times[Math.floor((times.length - 1) * part)]?.toFixed(1)
  return `p50 ${at(0.5)} ms, worst ${at(1)} ms`
}

/** @param {Version} here the writer's server @param {Version} there the reviewer's @param {NodeJS.Signals} signal */
async function pass(here, there, signal) {
  const of = `writer on ${here}, reviewer on ${there}`
  const [one, two] = [await start(here), await start(there)]
  const desk = await one.desk("저는 글을 쓴다. I write.")
  let writer = new Peer(one.url, desk.link, "writer", desk.writer)
  const reviewer = new Peer(two.url, desk.link, "reviewer", desk.reviewer)
  await Promise.all([writer.synced(), reviewer.synced()])

  await check(`${of}: edits arrive`, () => latency(writer, reviewer))
  await check(`${of}: edits of one commit arrive`, async () => {
    for (let count = 0; count < EDITS; count += 1) writer.append("나")
    await reviewer.reads(writer.text)
  })
  await check(`${of}: presence arrives both ways`, async () => {
    writer.provider.awareness.setLocalStateField("cursor", { at: 1 })
    reviewer.provider.awareness.setLocalStateField("cursor", { at: 2 })
    for (const [peer, at] of /** @type {[Peer, number][]} */ ([[writer, 2], [reviewer, 1]])) {
      await until("a cursor", () =>
        [...peer.provider.awareness.getStates().values()].some((state) => state.cursor?.at === at))
    }
  })
  await check(`${of}: reviews and decisions arrive`, async () => {
    const path = `/api/share-links/${desk.link}/reviews`
    const began = performance.now()
    const anchor = { start: 3, end: 5, quote: "글을" }
    const body = { anchor, body: "바꿔 주세요", suggestion: "편지를" }
    const review = await two.call("POST", path, body, desk.reviewer)
    await writer.event("review.created")
    const created = performance.now()
    await one.call("POST", `${path}/${review.id}/accept`, {}, desk.writer)
    await reviewer.event("review.updated")
    await until("the suggestion", () => reviewer.text.startsWith("저는 편지를"))
    await reviewer.reads(writer.text)
    const accepted = performance.now()
    return `created ${Math.round(created - began)} ms, accepted ${Math.round(accepted - created)} ms`
  })
  await check(`${of}: a version is in the other's list`, async () => {
    const path = `/api/documents/${desk.document}/versions`
    const version = await one.call("POST", path, { label: "이름" }, desk.writer)
    const { text } = await get(two, `${path}/${version.id}`, desk.writer)
    assert.equal(text, writer.text)
  })
  await check(`${of}: each explains the other's sessions`, async () => {
    const notes = []
    for (const galley of [one, two]) {
      const { sessions } = await get(galley, "/api/admin/sessions", galley.adminToken)
      assert.equal(sessions.length, 2)
      for (const session of sessions) {
        const why = await get(galley, `/api/admin/sessions/${session.session_id}`, galley.adminToken)
        notes.push(why.told_by)
      }
    }
    return `told by ${notes.join(", ")}`
  })

  await check(`${of}: a takeover moves the writer's seat there and back`, async () => {
    const times = []
    for (const to of [two, one]) {
      const began = performance.now()
      const next = new Peer(to.url, desk.link, "writer", desk.writer, { takeover: "1" })
      await next.event("seat.granted")
      times.push(`${Math.round(performance.now() - began)} ms`)
      await until("the end of the other session", () =>
        writer.closes.some((close) => close.code === 4410 && close.reason.includes("taken_over")))
      await next.synced()
      assert.equal(next.text, reviewer.text)
      writer.leave()
      writer = next
      writer.append("또")
      await reviewer.reads(writer.text)
    }
    return times.join(", ")
  })
  await check(`${of}: a hand-over gives the seat to the waiter there and back`, async () => {
    const times = []
    for (const to of [two, one]) {
      const waiter = new Peer(to.url, desk.link, "writer", desk.writer, { wait: "60" })
      await waiter.event("seat.waiting")
      await writer.saved()
      const began = performance.now()
      writer.leave()
      await waiter.event("seat.granted")
      times.push(`${Math.round(performance.now() - began)} ms`)
      await waiter.synced()
      writer = waiter
      writer.append("줄")
      await reviewer.reads(writer.text)
    }
    return times.join(", ")
  })

  await check(`${of}: ${signal} to the writer's server loses nothing`, async () => {
    for (let count = 0; count < 20; count += 1) writer.append(`끝${count} `)
    if (signal === "SIGKILL") await writer.saved()
    const text = writer.text
    const began = performance.now()
    await one.end(signal)
    writer.leave()
    writer = new Peer(two.url, desk.link, "writer", desk.writer, { wait: "60" })
    await writer.event("seat.granted")
    const seated = performance.now()
    await writer.reads(text)
    await reviewer.reads(text)
    writer.append("새 서버")
    await reviewer.reads(`${text}새 서버`)
    await writer.saved()
    return `stopped and seated on the other after ${Math.round(seated - began)} ms`
  })
  await check(`${of}: the replaced server has everything`, async () => {
    const again = await start(there)
    const path = `/api/documents/${desk.document}/text`
    assert.equal(await get(again, path, desk.writer), writer.text)
    const reader = new Peer(again.url, desk.link, "reviewer", desk.reviewer, { takeover: "1" })
    await reader.synced()
    writer.append("!")
    await reader.reads(writer.text)
    reader.leave()
    await again.end("SIGTERM")
  })
  writer.leave()
  reviewer.leave()
  await two.end("SIGTERM")
}

const began = performance.now()
try {
  for (const signal of /** @type {const} */ (["SIGTERM", "SIGKILL"])) {
    await pass("old", "new", signal)
    await pass("new", "old", signal)
  }
} catch (error) {
  failed += 1
  console.error(error)
} finally {
  await redis.stop()
  postgres.stop()
}
console.log(`\nrolling restart: ${passed} passed, ${failed} failed, ${Math.round((performance.now() - began) / 1000)} s`)
process.exit(failed === 0 ? 0 : 1)
