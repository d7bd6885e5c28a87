// @ts-check
/** The logic of overall comments, unseen changes and turns, without a server. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { isUnread, seenUpTo } from "../../static/js/reviews/seen.ts"
import { isSummary, quoteOf } from "../../static/js/reviews/summary.ts"
import { byTurn, whose } from "../../static/js/start/turns.ts"

const me = "me"
/** @param {string} id @param {number} change @param {string | null} [by] */
const review = (id, change, by = "other") => ({ id, change, changed_by: by })
/** @param {number} seen @param {[string, number][]} read */
const reader = (seen, ...read) => ({ me, seen, read: new Map(read) })

test("a review without an anchor is on the whole text and quotes nothing", () => {
  assert.equal(isSummary({ anchor: null }), true)
  assert.equal(quoteOf({ anchor: null }), "")
  const anchor = { state: /** @type {const} */ ("exact"), start: 0, end: 1, quote: "a", prefix: "", suffix: "" }
  assert.equal(isSummary({ anchor }), false)
  assert.equal(quoteOf({ anchor }), "a")
})

test("a change of the other user is unread until it is seen; an own change never is", () => {
  assert.equal(isUnread(review("a", 5), reader(4)), true)
  assert.equal(isUnread(review("a", 5), reader(5)), false)
  assert.equal(isUnread(review("a", 5), reader(4, ["a", 5])), false)
  assert.equal(isUnread(review("a", 6), reader(4, ["a", 5])), true, "a later reply is unread again")
  assert.equal(isUnread(review("a", 5, me), reader(0)), false)
  assert.equal(isUnread(review("a", 5, null), reader(0)), true)
  assert.equal(isUnread({ id: "a" }, reader(0)), false, "a server without numbers")
})

test("the stored number ends below the first unread change, and never goes back", () => {
  const all = [review("a", 3), review("b", 5), review("c", 8), review("d", 9, me)]
  assert.equal(seenUpTo(all, reader(0)), 2)
  assert.equal(seenUpTo(all, reader(0, ["a", 3])), 4)
  assert.equal(seenUpTo(all, reader(0, ["a", 3], ["c", 8])), 4, "b is unread, so c is not stored yet")
  assert.equal(seenUpTo(all, reader(0, ["a", 3], ["b", 5], ["c", 8])), 9)
  assert.equal(seenUpTo(all, reader(12)), 12)
  assert.equal(seenUpTo([], reader(7)), 7)
})

test("the reader's turn comes first, then the other's, and the order within a turn stays", () => {
  const by = { id: "x", name: "X" }
  const link = (/** @type {"writer" | "reviewer" | null} */ role) => ({ turn: role && { role, since: "", by } })
  assert.equal(whose(link("writer"), "writer"), "mine")
  assert.equal(whose(link("reviewer"), "writer"), "theirs")
  assert.equal(whose(link(null), "writer"), "none")
  assert.equal(whose(link(null), "reviewer"), "mine", "a text that was never handed over waits for its reviewer")
  assert.equal(whose(link("writer"), "reviewer"), "theirs")
  assert.equal(whose(undefined, "writer"), "none")
  const rows = [link(null), link("reviewer"), link("writer"), { ...link("writer"), last: true }]
  const sorted = byTurn(rows, (row) => whose(row, "writer"))
  assert.deepEqual(sorted, [rows[2], rows[3], rows[1], rows[0]])
})
