// @ts-check
/** The looks for a newer cookie before the end of a sign-in, in virtual time. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { SessionEnd } from "../../static/js/seat/session_end.ts"

const MINUTE = 60_000

/** Runs the looks until no timer is left, or `until`. @param {(now: number) => number | null} endsAt of the cookie; `null`: no answer */
async function looks(endsAt, until = Number.POSITIVE_INFINITY) {
  /** @type {{ at: number, run: () => void }[]} */
  let timers = []
  let [now, requests] = [0, 0]
  /** @type {number[]} */
  const reopened = []
  Object.assign(globalThis, {
    window: {
      setTimeout: (/** @type {() => void} */ run, /** @type {number} */ wait) => void timers.push({ at: now + wait, run }),
      clearTimeout: () => void (timers = []),
    },
  })
  const read = async () => {
    requests++
    const end = endsAt(now)
    if (end === null) throw new Error("offline")
    return { guests: true, sign_in_url: null, sign_out_url: null, user: null, expires_at: new Date(end).toISOString() }
  }
  const end = new SessionEnd(() => void reopened.push(now), read, () => now)
  await end.look()
  for (let next = timers.pop(); next && next.at <= until; next = timers.pop()) {
    now = next.at
    next.run()
    await new Promise((resolve) => setImmediate(resolve))
  }
  end.stop()
  return { reopened, requests, now }
}

test("the socket is opened again a minute before the end if the cookie is newer then", async () => {
  // A guest's cookie: the look at four minutes makes a new one.
  const { reopened } = await looks((now) => (now < 4 * MINUTE ? 5 * MINUTE : now + 5 * MINUTE), 30 * MINUTE)
  assert.deepEqual(reopened, [4, 8, 12, 16, 20, 24, 28].map((minute) => minute * MINUTE))
})

test("a host application has the whole minute to renew its cookie", async () => {
  const { reopened } = await looks((now) => (now < 4.5 * MINUTE ? 5 * MINUTE : 60 * MINUTE), 30 * MINUTE)
  assert.deepEqual(reopened, [4.5 * MINUTE])
})

test("without a newer cookie the looks end with the sign-in, and nothing is opened", async () => {
  const { reopened, requests, now } = await looks(() => 5 * MINUTE)
  assert.deepEqual(reopened, [])
  assert.ok(now <= 5.25 * MINUTE && requests < 10)
})

test("a sign-in of a month takes a request a day, and an outage none away", async () => {
  const day = 24 * 60 * MINUTE
  const { reopened, requests } = await looks((now) => (Math.abs(now - 3 * day) < MINUTE ? null : 30 * day), 29 * day)
  assert.deepEqual(reopened, [])
  assert.ok(28 <= requests && requests <= 31)
})
