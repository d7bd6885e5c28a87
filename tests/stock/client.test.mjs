// @ts-check
/** The client package (`static/client`) in Node, with the `WebsocketProvider` of `y-websocket`, against a server. */
import assert from "node:assert/strict"
import { createHmac, randomUUID } from "node:crypto"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { after, afterEach, before, test } from "node:test"
import { fileURLToPath } from "node:url"
import { gzipSync } from "node:zlib"

// @ts-expect-error -- it comes without types
import { WebSocket } from "ws"
import { WebsocketProvider } from "y-websocket"
import * as Y from "yjs"

import { GalleyError, Session } from "../../static/client/galley.js"
import { Galley } from "./galley.mjs"

/** @typedef {import("../../static/client/galley.js").Events} Events */
/** @typedef {ConstructorParameters<typeof Session>[0]} Options */

/** @type {Galley} */
let galley
/** @type {Session[]} */
const sessions = []
before(async () => {
  Object.assign(globalThis, { WebSocket })
  galley = await Galley.start({ GALLEY_AUTH__GUESTS: "false" })
})
afterEach(() => {
  for (const session of sessions.splice(0)) {
    session.close()
    // The document's presence has a timer, which would keep node running.
    session.text.doc?.destroy()
  }
})
after(() => galley.stop())

/** A token as a host product signs it. @param {string} id @param {{ seconds?: number, secret?: string }} [options] */
function token(id, { seconds = 3_600, secret = readFileSync(join(galley.folder, "data/secret"), "utf8").trimEnd() } = {}) {
  const encode = (/** @type {object} */ part) => Buffer.from(JSON.stringify(part)).toString("base64url")
  const now = Math.floor(Date.now() / 1_000)
  const claims = { iss: "galley", sub: id, name: id, iat: now, exp: now + seconds, jti: randomUUID() }
  const signed = `${encode({ alg: "HS256", typ: "JWT" })}.${encode(claims)}`
  return `${signed}.${createHmac("sha256", secret).update(signed).digest("base64url")}`
}

/** A document of Kim's, with Lee as its reviewer. @param {string} text */
async function share(text) {
  const document = await galley.call("POST", "/api/documents", { title: "Letter", text }, token("kim"))
  const link = await galley.call("POST", `/api/documents/${document.id}/share-link`, {}, token("kim"))
  await galley.call("POST", `/api/share-links/${link.id}/join`, { invite: link.invite.token }, token("lee"))
  return { document: document.id, link: link.id }
}

/** @param {string} link @param {"writer" | "reviewer"} role @param {Partial<Options>} [options] */
function session(link, role, options = {}) {
  const made = new Session({
    galley: galley.url,
    link,
    role,
    doc: new Y.Doc(),
    token: () => token(role === "writer" ? "kim" : "lee"),
    WebsocketProvider,
    ...options,
  })
  sessions.push(made)
  return made
}

/** The first value of an event that fits. @template {keyof Events} K @param {Session} session @param {K} name @param {(value: Events[K]) => boolean} [fits] @returns {Promise<Events[K]>} */
const next = (session, name, fits = () => true) =>
  new Promise((resolve) => {
    const stop = session.on(name, (value) => {
      if (!fits(value)) return
      stop()
      resolve(value)
    })
  })

/** @returns {{ promise: Promise<unknown>, resolve: (value: unknown) => void }} */
function deferred() {
  /** @type {(value: unknown) => void} */
  let resolve = () => undefined
  const promise = new Promise((done) => (resolve = done))
  return { promise, resolve }
}

/** @param {string} name @returns {(event: Events["event"]) => boolean} */
const named = (name) => ({ event }) => event === name

/** Waits until the edits of a session are saved. @param {Session} session */
const saved = async (session) => session.saved || next(session, "saved", (saved) => saved)

/** The error of a promise. @param {Promise<unknown>} promise @returns {Promise<GalleyError>} */
const errorOf = (promise) => promise.then(() => assert.fail("it succeeded"), (error) => (assert.ok(error instanceof GalleyError), error))

