// @ts-check
/** Review offers: the address that names one, its sentences, and the intervals of reading it. */

import assert from "node:assert/strict"
import { afterEach, test } from "node:test"

import { Problem } from "../../static/js/lib/api.ts"
import { i18n } from "../../static/js/lib/i18n.ts"
import { claimErrorText, offerErrorText, offerIn, remainingSentence } from "../../static/js/start/offer_text.ts"
import { nextDelay } from "../../static/js/start/poll.ts"

await i18n.start()

afterEach(async () => {
  await i18n.setLanguage("en")
})

test("the address of the start page names an offer", () => {
  assert.equal(offerIn("#offer=ofr_01a-B"), "ofr_01a-B")
  for (const other of ["", "#offer=", "#offer=a/b", "#offer=a b", "#ask=abc", `#offer=${"a".repeat(65)}`, "offer=abc"]) {
    assert.equal(offerIn(other), null, other)
  }
})

test("the free places are a sentence, and one is not many", async () => {
  await i18n.setLanguage("en")
  assert.equal(remainingSentence({ remaining: 3, capacity: 5 }), "3 of 5 places left")
  assert.equal(remainingSentence({ remaining: 1, capacity: 5 }), "1 of 5 places left")
  assert.equal(remainingSentence({ remaining: 0, capacity: 5 }), "All 5 places are taken")
  assert.equal(remainingSentence({ remaining: 0, capacity: 1 }), "The one place is taken")
  await i18n.setLanguage("ko")
  assert.equal(remainingSentence({ remaining: 3, capacity: 5 }), "5명 가운데 3명 더 신청할 수 있음")
})

test("an error of an offer says what happened and what helps", async () => {
  await i18n.setLanguage("en")
  const problem = (/** @type {string} */ kind, status = 409, retryAfter = 0) => Object.assign(new Problem(status, kind), { retryAfter })
  for (const [error, expected] of /** @type {const} */ ([
    [problem("sold-out"), /taken a moment ago.* you can take it here/],
    [problem("already-claimed"), /already/],
    [problem("offer-closed"), /Nothing was sent/],
    [problem("own-offer", 422), /Share its link/],
    [problem("claim-accepted"), /remove the person/],
    [problem("lock-wait-timeout", 503, 2_000), /You have no place yet\. Try again in 2 seconds\./],
    [problem("lock-wait-timeout", 503), /Try again in a moment\./],
    [problem("claim-limit", 429, 3 * 3_600_000), /Try again in 3 hours\./],
    [problem("quota-spent"), /Close one first/],
    [problem("too-many"), /limit of partners/],
    [problem("too-many-requests", 429), /in a moment/],
    [new Problem(0, "offline"), /cannot be reached/],
  ])) assert.match(offerErrorText(error), expected, error.kind)
  assert.match(claimErrorText(problem("not-found", 404)), /given up the place/)
})

test("g13_an offer is read soon after a change, ever less often without one, and least after failures", () => {
  let delay = nextDelay(60_000, "changed")
  assert.equal(delay, 4_000)
  for (let reads = 0; reads < 20; reads += 1) {
    const next = nextDelay(delay, "same")
    assert.ok(delay < next || next === 60_000)
    delay = next
  }
  assert.equal(delay, 60_000)
  assert.ok(nextDelay(4_000, "same") < nextDelay(4_000, "failed"))
  assert.equal(nextDelay(50_000, "failed"), 60_000)
})
