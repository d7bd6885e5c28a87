// @ts-check
/**
 * The wait queue on the page: the user's other tab with a real server, rarer cases with a server of the
 * test.
 */

import assert from "node:assert/strict"
import { test } from "node:test"

import { createEncoder, toUint8Array, writeVarString, writeVarUint } from "lib0/encoding"

import { Galley, timersRun, until, User } from "./harness.mjs"
import { assertAccessible, assertFits, bothSeated, browser, galley, inEachLook, replaceGalley, withGalley } from "./support.mjs"

const EVENT_FRAME = 100
const QUERY_AWARENESS = 3
const HOUR = 3_600_000
/** The page replaces a probed socket without a reply by then, in ms (`PROBE_TIMEOUT` in static/js/seat/connection.ts). */
const LONGER_THAN_PROBE = 3_500
/** Only a clean close frees a seat within minutes. */
const SLOW_CLOCKS = {
  GALLEY_SEATS__LEASE: "10m",
  GALLEY_SEATS__RENEW_EVERY: "3m",
  GALLEY_SEATS__CLIENT_TIMEOUT: "10m",
  GALLEY_SEATS__RESUME_GRACE: "10m",
}

withGalley({ per: "test" })

/** Another tab of the same user, which the test can put out of sight. @param {User} user */
async function tabOf(user) {
  const page = await user.page.context().newPage()
  await page.addInitScript(() => {
    let hidden = false
    Object.defineProperty(document, "hidden", { get: () => hidden })
    Object.assign(globalThis, {
      hide: (/** @type {boolean} */ now) => {
        hidden = now
        document.dispatchEvent(new Event("visibilitychange"))
      },
    })
  })
  return new User(galley, page)
}

/** @param {User} user @param {boolean} hidden */
const hide = (user, hidden) =>
  // @ts-expect-error -- the init script above
  user.page.evaluate((now) => globalThis.hide(now), hidden)

/** A second tab of the user, waiting for the first. */
async function twoTabs() {
  const first = await browser.newUser(galley)
  await first.begin("Kim", "Mine.")
  const second = await tabOf(first)
  await second.page.goto(first.page.url())
  await button(second, "Wait for your turn").waitFor()
  return { first, second }
}

/** @param {User} user @param {string} name */
const button = (user, name) => user.notice.getByRole("button", { name, exact: true })

/** Waits until the keyboard is there. @param {User} user @param {string} selector @param {string} [text] */
const focusAt = (user, selector, text = "") =>
  until(
    () =>
      user.page.evaluate(
        ([wanted, text]) => {
          const { activeElement: element } = document
          return Boolean(element?.matches(wanted) && element.textContent?.includes(text))
        },
        /** @type {const} */ ([selector, text]),
      ),
    `the focus is at ${selector} ${text}`,
  )

test("a waiter in a second tab is seated by the hand-over of the first, and types without a mouse", async () => {
  await replaceGalley(await Galley.start(SLOW_CLOCKS))
  const { first, second } = await twoTabs()
  let sockets = 0
  second.page.on("websocket", () => sockets++)
  const offered = await second.notice.getByRole("button").allTextContents()
  assert.deepEqual(offered, ["Use it here instead", "Wait for your turn"])
  await button(second, "Wait for your turn").focus()
  await second.page.keyboard.press("Enter")
  await second.notice.getByText("You're next. You can start here as soon as you close the other tab.").waitFor()
  await second.notice.getByText(/Waiting since \d\d:\d\d/).waitFor()
  await focusAt(second, "button", "Stop waiting")
  await first.typeAtEnd(" Meanwhile.")
  await first.page.locator("#saved[data-kind=saved]").waitFor()
  const before = sockets
  await first.page.close()
  // A seat without a release is free after minutes here, and the test waits for seconds.
  await second.seated()
  assert.equal(sockets, before, "the server notified the waiter, and the page sent no second claim")
  await second.page.locator("#toast").getByText("It's your turn. You can start now.").waitFor()
  await second.notice.waitFor({ state: "hidden" })
  await second.waitForText("Mine. Meanwhile.")
  await focusAt(second, ".cm-content")
  await second.page.keyboard.press("Control+End")
  await second.page.keyboard.type(" Here.")
  await second.waitForText("Mine. Meanwhile. Here.")
  await second.seated()
  await second.page.reload()
  await second.waitForText("Mine. Meanwhile. Here.")
})

