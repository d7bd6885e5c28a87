// @ts-check
/** Holders in close frames, sentences of close codes, and the back-off of reconnects. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { holderIn, lossReason, retryDelay } from "../../static/js/seat/close_codes.ts"
import { en } from "../../static/js/lib/i18n/en.ts"

test("clients of one lost server reconnect at different times", () => {
  const waits = [0, 0.25, 0.5, 1].map((random) => retryDelay(1, random))
  assert.equal(new Set(waits).size, 4)
  assert.ok(waits.every((wait) => 300 <= wait && wait <= 600), String(waits))
})

test("the first pause is spread over the time that the server named, and no later one", () => {
  assert.deepEqual([0, 0.5, 1].map((random) => retryDelay(1, random, 4_000)), [300, 2_150, 4_000])
  assert.deepEqual([0, 1].map((random) => retryDelay(1, random, 100)), [300, 600])
  assert.deepEqual([0, 1].map((random) => retryDelay(2, random, 4_000)), [600, 1_200])
})

test("the back-off grows with each attempt, up to a bound", () => {
  const waits = [1, 2, 3, 4, 5, 6, 20].map((attempt) => retryDelay(attempt, 1))
  assert.deepEqual(waits, waits.toSorted((a, b) => a - b))
  assert.equal(waits.at(-1), 10_000)
})

test("each close code of a lost seat has a sentence", () => {
  const reasons = ["taken_over", "expired", "evicted", "idle", "revoked"].map((reason) => lossReason(4410, reason))
  const codes = [4400, 4401, 4403, 4404, 4408, 4410, 4411, 4413].map((code) => lossReason(code, ""))
  reasons.push(lossReason(4403, "not-your-role"))
  assert.equal(reasons.at(-1), "replaced")
  assert.deepEqual([lossReason(4401, "revoked"), lossReason(4404, "revoked")], ["signin", "revoked"])
  for (const why of [...reasons, ...codes]) assert.ok(`state.lost.${why}` in en, why)
})

test("the holder of a seat is parsed from the close frame, also from a truncated one", () => {
  const said = JSON.stringify({ holder: { name: "Kim", since: "2026-11-21T02:00:00Z", you: true } })
  assert.deepEqual(holderIn(said), { name: "Kim", since: "2026-11-21T02:00:00Z", own: true })
  assert.deepEqual(holderIn('{"hol'), { name: "", since: null, own: false })
})
