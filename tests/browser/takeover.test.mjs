// @ts-check
/** One user, two tabs, two servers behind one Redis. */

import assert from "node:assert/strict"
import { once } from "node:events"
import { connect, createServer } from "node:net"
import { after, afterEach, before, beforeEach, test } from "node:test"


import { Browser, drawn, freePort, Galley, Redis, timersRun, User } from "./harness.mjs"
import { assertAccessible, failureOf } from "./support.mjs"

/**
 * A renewal, a silence, a grace or the end of a lease takes minutes here, and a test waits for fifteen
 * seconds. So a test sees the event itself, on a slow machine too.
 */
const SLOW_CLOCKS = {
  GALLEY_SEATS__LEASE: "10m",
  GALLEY_SEATS__RENEW_EVERY: "3m",
  GALLEY_SEATS__CLIENT_TIMEOUT: "10m",
  GALLEY_SEATS__RESUME_GRACE: "10m",
}

/** @type {Redis} */
let redis
/** @type {Browser} */
let browser
/** @type {LoadBalancer} */
let loadBalancer
/** @type {Galley} */
let one
/** @type {Galley} */
let two

before(async () => {
  browser = await Browser.start()
})
after(() => browser.stop())
beforeEach(async () => {
  redis = await Redis.start()
  loadBalancer = await LoadBalancer.open()
})
afterEach(async (test) => {
  if (!(/** @type {any} */ (test).passed)) await browser.report(failureOf(test.name))
  await browser.clear()
  loadBalancer.close()
  await two.end("SIGKILL")
  await one.stop()
  await redis.stop()
})

/** @param {Record<string, string>} [more] */
async function start(more = {}) {
  const settings = { GALLEY_LOCKS__URL: redis.url, GALLEY_DATABASE__SHARED_SQLITE: "true", ...SLOW_CLOCKS, ...more }
  const [first, second] = [await freePort(), await freePort()]
  one = await Galley.start(settings, String(first))
  two = await one.beside(String(second))
}

/** The load balancer before several servers: one address that leads to one server. */
class LoadBalancer {
  /** @type {Set<import("node:net").Socket>} */
  #sockets = new Set()
  #port = 0
  #server = createServer((outside) => this.#join(outside)).listen(0, "127.0.0.1")

