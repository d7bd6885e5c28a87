// @ts-check
/**
 * Reconnects of a page: after a server's announcement, on request, after the machine's sleep, and after a
 * reset.
 */

import assert from "node:assert/strict"
import { test } from "node:test"

import { createEncoder, toUint8Array, writeVarString, writeVarUint } from "lib0/encoding"

import { timersRun, until, User } from "./harness.mjs"
import { browser, galley, withGalley } from "./support.mjs"

const EVENT_FRAME = 100
/** So much later, in ms, the page has tried to write what it typed (`WRITE_DELAY` in static/js/unsaved/journal.ts). */
const LONGER_THAN_WRITE_DELAY = 400
/** The page probes a socket after 25 s of silence, checked every 2 s, and replaces it 3 s later. In ms. */
const LONGER_THAN_SILENCE = 31_000

withGalley({ per: "test" })

/** The path to the server, which a test can block without notifying either end. */
class NetworkPath {
  /** The parameters of each socket. @type {URLSearchParams[]} */
  claims = []
  /** The number of first sockets that are blocked. */
  #blocked = 0
  /** @type {import("playwright-core").WebSocketRoute | null} */
  #page = null

  /** @param {User} user */
  static async of({ page }) {
    const path = new NetworkPath()
    await page.routeWebSocket(/\/ws\/share-links\//, (socket) => {
      path.#join(socket)
    })
    return path
  }

  /** @param {import("playwright-core").WebSocketRoute} page */
  #join(page) {
    this.#page = page
    this.claims.push(new URL(page.url()).searchParams)
    const number = this.sockets
    const server = page.connectToServer()
    const passes = () => this.#blocked < number
    page.onMessage((message) => passes() && server.send(message))
    server.onMessage((message) => passes() && page.send(message))
    server.onClose((code, reason) => passes() && page.close({ code, reason }))
  }

  get sockets() {
    return this.claims.length
  }

  /** Blocks all traffic until the page opens another socket. */
  block() {
    this.#blocked = this.sockets
  }

  /** Says it in the server's place. @param {object} event */
  sendEvent(event) {
    const encoder = createEncoder()
    writeVarUint(encoder, EVENT_FRAME)
    writeVarString(encoder, JSON.stringify(event))
    this.#page?.send(Buffer.from(toUint8Array(encoder)))
  }

  /** @param {number} code @param {string} reason */
  close(code, reason) {
    return this.#page?.close({ code, reason })
  }
}

/**
 * Holds all writes to the browser's storage, as a slow disk does.
 *
 * @param {User} user
 * @returns {Promise<() => Promise<void>>} lets it be written
 */
async function slowDisk({ page, galley }) {
  const other = await page.context().newPage()
  await other.goto(galley.url)
  await other.evaluate(
    () =>
      new Promise((resolve) => {
        const request = indexedDB.open("galley")
        request.onsuccess = () => {
          const store = request.result.transaction("unsaved", "readwrite").objectStore("unsaved")
          // A transaction lives as long as it has requests, and those after it wait.
          const renew = () => {
            resolve(undefined)
            if (document.title !== "over") store.count().onsuccess = renew
          }
          renew()
        }
      }),
  )
  return async () => {
    await other.evaluate(() => void (document.title = "over"))
    await other.close()
  }
}

test("the page shows the time of its next attempt, and reconnects at once on request or when the network is back", async () => {
  const writer = await browser.newUser(galley, { locale: "ko-KR", hasClock: true })
  await writer.begin("김민수", "Here.")
  const now = writer.notice.getByRole("button", { name: "지금 연결하기" })
  for (const again of [() => now.press("Enter"), () => writer.page.evaluate(() => dispatchEvent(new Event("online")))]) {
    await galley.end("SIGKILL")
    await writer.notice.getByText("연결이 끊겼습니다.").waitFor()
    await writer.notice.getByText(/\d+초 뒤 다시 연결/).waitFor()
    // From here on no timer of the page runs: it does not reconnect by itself.
    await writer.stopClock()
    await galley.run()
    assert.ok(await writer.notice.isVisible(), "nothing happens by itself")
    await again()
    await writer.notice.waitFor({ state: "hidden" })
    await writer.page.clock.resume()
    await writer.seated()
    await writer.shot("reconnect")
  }
})

test("a page whose server lost saved edits names that deleted text may return", async () => {
  const writer = await browser.newUser(galley, { locale: "ko-KR" })
  const words = "최근 1분 안에 지운 내용이 되살아났을 수 있으니 확인해 주세요."
  const path = await NetworkPath.of(writer)
  await writer.begin("김민수", "Here.")
  await path.close(1012, "document-reset")
  await until(async () => path.sockets === 2, "it connects again")
  await writer.seated()
  assert.equal(await writer.page.locator("#toast", { hasText: words }).count(), 0)
  await path.close(1012, "database-set-back")
  await writer.page.locator("#toast", { hasText: words }).waitFor()
  await writer.seated()
})

test("a half-open socket is found after a sleep and replaced, and a live one is not", async () => {
  const writer = await browser.newUser(galley, { hasClock: true })
  const path = await NetworkPath.of(writer)
  await writer.begin("Kim", "Awake.")
  assert.equal(path.sockets, 1)
  const wake = () => writer.page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")))
  const probeTimeout = 3_000
  await wake()
  await writer.typeAtEnd(" Still.")
  await writer.seated()
  await writer.page.clock.runFor(probeTimeout)
  assert.equal(path.sockets, 1, "it answered")
  path.block()
  await writer.typeAtEnd(" Unheard.")
  await wake()
  await writer.page.clock.runFor(probeTimeout)
  await until(async () => path.sockets === 2, "it asks by another socket")
  await writer.seated()
  await writer.page.reload()
  await writer.waitForText("Awake. Still. Unheard.")
})

