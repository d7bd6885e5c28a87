// @ts-check
/** The server's clock, measured by answers on machines whose own clock is wrong. */
import assert from "node:assert/strict"
import { beforeEach, test } from "node:test"

/** In ms. */
const HOUR = 3_600_000
const SERVER = Date.parse("2026-05-04T10:00:00.000Z")

/** A page of its own. @type {typeof import("../../static/js/lib/server_clock.ts")} */
let clock
let pages = 0
beforeEach(async () => {
  clock = await import(`../../static/js/lib/server_clock.ts?${++pages}`)
})

/** An answer of the server. @param {number} at when the server made it, in ms */
const answer = (at) => new Response(null, { headers: { date: new Date(at).toUTCString() } })

/** @param {number} wanted in ms @param {string} what */
const near = (wanted, what) => assert.ok(Math.abs(clock.now() - wanted) <= 1_100, `${what}: ${clock.now() - wanted} ms`)

test("before the first answer the time is the machine's", (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: SERVER })
  assert.equal(clock.now(), SERVER)
  clock.measureBy(new Response(), performance.now())
  assert.equal(clock.now(), SERVER)
})

for (const hours of [9, -9]) {
  test(`a machine's clock that is wrong by ${hours} hours is the server's after one answer`, (t) => {
    t.mock.timers.enable({ apis: ["Date"], now: SERVER + hours * HOUR })
    clock.measureBy(answer(SERVER), performance.now())
    near(SERVER, "one answer")
  })

  test(`a machine's clock that is set by ${hours} hours while the page is open does no harm, and is measured again`, async (t) => {
    t.mock.timers.enable({ apis: ["Date"], now: SERVER })
    const fetch = t.mock.method(globalThis, "fetch", async () => answer(SERVER + 30_000))
    clock.measureBy(answer(SERVER), performance.now())
    t.mock.timers.reset()
    t.mock.timers.enable({ apis: ["Date"], now: SERVER + hours * HOUR })
    near(SERVER, "set")
    near(SERVER, "asked once")
    assert.equal(fetch.mock.callCount(), 1)
    await Promise.resolve()
    await Promise.resolve()
    near(SERVER + 30_000, "the machine had slept")
  })
}

test("a right clock is exact to the millisecond, and further answers narrow the bounds", (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: SERVER + 700 })
  clock.measureBy(answer(SERVER + 700), performance.now())
  assert.equal(clock.now(), SERVER + 700)
  t.mock.timers.reset()
  t.mock.timers.enable({ apis: ["Date"], now: SERVER - HOUR })
  // Asked a minute ago, and answered in the second before this moment or in the one after it.
  clock.measureBy(answer(SERVER), performance.now() - 60_000)
  clock.measureBy(answer(SERVER - 900), performance.now())
  near(SERVER, "both bounds")
})