  static async open() {
    const loadBalancer = new LoadBalancer()
    await once(loadBalancer.#server, "listening")
    return loadBalancer
  }

  get url() {
    const address = this.#server.address()
    return `http://127.0.0.1:${typeof address === "object" && address ? address.port : 0}`
  }

  /** New connections lead to this server from now on. @param {Galley} galley */
  routeTo(galley) {
    this.#port = Number(galley.port)
  }

  /** New connections are accepted and get no reply from now on. */
  hang() {
    this.#port = 0
  }

  close() {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
  }

  /** @param {import("node:net").Socket} outside */
  #join(outside) {
    if (this.#port === 0) return void this.#sockets.add(outside)
    const inside = connect(this.#port, "127.0.0.1")
    for (const [socket, other] of [[outside, inside], [inside, outside]]) {
      if (!socket || !other) continue
      this.#sockets.add(socket)
      socket.on("error", () => other.destroy())
      socket.on("close", () => this.#sockets.delete(socket) && other.destroy())
      socket.pipe(other)
    }
  }
}

/** The same user's tab at another server: a cookie has a host and no port. @param {User} user @param {Galley} galley */
async function tabAt(user, galley) {
  const tab = new User(galley, await user.page.context().newPage())
  const { pathname } = new URL(user.page.url())
  await tab.page.goto(galley.url + pathname)
  return tab
}

/** Holds that typing here changes no text. The page reads what the other tab writes, so its text may change by that. @param {User} user */
async function assertReadOnly(user) {
  await user.typeAtEnd("?")
  await drawn(user)
  assert.doesNotMatch(await user.text(), /\?/)
}

test("a tab at another server takes the seat over, and the old one says so and does not fight", async () => {
  await start()
  const first = await browser.newUser(one)
  await first.begin("김민수", "Begun.")
  await first.typeAtEnd(" On one.")
  await first.seated()
  const second = await tabAt(first, two)
  await second.notice.getByText("You have this open in another tab. What you wrote there is safe.").waitFor()
  assert.equal(await second.notice.getAttribute("role"), "status")
  const offered = await second.notice.getByRole("button").allTextContents()
  assert.deepEqual(offered, ["Use it here instead", "Wait for your turn"])
  // By keyboard only.
  await second.notice.getByRole("button", { name: "Use it here instead" }).focus()
  await second.page.keyboard.press("Enter")
  await first.notice.getByText("You're now editing in another tab. This one is paused.").waitFor()
  await first.notice.getByText("Everything you wrote is saved.").waitFor()
  await first.page.locator("#seat-badges [data-role=writer][data-state=here]").waitFor()
  await second.seated()
  await second.waitForText("Begun. On one.")
  await second.typeAtEnd(" On two.")
  await second.seated()
  await assertReadOnly(first)
  await assertAccessible(first, "taken over")
  await first.shot("across-taken-over")
  // Only the user claims the seat again.
  await timersRun(first, 2_500)
  await assertReadOnly(first)
  await second.typeAtEnd(" Still.")
  await second.seated()
  await first.page.bringToFront()
  await first.notice.getByRole("button", { name: "Use it here instead" }).click()
  await second.notice.getByText("You're now editing in another tab. This one is paused.").waitFor()
  await first.seated()
  await first.waitForText("Begun. On one. On two. Still.")
  await assertReadOnly(second)
  await first.typeAtEnd(" Back.")
  await first.seated()
  browser.assertContent()
})

test("a waiter of another server is counted at the seat badge, and seated when the seat is free", async () => {
  await start()
  const first = await browser.newUser(one)
  await first.begin("김민수", "Mine.")
  const second = await tabAt(first, two)
  await second.notice.getByRole("button", { name: "Wait for your turn" }).click()
  await second.notice.getByText("You're next. You can start here as soon as you close the other tab.").waitFor()
  await second.notice.getByRole("button", { name: "Stop waiting" }).waitFor()
  await first.page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")))
  await first.page.locator("#seat-badges [data-role=writer]").getByText("1 waiting").waitFor()
  await first.shot("across-counted")
  await first.page.close()
  await second.seated()
  await second.waitForText("Mine.")
  browser.assertContent()
})

test("a page resumes its seat on another server at once after a failover, also after a reload", async () => {
  await start({ GALLEY_SERVER__PUBLIC_URL: loadBalancer.url })
  loadBalancer.routeTo(one)
  const writer = await browser.newUser(one)
  /** @type {URL[]} */
  const urls = []
  writer.page.on("websocket", (socket) => urls.push(new URL(socket.url())))
  await writer.begin("Kim", "Kept.")
  assert.equal(urls.at(-1)?.searchParams.get("resume"), null)

  await one.end("SIGKILL")
  await writer.notice.getByText("Connection lost.").waitFor()
  // Not before: the notice of a quick failover is gone before a busy test has seen it.
  loadBalancer.routeTo(two)
  await writer.notice.waitFor({ state: "hidden" })
  await writer.typeAtEnd(" On.")
  await writer.seated()
  const first = urls.at(-1)?.searchParams.get("resume")
  assert.ok(first)

  await one.run()
  loadBalancer.routeTo(one)
  await two.end("SIGKILL")
  await writer.page.reload()
  await writer.seated()
  await writer.waitForText("Kept. On.")
  const second = urls.at(-1)?.searchParams.get("resume")
  assert.ok(second && second !== first, "a resume secret is accepted once")
  // No storage that a duplicate of this tab copies holds it.
  assert.deepEqual(await writer.page.evaluate(() => Object.keys(sessionStorage)), [])
  await writer.typeAtEnd(" And on.")
  await writer.seated()
  browser.assertContent()
})

test("a page gives up an attempt to connect that hangs, and makes another", async () => {
  await start({ GALLEY_SERVER__PUBLIC_URL: loadBalancer.url })
  loadBalancer.routeTo(one)
  const writer = await browser.newUser(one, { hasClock: true })
  await writer.begin("Kim", "Kept.")
  loadBalancer.hang()
  await one.end("SIGKILL")
  await writer.notice.getByText("Trying…").waitFor()
  loadBalancer.routeTo(two)
  await writer.page.clock.runFor(15_000)
  await writer.seated()
  await writer.typeAtEnd(" On.")
  await writer.seated()
  browser.assertContent()
})

test("a page that lost its seat to a takeover does not reclaim it by a reload", async () => {
  await start()
  const first = await browser.newUser(one)
  await first.begin("Kim", "Mine.")
  const second = await tabAt(first, two)
  await second.notice.getByRole("button", { name: "Use it here instead" }).click()
  await second.seated()
  await first.page.reload()
  // The resume secret of a seat that was taken over opens nothing: this tab claims like any other.
  await first.notice.getByText("You have this open in another tab.").waitFor()
  await second.typeAtEnd(" Still.")
  await second.seated()
  browser.assertContent()
})
