// @ts-check
/** The unmodified npm clients against the real server: y-websocket 3.1.0 and 3.0.0. */
import assert from "node:assert/strict"
import { after, before, describe, test } from "node:test"

// @ts-expect-error -- it comes without types
import { WebSocket } from "ws"
import { WebsocketProvider as Provider31 } from "y-websocket"
import { WebsocketProvider as Provider30 } from "y-websocket-3-0"
import * as Y from "yjs"

import { Galley } from "./galley.mjs"

/** Longer than the 30 s after which a silent connection is closed by the client, with its check. */
const QUIET_MS = process.env.GALLEY_SHORT ? 6_000 : 38_000
const TIMEOUT_MS = 60_000

/** @type {Galley} */
let galley
/** @type {Y.Doc[]} */
const docs = []
before(async () => {
  galley = await Galley.start()
})
after(() => {
  // A document's presence has a timer of its own, which outlives the client and keeps node running.
  for (const doc of docs) doc.destroy()
  return galley.stop()
})

/** @typedef {InstanceType<typeof Provider31>} Provider */

/**
 * @param {typeof Provider31} Client
 * @param {string} link
 * @param {string} role
 * @param {string} token
 * @returns {Provider & { doc: Y.Doc }}
 */
function connect(Client, link, role, token) {
  const options = { params: { token }, disableBc: true, WebSocketPolyfill: WebSocket }
  const doc = new Y.Doc()
  docs.push(doc)
  const url = `${galley.url.replace("http", "ws")}/ws/share-links`
  return new Client(url, `${link}/${role}`, doc, options)
}

/**
 * @template T
 * @param {string} what
 * @param {() => T | undefined | false | null} look
 * @returns {Promise<T>}
 */
async function until(what, look) {
  const deadline = Date.now() + TIMEOUT_MS
  for (;;) {
    const found = look()
    if (found) return found
    assert.ok(Date.now() < deadline, `never saw: ${what}`)
    await new Promise((done) => setTimeout(done, 10))
  }
}

/** @param {{ doc: Y.Doc }} provider */
const content = (provider) => provider.doc.getText("content")

/** The kinds of the frames that a client receives from now on, but those of presence and the empty ones that it asks for. @param {Provider} provider */
function received(provider) {
  /** @type {string[]} */
  const kinds = []
  provider.ws?.addEventListener("message", ({ data }) => {
    const [kind, step] = new Uint8Array(data)
    if (kind === 0) kinds.push(`${kind} ${step}`)
    else if (kind !== 1) kinds.push(`${kind}`)
  })
  return kinds
}

const clients = /** @type {const} */ ([
  ["3.1.0", Provider31],
  ["3.0.0", Provider30],
])

