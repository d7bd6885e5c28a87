// @ts-check
/** The wait queue on the page: the length of a wait, and its sentences. */

import assert from "node:assert/strict"
import { beforeEach, test } from "node:test"

import {
  holderOf,
  WAIT_TIMEOUT,
  positionOf,
  secondsToWait,
  takenSentence,
  waitedSentence,
  waitingSentence,
} from "../../static/js/seat/wait_queue.ts"
import { i18n } from "../../static/js/lib/i18n.ts"

await i18n.start()

const since = new Date(2026, 10, 21, 14, 3)
const kim = { name: "Kim", since: since.toISOString(), own: false }
const start = since.getTime()

beforeEach(async () => {
  await i18n.setLanguage("en")
})

test("each claim in the wait queue waits as long as the server allows, and all of them an hour", () => {
  assert.equal(secondsToWait(start, start), 300)
  assert.equal(secondsToWait(start, start + WAIT_TIMEOUT - 300_000), 300)
  assert.equal(secondsToWait(start, start + WAIT_TIMEOUT - 41_500), 42)
  assert.equal(secondsToWait(start, start + WAIT_TIMEOUT), 0)
  assert.equal(secondsToWait(start, start + 2 * WAIT_TIMEOUT), 0)
  let [now, claims] = [start, 0]
  for (let seconds = secondsToWait(start, now); 0 < seconds; seconds = secondsToWait(start, now)) {
    now += seconds * 1_000
    claims++
  }
  assert.deepEqual([now, claims], [start + WAIT_TIMEOUT, 12])
})

test("the holder stays the user's other tab, also if the close frame truncated the name", () => {
  const own = holderOf({ name: "Kim Min", since: kim.since, you: true })
  assert.equal(own.own, true)
  assert.equal(holderOf({ name: "Kim Minsu", since: kim.since }, own).own, true)
  assert.equal(holderOf({ name: "Lee", since: kim.since }, own).own, false)
  assert.equal(holderOf({ name: "Kim Minsu", you: false }, own).own, false)
  assert.deepEqual(holderOf({ name: "Kim", since: kim.since }), kim)
  assert.deepEqual(holderOf(undefined), { name: "", since: null, own: false })
})

test("a queue position is a number from one on", () => {
  assert.deepEqual([1, 7].map(positionOf), [1, 7])
  assert.deepEqual([0, -1, 1.5, "1", null, undefined].map(positionOf), Array(6).fill(null))
})

test("a held seat names its holder, and after a wait that it was not released", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: since })
  const said = takenSentence(kim, "reviewer", { timedOut: false })
  assert.equal(said, "Kim has been reviewing this since 14:03. The text is safe. Wait for your turn, or come back later.")
  assert.match(takenSentence(kim, "writer", { timedOut: false }), /^Kim has been writing this since 14:03\./)
  assert.match(takenSentence(kim, "reviewer", { timedOut: true }), /^It did not become free within 1 hour\. Kim has been/)
  assert.match(takenSentence(null, "reviewer", { timedOut: false }), /^Somebody else is working here/)
  assert.match(takenSentence({ ...kim, own: true }, "writer", { timedOut: false }), /^You have this open in another tab/)
  await i18n.setLanguage("ko")
  assert.match(takenSentence(kim, "reviewer", { timedOut: true }), /^1시간 동안 차례가 오지 않았습니다\. 14:03부터 Kim님이 검토/)
})

test("each queue position has its sentence", (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: since })
  /** @param {number | null} position @param {import("../../static/js/store.ts").Holder | null} holder */
  const say = (position, holder = kim, away = false) =>
    waitingSentence({ position, since: start, away }, holder, "reviewer")
  assert.equal(say(1), "Kim has been reviewing this since 14:03. You're next. You can start as soon as Kim leaves.")
  assert.equal(say(1, { ...kim, own: true }), "You're next. You can start here as soon as you close the other tab.")
  assert.equal(say(1, null), "You're next. You can start as soon as it is free.")
  assert.match(say(3), /^You are number 3 in the queue\. .* Kim has been reviewing this since 14:03\.$/)
  assert.equal(say(null), "Joining the queue…")
  assert.match(say(1, kim, true), /^Connection lost\./)
})

test("the time in the wait queue is in whole minutes, in both languages", async () => {
  assert.equal(waitedSentence(59_000, start + 59_000), "Waiting since 14:03")
  assert.equal(waitedSentence(60_000, start + 60_000), "Waiting since 14:03, 1 minute so far")
  assert.equal(waitedSentence(4.9 * 60_000, start + 4.9 * 60_000), "Waiting since 14:03, 4 minutes so far")
  await i18n.setLanguage("ko")
  assert.equal(waitedSentence(4 * 60_000, start + 4 * 60_000), "14:03부터 4분째 기다리는 중")
})