test("the package has less than five kilobytes", () => {
  const file = fileURLToPath(new URL("../../static/client/galley.js", import.meta.url))
  assert.ok(gzipSync(readFileSync(file), { level: 9 }).length < 5_000)
})

test("two sessions share text and events, and each edit is saved, a deletion too", async () => {
  const { document, link } = await share("처음")
  const writer = await session(link, "writer").open()
  const joined = next(writer, "event", named("peer.joined"))
  const reviewer = await session(link, "reviewer").open()
  assert.deepEqual([writer.editable, reviewer.editable], [true, false])
  assert.equal((await joined).role, "reviewer")
  const seen = new Promise((changed) => reviewer.text.observe(changed))
  writer.text.insert(2, " 그리고")
  assert.equal(writer.saved, false)
  await seen
  assert.equal(reviewer.text.toString(), "처음 그리고")
  await saved(writer)
  writer.text.delete(0, 3)
  assert.equal(writer.saved, false)
  await saved(writer)
  const headers = { authorization: `Bearer ${token("kim")}` }
  const stored = await fetch(`${galley.url}/api/documents/${document}/text`, { headers })
  assert.equal(await stored.text(), "그리고")
  assert.equal(reviewer.saved, true)
})

test("a reviewer comments and suggests, and the writer accepts", async () => {
  const { link } = await share("저는 물류가 좋습니다.")
  const [writer, reviewer] = await Promise.all([session(link, "writer").open(), session(link, "reviewer").open()])
  const received = next(writer, "event", named("review.created"))
  const comment = await reviewer.reviews.create({ start: 3, end: 6 }, { body: "무엇이?" })
  assert.equal(comment.anchor?.quote, "물류가")
  assert.equal((await received).review.id, comment.id)
  const part = { start: 3, end: 6, quote: "물류가", text: "물류 자동화가" }
  const [outcome] = await reviewer.reviews.suggest([{ id: randomUUID(), version: null, parts: [part] }])
  assert.equal(outcome?.state, "kept")
  const suggestion = (await writer.reviews.list()).find(({ kind }) => kind === "suggestion")
  assert.ok(suggestion)
  const changed = new Promise((changed) => writer.text.observe(changed))
  assert.deepEqual((await writer.reviews.decide("accept", [suggestion])).done, [suggestion.id])
  await changed
  assert.equal(writer.text.toString(), "저는 물류 자동화가 좋습니다.")
  const refused = await errorOf(reviewer.reviews.decide("reject", [comment]))
  assert.deepEqual([refused.code, refused.reason, refused.retry], [403, "seat-not-held", "never"])
})

test("an edit of a reviewer ends its session for good", async () => {
  const { link } = await share("처음")
  const reviewer = await session(link, "reviewer").open()
  const end = next(reviewer, "closed")
  reviewer.text.insert(0, "REV ")
  const { code, reason, retry } = await end
  assert.deepEqual([code, reason, retry, reviewer.state], [4403, "not-the-writer", "never", "closed"])
})

test("a foreign token ends after sign-in, and the session opens with a new one", async () => {
  const { link } = await share("처음")
  let secret = /** @type {string | undefined} */ ("a secret of another installation")
  const writer = session(link, "writer", { token: () => token("kim", { secret }) })
  const error = await errorOf(writer.open())
  assert.deepEqual([error.code, error.reason, error.retry, error.reconnects], [4401, "token-not-valid", "after sign-in", false])
  const request = await errorOf(writer.reviews.list())
  assert.deepEqual([request.code, request.retry], [401, "after sign-in"])
  secret = undefined
  await writer.open()
  assert.equal(writer.text.toString(), "처음")
})

test("a host without a user ends after sign-in", async () => {
  const { link } = await share("처음")
  const error = await errorOf(session(link, "writer", { token: () => Promise.reject(new Error("signed out")) }).open())
  assert.deepEqual([error.code, error.reason, error.retry], [4401, "no-token", "after sign-in"])
})