test("a live socket survives a sleep of the machine", async () => {
  const writer = await browser.newUser(galley, { hasClock: true })
  const path = await NetworkPath.of(writer)
  await writer.begin("Kim", "Awake.")
  // Longer than the bound of silence: the first timer after the sleep probes and closes nothing.
  await writer.page.clock.fastForward(60_000)
  await writer.typeAtEnd(" Again.")
  await writer.seated()
  await writer.page.clock.runFor(10_000)
  await writer.seated()
  assert.equal(path.sockets, 1)
})

for (const { how, get, meanwhile, ends } of [
  {
    how: "by taking it over",
    get: "Use it here instead",
    // The user continues there, and this tab receives no event of it.
    meanwhile: async (/** @type {User} */ first) => {
      await first.notice.getByRole("button", { name: "Use it here instead" }).click()
      // Otherwise the other tab might resume the seat first, and then lose it by the takeover.
      await first.seated()
    },
    ends: async (/** @type {User} */ first, /** @type {User} */ second) => {
      await second.notice.getByText("You have this open in another tab").waitFor()
      await first.seated()
    },
  },
  {
    how: "by waiting for it",
    get: "Wait for your turn",
    meanwhile: async () => undefined,
    ends: (/** @type {User} */ _first, /** @type {User} */ second) => second.seated(),
  },
]) {
  test(`after a long silence a tab that got its seat ${how} does not do so again unasked`, async () => {
    const first = await browser.newUser(galley)
    await first.begin("Kim", "Mine.")
    const second = new User(galley, await first.page.context().newPage())
    const path = await NetworkPath.of(second)
    await second.page.clock.install()
    await second.page.goto(first.page.url())
    await second.notice.getByRole("button", { name: get }).click()
    if (get === "Wait for your turn") {
      await second.notice.getByText("You're next.").waitFor()
      await first.page.goto(galley.url)
    }
    await second.seated()
    assert.ok(path.claims.at(-1)?.has(get === "Wait for your turn" ? "wait" : "takeover"), "that is how it got it")
    path.block()
    await meanwhile(first)
    const sockets = path.sockets
    await second.page.clock.runFor(LONGER_THAN_SILENCE)
    await until(async () => sockets < path.sockets, "it asks again")
    await ends(first, second)
    for (const idleWarning of path.claims.slice(sockets)) {
      assert.deepEqual([...idleWarning.keys()].filter((key) => ["takeover", "wait"].includes(key)), [])
    }
  })
}

test("the idle warning continues when the lease is valid again, and not on another connection", async () => {
  const writer = await browser.newUser(galley)
  const path = await NetworkPath.of(writer)
  await writer.begin("Kim", "Thinking.")
  const idleWarning = writer.notice.getByText(/Still there\? Others can start in \d:\d\d/)
  path.sendEvent({ event: "seat.idle", release_at: new Date(Date.now() + 60_000).toISOString() })
  await idleWarning.waitFor()
  path.sendEvent({ event: "seat.uncertain" })
  await writer.notice.getByText("Checking that it is still your turn").waitFor()
  path.sendEvent({ event: "seat.restored" })
  await idleWarning.waitFor()
  await path.close(1012, "restarting")
  await until(async () => path.sockets === 2, "it comes back")
  await writer.seated()
  await writer.notice.waitFor({ state: "hidden" })
})

test("a reconnect after a drain shows no notice for two seconds", async () => {
  const writer = await browser.newUser(galley, { hasClock: true })
  await writer.begin("Kim", "Steady.")
  await writer.stopClock()
  await galley.end("SIGTERM")
  // The page has the close by now: the seat and the text change, and no notice is shown.
  await until(async () => (await writer.page.evaluate(() => document.querySelector("#saved")?.getAttribute("data-kind"))) === "off", "the socket is gone")
  assert.equal(await writer.notice.isVisible(), false)
  await writer.page.clock.runFor(2_000)
  await writer.notice.getByText("The server is restarting.").waitFor()
  await galley.run()
  await writer.page.clock.resume()
  await writer.seated()
  await writer.notice.waitFor({ state: "hidden" })
})

for (const disk of ["quick", "slow"]) {
  test(`after a reset the page stops, and offers the refused edits after the reload (${disk} disk)`, async () => {
    const writer = await browser.newUser(galley)
    const path = await NetworkPath.of(writer)
    await writer.begin("Kim", "Stored.")
    const write = disk === "slow" ? await slowDisk(writer) : async () => undefined
    path.block()
    await writer.typeAtEnd(" Refused.")
    if (disk === "slow") await timersRun(writer, LONGER_THAN_WRITE_DELAY)
    const sockets = path.sockets
    path.sendEvent({ event: "problem", type: "/problems/document-reset", title: "Open the document afresh", status: 409 })
    await path.close(1012, "document-reset")
    await writer.notice.getByText("The server could not store what it had shown.").waitFor()
    await writer.notice.locator("li").getByText("Refused.").waitFor()
    await write()
    await writer.typeAtEnd(" Not this.")
    await writer.waitForText("Stored. Refused.")
    await writer.shot("reconnect-reset")
    assert.equal(path.sockets, sockets, "it does not reconnect by itself, because the server would reject it again")
    writer.page.on("dialog", (dialog) => dialog.accept())
    await writer.notice.getByRole("button", { name: "Reload the page" }).click()
    await writer.seated()
    await writer.waitForText("Stored.")
    await writer.page.locator("#recovered-drafts").getByRole("button", { name: "Put it back into the text" }).click()
    await writer.waitForText("Stored. Refused.")
    await writer.seated()
    await writer.page.reload()
    await writer.waitForText("Stored. Refused.")
  })
}