for (const [version, client] of clients) {
  const Client = /** @type {typeof Provider31} */ (/** @type {unknown} */ (client))

  test(`${version}: two clients connect, sync, see each other and agree`, async () => {
    const desk = await galley.desk("안녕하세요 🙂")
    const writer = connect(Client, desk.link, "writer", desk.writer)
    const reviewer = connect(Client, desk.link, "reviewer", desk.reviewer)
    await until("both synced", () => writer.synced && reviewer.synced)
    assert.equal(content(writer).toString(), "안녕하세요 🙂")
    content(writer).insert(5, "! 반갑습니다")
    await until("the edit", () => content(reviewer).toString() === "안녕하세요! 반갑습니다 🙂")
    reviewer.awareness.setLocalStateField("cursor", { at: 3 })
    const seen = await until("presence", () =>
      [...writer.awareness.getStates().values()].find((state) => state.cursor))
    assert.equal(seen.user.name, "Lee")
    assert.equal(seen.user.role, "reviewer")
    writer.destroy()
    await until("the writer's leaving", () => reviewer.awareness.getStates().size === 1)
    reviewer.destroy()
  })

  test(`${version}: a reviewer's edit closes its client and is in no other replica`, async () => {
    const desk = await galley.desk("text")
    const writer = connect(Client, desk.link, "writer", desk.writer)
    const reviewer = connect(Client, desk.link, "reviewer", desk.reviewer)
    await until("both synced", () => writer.synced && reviewer.synced)
    const closed = new Promise((ended) => reviewer.once("connection-close", ended))
    content(reviewer).insert(0, "EVIL ")
    assert.equal((await closed).code, 4403)
    content(writer).insert(4, "!")
    reviewer.destroy()
    const anew = connect(Client, desk.link, "reviewer", desk.reviewer)
    await until("the writer's edit", () => content(anew).toString() === "text!")
    assert.equal(content(writer).toString(), "text!")
    writer.destroy()
    anew.destroy()
  })

  test(`${version}: beside a reviewer who types suggestions a client receives nothing but the text`, async () => {
    const desk = await galley.desk("저는 물류가 좋습니다.")
    const writer = connect(Client, desk.link, "writer", desk.writer)
    const reviewer = connect(Client, desk.link, "reviewer", desk.reviewer)
    await until("both synced", () => writer.synced && reviewer.synced)
    await until("presence", () => writer.awareness.getStates().size === 2 && reviewer.awareness.getStates().size === 2)
    const frames = [writer, reviewer].map(received)
    /** @param {string} token @param {string} path @param {object} body */
    const post = async (token, path, body) => {
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" }
      const answer = await fetch(`${galley.url}/api/share-links/${desk.link}/${path}`, { method: "POST", headers, body: JSON.stringify(body) })
      assert.equal(answer.status, 200)
      return answer.json()
    }
    const [id, other] = [`typed-by-${version}-000001`.replaceAll(".", "-"), `typed-by-${version}-000002`.replaceAll(".", "-")]
    for (let count = 0; count < 20; count++) {
      const part = { start: 3, end: 6, quote: "물류가", text: `유통이${"!".repeat(count)}` }
      const gap = { at: 12, text: " 정말로".repeat(count + 1) }
      const put = [{ id, version: count || null, parts: [part] }, { id: other, version: count || null, parts: [gap] }]
      const { items } = await post(desk.reviewer, "suggestions", { put })
      assert.deepEqual(items.map((/** @type {any} */ item) => [item.state, item.version]), [["kept", count + 1], ["kept", count + 1]])
    }
    assert.deepEqual(frames, [[], []], "neither has received a frame")
    const decided = await post(desk.writer, "decisions", { decision: "accept", reviews: [{ id, version: 20 }] })
    const text = `저는 유통이${"!".repeat(19)} 좋습니다.`
    await until("the accepted words", () => [writer, reviewer].every((provider) => content(provider).toString() === text))
    await post(desk.writer, `decisions/${decided.id}/undo`, {})
    await until("the old words", () => [writer, reviewer].every((provider) => content(provider).toString() === "저는 물류가 좋습니다."))
    // An update of the sync protocol each for the acceptance and for its undo.
    assert.deepEqual(frames, [["0 2", "0 2"], ["0 2", "0 2"]])
    writer.destroy()
    reviewer.destroy()
  })

  test(`${version}: edits made while the server is away arrive when it is back`, async () => {
    const desk = await galley.desk("one")
    const writer = connect(Client, desk.link, "writer", desk.writer)
    await until("synced", () => writer.synced)
    await galley.end("SIGTERM")
    content(writer).insert(3, " two")
    await galley.run()
    const reviewer = connect(Client, desk.link, "reviewer", desk.reviewer)
    await until("the offline edit", () => content(reviewer).toString() === "one two")
    writer.destroy()
    reviewer.destroy()
  })
}

// Each of them waits most of its time, and none restarts the server.
describe("clients that wait", { concurrency: true }, () => {
  test("quiet clients stay connected, of either version", async () => {
    let drops = 0
    const quiet = await Promise.all(clients.map(async ([, client]) => {
      const Client = /** @type {typeof Provider31} */ (/** @type {unknown} */ (client))
      const desk = await galley.desk("text")
      const writer = connect(Client, desk.link, "writer", desk.writer)
      await until("synced", () => writer.synced)
      writer.on("connection-close", () => { drops += 1 })
      return writer
    }))
    await new Promise((done) => setTimeout(done, QUIET_MS))
    assert.equal(drops, 0)
    for (const writer of quiet) {
      assert.ok(writer.wsconnected)
      writer.destroy()
    }
  })

  test("3.1.0: a taken seat is refused once, with its holder, and the client does not reconnect", async () => {
    const desk = await galley.desk("text")
    const holder = connect(Provider31, desk.link, "writer", desk.writer)
    await until("synced", () => holder.synced)
    const second = connect(Provider31, desk.link, "writer", desk.writer)
    /** @type {{ code: number, reason: string }[]} */
    const closes = []
    second.on("closed", (close) => closes.push(close))
    const [close] = await until("the refusal", () => closes.length > 0 && closes)
    assert.equal(close?.code, 4409)
    assert.equal(JSON.parse(close?.reason ?? "").holder.name, "Kim")
    await new Promise((done) => setTimeout(done, 3_000))
    assert.equal(closes.length, 1)
    assert.ok(holder.wsconnected)
    second.destroy()
    holder.destroy()
  })

  test("3.0.0: a client that ignores close codes is throttled", async () => {
    const desk = await galley.desk("text")
    const holder = connect(Provider31, desk.link, "writer", desk.writer)
    await until("synced", () => holder.synced)
    const Client = /** @type {typeof Provider31} */ (/** @type {unknown} */ (Provider30))
    const second = connect(Client, desk.link, "writer", desk.writer)
    let refusals = 0
    second.on("connection-close", () => { refusals += 1 })
    await new Promise((done) => setTimeout(done, 10_000))
    assert.ok(refusals > 2 && refusals < 15, `${refusals} in 10 s, against 95 unslowed`)
    assert.ok(holder.wsconnected)
    second.destroy()
    holder.destroy()
  })
})