test("a waiter that leaves the wait queue is not seated, and may claim again", async () => {
  const { first, second } = await twoTabs()
  await button(second, "Wait for your turn").click()
  await second.notice.getByText("You're next.").waitFor()
  await button(second, "Stop waiting").click()
  await focusAt(second, "button", "Wait for your turn")
  await first.page.close()
  const headers = { authorization: `Bearer ${galley.adminToken}` }
  const sessions = async () =>
    (await (await second.page.request.get(`${galley.url}/api/admin/sessions`, { headers })).json()).sessions
  await until(async () => (await sessions()).length === 0, "the first tab's seat is free")
  // A hand-over comes at the release: the period shows that none follows.
  await timersRun(second, 500)
  assert.deepEqual(await sessions(), [])
  await button(second, "Wait for your turn").click()
  await second.seated()
})

test("a waiter may take the seat over, and the other tab may wait for it", async () => {
  const { first, second } = await twoTabs()
  await button(second, "Wait for your turn").click()
  await second.notice.getByText("You're next.").waitFor()
  await button(second, "Use it here instead").click()
  await second.seated()
  await first.notice.getByText("You're now editing in another tab").waitFor()
  await button(first, "Wait for your turn").click()
  await first.notice.getByText("You're next.").waitFor()
  await second.page.close()
  await first.seated()
})

test("a waiter whose tab becomes visible keeps its queue position and its connection", async () => {
  const { first, second } = await twoTabs()
  await button(second, "Wait for your turn").click()
  await second.notice.getByText("You're next.").waitFor()
  let sockets = 0
  second.page.on("websocket", () => sockets++)
  const texts = await second.page.evaluateHandle(() => {
    /** @type {string[]} */
    const texts = []
    const notice = /** @type {HTMLElement} */ (document.querySelector("#notice"))
    const look = () => texts.push(notice.innerText)
    new MutationObserver(look).observe(notice, { subtree: true, childList: true, characterData: true })
    return texts
  })
  await second.page.evaluate(() => dispatchEvent(new Event("online")))
  await timersRun(second, LONGER_THAN_PROBE)
  assert.equal(sockets, 0, "the page sent no second claim")
  assert.doesNotMatch((await texts.jsonValue()).join("\n"), /Connection lost/)
  await first.page.close()
  await second.seated()
})

test("a hand-over to a hidden tab is shown in its title until the tab is visible", async () => {
  const { first, second } = await twoTabs()
  await button(second, "Wait for your turn").click()
  await second.notice.getByText("You're next.").waitFor()
  await hide(second, true)
  await first.page.close()
  await until(async () => (await second.page.title()).startsWith("● Your turn – Mine."), "the title says it")
  await hide(second, false)
  await until(async () => (await second.page.title()) === "Mine. · Galley", "the title is the document's again")
})

/** A fake server for one page: it records claims and sends the test's frames and closes. */
class FakeServer {
  /** @type {URLSearchParams[]} */
  claims = []
  /** @type {import("playwright-core").WebSocketRoute | null} */
  #socket = null

  /** @param {import("playwright-core").Page} page @param {(server: FakeServer) => void} answer to each connection */
  static async at(page, answer) {
    const server = new FakeServer()
    await page.routeWebSocket(/\/ws\/share-links\//, (socket) => {
      server.#socket = socket
      server.claims.push(new URL(socket.url()).searchParams)
      // A presence query is the page's heartbeat: the reply is an empty presence.
      socket.onMessage((message) => message[0] === QUERY_AWARENESS && socket.send(Buffer.of(1, 1, 0)))
      answer(server)
    })
    return server
  }

  /** The `wait` of the page's claim. */
  get wait() {
    return this.claims.at(-1)?.get("wait") ?? null
  }

  /** @param {string} event @param {object} fields */
  sendEvent(event, fields) {
    const encoder = createEncoder()
    writeVarUint(encoder, EVENT_FRAME)
    writeVarString(encoder, JSON.stringify({ event, ...fields }))
    this.#socket?.send(Buffer.from(toUint8Array(encoder)))
  }

  /** @param {number} code @param {string} [reason] */
  close(code, reason = "") {
    return this.#socket?.close({ code, reason })
  }
}

/** A reviewer's tab that claims a seat of Kim. @param {string} [locale] */
async function beforeKim(locale = "en-GB") {
  const { reviewer } = await bothSeated("자리를 기다리는 글", { locale })
  const tab = await tabOf(reviewer)
  await tab.page.clock.install()
  const holder = { name: locale === "ko-KR" ? "박지훈" : "Kim", since: new Date().toISOString() }
  const waiting = (/** @type {number} */ position) => server.sendEvent("seat.waiting", { position, holder, retry_at: holder.since })
  const server = await FakeServer.at(tab.page, () => {
    if (server.wait === null) server.close(4409, JSON.stringify({ holder }))
    else waiting(1)
  })
  await tab.page.goto(reviewer.page.url())
  return { tab, server, waiting }
}

