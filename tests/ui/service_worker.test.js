// @ts-check
/** The service worker in a bare context: the texts of pushes, pressed notifications, and renewed subscriptions. */

import assert from "node:assert/strict"
import { readFileSync } from "node:fs"
import { test } from "node:test"
import vm from "node:vm"

const ORIGIN = "https://galley.example"
const source = readFileSync(new URL("../../static/service_worker.js", import.meta.url), "utf8")

/**
 * The worker with a browser around it. The values of the browser are all that it uses.
 *
 * @param {{ tabs?: string[], language?: string }} [given] addresses of open tabs
 */
function start({ tabs = [], language = "en-GB" } = {}) {
  /** @type {Record<string, (event: any) => void>} */
  const listeners = {}
  const done = /** @type {any[]} */ ([])
  const clients = tabs.map((url) => ({
    url,
    focus: async () => void done.push({ focus: url }),
    postMessage: (/** @type {unknown} */ message) => done.push({ message, to: url }),
  }))
  const context = vm.createContext({
    URL,
    JSON,
    navigator: { language },
    location: { origin: ORIGIN },
    addEventListener: (/** @type {string} */ kind, /** @type {any} */ listener) => (listeners[kind] = listener),
    skipWaiting: () => undefined,
    clients: { matchAll: async () => clients, openWindow: async (/** @type {string} */ url) => void done.push({ open: url }) },
    registration: {
      showNotification: async (/** @type {string} */ title, /** @type {any} */ options) => void done.push({ title, ...options }),
      pushManager: { subscribe: async (/** @type {any} */ options) => ({ toJSON: () => ({ endpoint: "https://push.example/new", options }) }) },
    },
    fetch: async (/** @type {string} */ path, /** @type {any} */ init) => {
      done.push({ path, ...(init?.body === undefined ? {} : { body: JSON.parse(init.body) }) })
      return { json: async () => ({ key: "the key" }) }
    },
  })
  vm.runInContext(source, context)
  return async (/** @type {string} */ kind, /** @type {any} */ event) => {
    const waited = /** @type {Promise<unknown>[]} */ ([])
    listeners[kind]?.({ ...event, waitUntil: (/** @type {Promise<unknown>} */ work) => waited.push(work) })
    await Promise.all(waited)
    return JSON.parse(JSON.stringify(done.splice(0)))
  }
}

/** @param {unknown} payload */
const data = (payload) => ({ data: { json: () => payload } })

/** The params of each kind, and the blanks that a push of it may leave. */
const KINDS = /** @type {const} */ ([
  ["request.received", { from: "Kim", as: "writer", title: "Essay" }],
  ["request.received", { from: "Kim", as: "reviewer" }],
  ["request.accepted", { by: "Lee", title: "Essay" }],
  ["request.unanswered", { from: "Kim" }],
  ["review.unanswered", { title: "Essay", by: "Lee", count: "3" }],
  ["seat.free", { title: "Essay", role: "writer" }],
  ["seat.free", { title: "Essay", role: "reviewer" }],
])

test("each kind has a title and a text in both languages, with and without its names", async () => {
  const send = start()
  for (const lang of ["en", "ko"]) {
    for (const [kind, params] of KINDS) {
      const { as, role } = /** @type {Record<string, string>} */ (params)
      const few = { ...(as === undefined ? {} : { as }), ...(role === undefined ? {} : { role }) }
      const [full] = await send("push", data({ kind, params, lang, url: "/" }))
      const [bare] = await send("push", data({ kind, params: few, lang, url: "/" }))
      for (const { title, body, lang: of } of [full, bare]) {
        assert.notEqual(title, "Galley", kind)
        assert.notEqual(body, "", kind)
        assert.doesNotMatch(body, /\{|undefined|null/)
        assert.equal(of, lang)
        if (lang === "ko") assert.match(title + body, /[가-힣]/)
      }
      for (const name of Object.values(params).filter((value) => /^(Kim|Lee|Essay|3)$/.test(value))) assert.ok(full.body.includes(name), `${kind}: ${full.body}`)
    }
  }
})

test("the kinds are those of the server", () => {
  const server = readFileSync(new URL("../../src/push/notification.rs", import.meta.url), "utf8")
  const kinds = [...server.matchAll(/Self::\w+ => "([a-z]+\.[a-z]+)"/g)].map(([, kind]) => kind)
  assert.deepEqual(new Set(kinds), new Set(KINDS.map(([kind]) => kind)))
})

test("a push of an unknown kind, without a payload or with a broken one shows the name of the service", async () => {
  const send = start({ language: "ko-KR" })
  const broken = { json: () => JSON.parse("{") }
  for (const push of [data({ kind: "of.a.newer.server", url: "/" }), { data: null }, { data: broken }, data({ kind: "seat.free" })]) {
    const [shown] = await send("push", push)
    assert.equal(shown.title, "Galley")
    assert.equal(shown.body, "")
    assert.equal(shown.data.url, `${ORIGIN}/`)
    assert.equal(shown.lang, "ko")
  }
})

test("a push names its page on this origin only, and a tag replaces an older notification", async () => {
  const send = start()
  const [shown] = await send("push", data({ kind: "request.unanswered", params: { from: "Kim" }, url: "/#requests", tag: "a" }))
  assert.equal(shown.data.url, `${ORIGIN}/#requests`)
  assert.equal(shown.tag, "a")
  assert.equal(shown.renotify, true)
  for (const url of ["https://other.example/", "//other.example/x", "javascript:alert(1)", 7, null]) {
    const [other] = await send("push", data({ kind: "request.unanswered", url }))
    assert.equal(other.data.url, `${ORIGIN}/`, String(url))
  }
})

test("a pressed notification focuses the open tab of its page, or opens the page", async () => {
  const notification = (/** @type {string} */ path) => ({ notification: { close: () => undefined, data: { url: ORIGIN + path } } })
  const tabs = [`${ORIGIN}/d/doc_1`, `${ORIGIN}/`]
  const send = start({ tabs })
  assert.deepEqual(await send("notificationclick", notification("/d/doc_1")), [{ message: { opened: "" }, to: tabs[0] }, { focus: tabs[0] }])
  assert.deepEqual(await send("notificationclick", notification("/#requests")), [{ message: { opened: "#requests" }, to: tabs[1] }, { focus: tabs[1] }])
  assert.deepEqual(await send("notificationclick", notification("/s/shr_2")), [{ open: `${ORIGIN}/s/shr_2` }])
})

test("a renewed subscription is sent to the server, made anew if the browser made none", async () => {
  const send = start({ language: "ko" })
  const newSubscription = { toJSON: () => ({ endpoint: "https://push.example/1" }) }
  assert.deepEqual(await send("pushsubscriptionchange", { newSubscription }), [{ path: "/api/push-subscriptions", body: { endpoint: "https://push.example/1", lang: "ko" } }])
  const oldSubscription = { options: { userVisibleOnly: true } }
  const [fromOld] = await send("pushsubscriptionchange", { oldSubscription })
  assert.deepEqual(fromOld.body.options, { userVisibleOnly: true })
  const [key, anew] = await send("pushsubscriptionchange", {})
  assert.equal(key.path, "/api/push-key")
  assert.deepEqual(anew.body.options, { userVisibleOnly: true, applicationServerKey: "the key" })
})

test("the service worker caches nothing and takes no request of a page", () => {
  assert.doesNotMatch(source, /addEventListener\("fetch"|\bcaches\./)
})