test("a taken seat names its holder, is taken over, and is granted to a waiter", async () => {
  const { link } = await share("처음")
  const first = await session(link, "writer").open()
  const error = await errorOf(session(link, "writer").open())
  assert.deepEqual([error.code, error.retry, error.holder?.you, error.holder?.name], [4409, "later", true, "kim"])
  const lost = next(first, "closed")
  const second = await session(link, "writer").open({ takeover: true })
  assert.deepEqual([(await lost).reason, (await lost).retry], ["taken_over", "never"])
  const waiter = session(link, "writer", { wait: 60 })
  const waits = next(waiter, "state", (state) => state === "waiting")
  const opened = waiter.open()
  await waits
  second.close()
  await opened
  assert.equal(waiter.state, "open")
})

test("a revoked link ends for good", async () => {
  const { link } = await share("처음")
  const [writer, reviewer] = await Promise.all([session(link, "writer").open(), session(link, "reviewer").open()])
  const end = next(reviewer, "closed")
  await writer.reviews.request("DELETE", "")
  const { code, reason, retry, reconnects } = await end
  assert.deepEqual([code, reason, retry, reconnects], [4404, "revoked", "never", false])
  const again = await errorOf(session(link, "reviewer").open())
  assert.deepEqual([again.code, again.retry], [4404, "never"])
})

test("a broken connection resumes its seat before a waiter, and edits made without it are saved", async () => {
  const { link } = await share("처음")
  const writer = await session(link, "writer").open()
  const waiter = session(link, "writer", { wait: 60 })
  const waits = next(waiter, "state", (state) => state === "waiting")
  const granted = waiter.open()
  await waits
  const [end, open] = [next(writer, "closed"), next(writer, "state", (state) => state === "open")]
  // @ts-expect-error -- of the package `ws`: the socket breaks without a close
  writer.provider.ws.terminate()
  const { code, retry, reconnects } = await end
  assert.deepEqual([code, retry, reconnects], [1006, "later", true])
  writer.text.delete(0, 1)
  assert.equal(writer.saved, false)
  await open
  await saved(writer)
  assert.equal(writer.text.toString(), "음")
  assert.equal(waiter.state, "waiting")
  writer.close()
  await granted
})

test("a drained server ends later, and the session opens on its successor", async () => {
  const { link } = await share("처음")
  const writer = await session(link, "writer").open()
  const drained = next(writer, "event", named("server.draining"))
  const end = next(writer, "closed")
  await galley.end("SIGTERM")
  await drained
  const { code, reason, retry, reconnects } = await end
  assert.deepEqual([code, reason, retry, reconnects], [1012, "draining", "later", true])
  const open = next(writer, "state", (state) => state === "open")
  await galley.run()
  await open
})

test("a session and a waiter outlive their tokens by a callback, without an event for the other role", async () => {
  const { link } = await share("처음")
  const reviewer = await session(link, "reviewer").open()
  /** @type {string[]} */
  const events = []
  reviewer.on("event", ({ event }) => events.push(event))
  const short = (/** @type {Partial<Options>} */ options) => {
    /** @type {number[]} */
    const ends = []
    const { promise, resolve } = deferred()
    const renewed = () => {
      if (2_000 < Date.now() - Number(ends[0])) resolve(undefined)
      ends.push(Date.now() + 3_000)
      return token("kim", { seconds: 3 })
    }
    return { session: session(link, "writer", { token: renewed, ...options }), outlived: promise }
  }
  const [writer, waiter] = [short({}), short({ wait: 60 })]
  for (const each of [writer, waiter]) each.session.on("closed", (error) => assert.fail(error))
  await writer.session.open()
  const waits = next(waiter.session, "state", (state) => state === "waiting")
  const granted = waiter.session.open()
  await waits
  await Promise.all([writer.outlived, waiter.outlived])
  const seen = new Promise((changed) => reviewer.text.observe(changed))
  writer.session.text.insert(0, "renewed ")
  await seen
  assert.equal(writer.session.state, "open")
  assert.deepEqual(events.filter((event) => event.startsWith("peer.")), ["peer.joined"])
  writer.session.close()
  await granted
})
