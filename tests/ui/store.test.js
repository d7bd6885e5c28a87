// @ts-check
/** The state of the desk, and what it derives. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { Store } from "../../static/js/store.ts"

const writer = { id: "u1", name: "김민수" }
const free = { taken: false, user: null, since: null }
const link = { id: "shr_1", document_id: "doc_1", title: "t", writer, reviewer: null }

test("a free seat shows the name of its owner", () => {
  const store = new Store()
  store.applyLink({ ...link, seats: { writer: free, reviewer: free } })
  assert.deepEqual(store.state.occupancy.writer, { user: writer, since: null, here: false, away: false, waiting: 0 })
  assert.equal(store.state.occupancy.reviewer.user, null)
})

test("a seat that the server cannot read is unknown, not free", () => {
  const store = new Store()
  const unknown = { taken: null, user: null, since: null }
  store.applyLink({ ...link, seats: { writer: unknown, reviewer: unknown } })
  assert.deepEqual(store.state.occupancy.writer, { user: writer, since: null, here: null, away: false, waiting: 0 })
})

test("a change is announced once, and only if something changed", () => {
  const store = new Store()
  let changes = 0
  store.addEventListener("change", () => changes++)
  store.change({ phase: "seated" })
  store.change({ phase: "seated" })
  store.changeOccupancy("reviewer", { here: false })
  assert.equal(changes, 1)
})

test("a peer that has left is not away", () => {
  const store = new Store()
  const seat = { taken: true, user: writer, since: "2026-11-21T02:00:00Z", waiting: 2 }
  store.applyLink({ ...link, seats: { writer: seat, reviewer: free } })
  assert.equal(store.state.occupancy.writer.waiting, 2)
  store.changeOccupancy("writer", { away: true })
  store.applyLink({ ...link, seats: { writer: free, reviewer: free } })
  assert.deepEqual(store.state.occupancy.writer, { user: writer, since: null, here: false, away: false, waiting: 0 })
})
