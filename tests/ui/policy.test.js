// @ts-check
/** The rules of the desk at a change of phase. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { divideDrafts, knowsPeer, lossOf, mayShowServed, mayType, regainedSentence, stateAfter } from "../../static/js/desk/policy.ts"
import { Store } from "../../static/js/store.ts"

/** @typedef {import("../../static/js/store.ts").Desk} Desk */

const fresh = new Store().state
/** @param {Partial<Desk>} patch @returns {Desk} */
const desk = (patch) => ({ ...fresh, role: "writer", ...patch })
/** @param {Partial<import("../../static/js/desk/policy.ts").Report>} patch */
const report = (patch) => ({ ...fresh, ...patch })

test("a writer types while seated or offline, and never before the first sync or in a damaged document", () => {
  const once = desk({ wasSeated: true })
  /** @param {Partial<Desk>} patch */
  const may = (patch) => mayType({ ...once, ...patch })
  assert.ok(may({ phase: "seated" }))
  assert.ok(may({ phase: "offline" }))
  for (const phase of /** @type {const} */ (["opening", "uncertain", "taken", "waiting", "lost"])) assert.ok(!may({ phase }), phase)
  assert.ok(!may({ phase: "offline", wasSeated: false }))
  assert.ok(!may({ phase: "seated", damaged: true }))
  assert.ok(!may({ phase: "seated", role: "reviewer" }))
})

test("a reviewer types while suggesting, once the own suggestions are in the text", () => {
  const once = desk({ role: "reviewer", wasSeated: true, phase: "seated", mode: "suggesting", mayEdit: true })
  assert.ok(mayType(once))
  assert.ok(mayType({ ...once, phase: "offline" }))
  for (const phase of /** @type {const} */ (["opening", "uncertain", "taken", "waiting", "lost"])) assert.ok(!mayType({ ...once, phase }), phase)
  assert.ok(!mayType({ ...once, mode: "reading" }))
  assert.ok(!mayType({ ...once, mayEdit: false }))
})

test("the banner stays silent while a seated page moves from a draining server, and at no other loss", () => {
  const draining = report({ phase: "offline", draining: true })
  assert.equal(stateAfter(desk({ phase: "seated" }), draining).quiet, true)
  assert.equal(stateAfter(desk({ phase: "opening" }), draining).quiet, false)
  assert.equal(stateAfter(desk({ phase: "seated" }), report({ phase: "offline" })).quiet, false)
})

test("the idle warning outlives an uncertain seat and ends with the seat", () => {
  const warned = desk({ phase: "seated", idleUntil: 5 })
  assert.equal(stateAfter(warned, report({ phase: "uncertain" })).idleUntil, 5)
  assert.equal(stateAfter(warned, report({ phase: "offline" })).idleUntil, null)
})

test("a regained seat is announced, a first one and one after waiting are not", () => {
  const once = desk({ wasSeated: true })
  assert.equal(regainedSentence({ ...once, phase: "uncertain" }, "seated"), "state.restored")
  assert.equal(regainedSentence({ ...once, phase: "offline" }, "seated"), "state.back")
  assert.equal(regainedSentence({ ...once, phase: "waiting" }, "seated"), null)
  assert.equal(regainedSentence({ ...once, phase: "offline" }, "lost"), null)
  assert.equal(regainedSentence(desk({ phase: "opening" }), "seated"), null)
})

test("a lost seat holds the unsaved edits, a seat that was never held does not", () => {
  assert.equal(lossOf(desk({ phase: "lost", reason: "evicted" })), "evicted")
  assert.equal(lossOf(desk({ phase: "taken", wasSeated: true })), "taken_over")
  assert.equal(lossOf(desk({ phase: "taken" })), null)
  assert.equal(lossOf(desk({ phase: "offline", wasSeated: true })), null)
})

test("drafts without a loss are applied in the seat, all others are offered", () => {
  const lost = { sentences: [], deletions: 0, why: "taken_over" }
  const base = { keys: [], document: "doc_1", title: "", client: 1, update: Uint8Array.of(0, 0), count: 1, since: 0 }
  const [plain, withLoss, misfit] = [{ ...base, lost: null }, { ...base, lost }, { ...base, lost: null }]
  const drafts = [plain, withLoss, misfit]
  const fits = (/** @type {object} */ draft) => draft !== misfit
  assert.deepEqual(divideDrafts(drafts, "seated", fits), { applied: [plain], offered: [withLoss, misfit] })
  assert.deepEqual(divideDrafts(drafts, "lost", fits), { applied: [], offered: drafts })
  assert.deepEqual(divideDrafts(drafts, "opening", fits), { applied: [], offered: [withLoss] })
})

test("a page without a seat shows the server's text, unless its own has unsaved edits", () => {
  const saving = { ...new Store().state.saving, count: 0 }
  const state = (/** @type {object} */ more) => /** @type {any} */ ({ phase: "taken", reason: "", saving, ...more })
  assert.equal(mayShowServed(state({})), true)
  assert.equal(mayShowServed(state({ phase: "waiting" })), true)
  assert.equal(mayShowServed(state({ phase: "lost", reason: "idle" })), true)
  assert.equal(mayShowServed(state({ phase: "lost", reason: "revoked" })), false)
  assert.equal(mayShowServed(state({ saving: { ...saving, count: 2 } })), false)
  assert.equal(mayShowServed(state({ phase: "seated" })), false)
})

test("offline, or with a silent server, the other seat is unknown", () => {
  const state = (/** @type {object} */ more) => /** @type {any} */ ({ ...new Store().state, phase: "seated", ...more })
  assert.equal(knowsPeer(state({})), true)
  assert.equal(knowsPeer(state({ silentSince: 1 })), false)
  assert.equal(knowsPeer(state({ phase: "offline" })), false)
  assert.equal(knowsPeer(state({ phase: "offline", quiet: true })), true)
  assert.equal(knowsPeer(state({ phase: "waiting", queuePosition: { position: null, since: 0, away: true } })), false)
  assert.equal(knowsPeer(state({ phase: "lost", reason: "revoked" })), false)
})