test("another user's seat shows its holder, grant time and queue position, and the focus stays", async () => {
  const { tab, waiting } = await beforeKim()
  await tab.notice.getByText(/Kim has been reviewing this since \d\d:\d\d\. The text is safe\./).waitFor()
  // The text has not arrived yet, so the page may not call it empty.
  assert.equal(await tab.page.locator(".cm-placeholder").isVisible(), false)
  await button(tab, "Try again").click()
  await tab.page.locator("#toast").getByText("It is still in use.").waitFor()
  await focusAt(tab, "button", "Try again")
  await button(tab, "Wait for your turn").click()
  await tab.notice.getByText("You're next. You can start as soon as Kim leaves.").waitFor()
  await focusAt(tab, "button", "Stop waiting")
  waiting(3)
  await tab.notice.getByText("You are number 3 in the queue.").waitFor()
  await focusAt(tab, "button", "Stop waiting")
})

test("a wait that times out is renewed for an hour, and then reported as failed", async () => {
  const { tab, server } = await beforeKim()
  await button(tab, "Wait for your turn").click()
  await tab.notice.getByText("You're next.").waitFor()
  assert.equal(server.wait, "300")
  await tab.page.clock.fastForward(5 * 60_000)
  const before = server.claims.length
  await server.close(4408, "seat-not-free")
  // The notice stays in between; a close of the earlier socket has no effect.
  await until(async () => before < server.claims.length, "it is asked again")
  await tab.notice.getByText(/Waiting since \d\d:\d\d, 5 minutes so far/).waitFor()
  await tab.notice.getByText("You're next.").waitFor()
  await button(tab, "Stop waiting").waitFor()
  await tab.page.clock.fastForward(HOUR - 6 * 60_000)
  await server.close(4408, "seat-not-free")
  await until(async () => Number(server.wait) <= 60, "the last stretch is what is left")
  await tab.page.clock.fastForward(60_000)
  await server.close(4408, "seat-not-free")
  await tab.notice.getByText("It did not become free within 1 hour. Kim has been reviewing this").waitFor()
  await button(tab, "Wait again").click()
  await tab.notice.getByText("You're next.").waitFor()
  assert.equal(server.wait, "300")
})

test("a reconnect loses the queue position and keeps waiting, and a revoked link ends the wait", async () => {
  const { tab, server } = await beforeKim()
  await button(tab, "Wait for your turn").click()
  await tab.notice.getByText("You're next.").waitFor()
  const before = server.claims.length
  // No timer runs, so the page does not rejoin before the test has read its words.
  await tab.stopClock()
  await server.close(4503)
  await tab.notice.getByText("Connection lost. You rejoin the queue by yourself").waitFor()
  await tab.page.clock.resume()
  await tab.notice.getByText("You're next.").waitFor()
  assert.ok(before < server.claims.length && server.wait !== null)
  await server.close(4404, "no-such-link")
  await tab.notice.getByText("The share link was withdrawn, or the document was deleted.").waitFor()
})

test("the wait queue in each width and scheme", async () => {
  const { tab, server, waiting } = await beforeKim("ko-KR")
  const wait = tab.notice.locator("[data-queue=wait]")
  await inEachLook(tab, async ({ width, scheme }) => {
    /** @param {string} state */
    const look = async (state) => {
      const name = `waiting-${state}-${width}-${scheme}`
      await assertFits(tab, name)
      await assertAccessible(tab, name)
      const box = await tab.notice.locator("> div").boundingBox()
      return `${box?.x} ${box?.height}`
    }
    await wait.waitFor()
    const boxes = [await look("taken")]
    const before = server.claims.length
    await wait.click()
    await tab.notice.locator(".waited").waitFor()
    await until(async () => before < server.claims.length && server.wait !== null, "it is asked")
    waiting(2)
    await tab.notice.getByText("2번째").waitFor()
    boxes.push(await look("later"))
    waiting(1)
    await tab.notice.getByText("다음 차례입니다").waitFor()
    boxes.push(await look("next"))
    assert.equal(new Set(boxes).size, 1, `${width}: something moves: ${boxes}`)
    await tab.notice.locator("[data-queue=leave]").click()
  })
})
