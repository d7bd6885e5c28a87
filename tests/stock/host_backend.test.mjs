// @ts-check
/** A host's backend with a server token: each call has the types of the OpenAPI document, and `tsc` checks them. */
import assert from "node:assert/strict"
import { createHmac, randomUUID } from "node:crypto"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { after, before, test } from "node:test"

// @ts-expect-error -- it comes without types
import { WebSocket } from "ws"
import { WebsocketProvider } from "y-websocket"
import * as Y from "yjs"

import { Galley } from "./galley.mjs"

/** @typedef {import("../../static/js/lib/openapi.d.ts").paths} Paths */
/** @template T @typedef {T extends { content: { "application/json": infer J } } ? J : null} Content */
/** @template O @typedef {O extends { responses: infer R } ? { [S in keyof R]: Content<R[S]> }[keyof R & (200 | 201 | 202 | 204)] : never} Answer */
/** @template O @typedef {O extends { requestBody?: { content: { "application/json": infer J } } } ? J : undefined} Body */
/** @template O @typedef {O extends { parameters: { query?: infer T } } ? T : undefined} Query */
/** @template O @typedef {O extends { parameters: { path: infer T } } ? T : Record<string, never>} Names */

const SCOPES = "documents:read documents:write documents:delete reviews:read reviews:write users:export users:delete"

/** @type {Galley} */
let galley
before(async () => {
  galley = await Galley.start({ GALLEY_AUTH__GUESTS: "false" })
})
after(() => galley.stop())

/** @param {string} sub @param {string} [scope] */
function token(sub, scope) {
  const secret = readFileSync(join(galley.folder, "data/secret"), "utf8").trimEnd()
  const encode = (/** @type {object} */ part) => Buffer.from(JSON.stringify(part)).toString("base64url")
  const now = Math.floor(Date.now() / 1_000)
  const claims = { iss: "galley", sub, name: sub, scope, iat: now, exp: now + 600, jti: randomUUID() }
  const signed = `${encode({ alg: "HS256", typ: "JWT" })}.${encode(claims)}`
  return `${signed}.${createHmac("sha256", secret).update(signed).digest("base64url")}`
}

/**
 * Calls an operation in the name of a user.
 *
 * @template {keyof Paths} A
 * @template {keyof Paths[A] & ("get" | "put" | "post" | "delete")} M
 * @param {string} user @param {M} method @param {A} address @param {Names<Paths[A][M]>} names @param {Body<Paths[A][M]>} [body] @param {Query<Paths[A][M]>} [query]
 * @returns {Promise<{ status: number, json: Answer<Paths[A][M]>, text: string, etag: string | null }>}
 */
async function as(user, method, address, names, body, query) {
  const filled = address.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(/** @type {Record<string, string>} */ (names)[name] ?? "")) + (query ? `?${new URLSearchParams(/** @type {Record<string, string>} */ (query))}` : "")
  /** @type {Record<string, string>} */
  const headers = { authorization: `Bearer ${token("backend", SCOPES)}`, "Galley-User": user, "Galley-User-Name": user }
  if (body !== undefined) headers["content-type"] = "application/json"
  const response = await fetch(galley.url + filled, { method: method.toUpperCase(), headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) })
  const text = await response.text()
  assert.ok(response.ok, `${method} ${filled}: ${response.status} ${text}`)
  const isJson = /^application\/(problem\+)?json/.test(response.headers.get("content-type") ?? "")
  return { status: response.status, json: isJson && text ? JSON.parse(text) : null, text, etag: response.headers.get("etag") }
}

/** The user's own browser in a seat. @param {string} user @param {string} link @param {"writer" | "reviewer"} role */
async function seated(user, link, role) {
  const url = `${galley.url.replace("http", "ws")}/ws/share-links/${link}`
  const provider = new WebsocketProvider(url, role, new Y.Doc(), { WebSocketPolyfill: WebSocket, protocols: ["galley", `galley.token.${token(user)}`], disableBc: true })
  await new Promise((resolve) => provider.once("sync", resolve))
  return provider
}

test("a backend creates, shares, joins, reviews, replaces, exports and deletes by the types of the OpenAPI document", async () => {
  const made = await as("kim", "put", "/api/documents/by-external-id/{external_id}", { external_id: "essay-1" }, { title: "자기소개서", text: "저는 물류를 배웠습니다." })
  assert.equal(made.status, 201)
  const id = made.json.id
  const again = await as("kim", "put", "/api/documents/by-external-id/{external_id}", { external_id: "essay-1" }, { title: "x", text: "" })
  assert.deepEqual([again.status, again.json.id, again.json.external_id], [200, id, "essay-1"])
  const { json: link } = await as("kim", "post", "/api/documents/{id}/share-link", { id })
  await as("lee", "post", "/api/share-links/{id}/join", { id: link.id }, { invite: link.invite?.token ?? "" })

  const reviewer = await seated("lee", link.id, "reviewer")
  const anchor = { start: 3, end: 6, quote: "물류를" }
  const { json: review } = await as("lee", "post", "/api/share-links/{id}/reviews", { id: link.id }, { anchor, body: "어디에서요?" })
  const { etag } = await as("kim", "get", "/api/documents/{id}/text", { id })
  assert.ok(etag)
  await as("kim", "put", "/api/documents/{id}/text", { id }, { text: "저는 항만에서 물류를 배웠습니다." })
  // The reviewer's socket may bring the edit after the answer of the request.
  while (reviewer.doc.getText("content").toString() !== "저는 항만에서 물류를 배웠습니다.") await new Promise((resolve) => reviewer.doc.once("update", resolve))
  const { json: found } = await as("lee", "get", "/api/share-links/{id}/reviews/{rid}", { id: link.id, rid: review.id })
  assert.deepEqual([found.anchor?.state, found.anchor?.start], ["exact", 8])
  reviewer.destroy()
  // The presence of the document has a timer, which would keep node running.
  reviewer.doc.destroy()

  const file = await as("kim", "get", "/api/share-links/{id}/export", { id: link.id }, undefined, { format: "docx" })
  assert.match(file.text, /^PK/)
  const lines = (await as("lee", "get", "/api/users/{id}/export", { id: "lee" })).text.trimEnd().split("\n").map((line) => JSON.parse(line))
  assert.ok(lines.some((line) => JSON.stringify(line).includes("어디에서요?")), JSON.stringify(lines))
  await as("kim", "delete", "/api/documents/{id}", { id })
  const { status, json: receipt } = await as("lee", "delete", "/api/users/{id}", { id: "lee" })
  assert.deepEqual([status, receipt.state], [202, "running"])
  /** @type {string} */
  let state = receipt.state
  while (state !== "done") state = (await as("lee", "get", "/api/user-deletions/{receipt}", { receipt: receipt.id })).json.state
})
