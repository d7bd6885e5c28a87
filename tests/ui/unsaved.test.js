// @ts-check
/** Edits that `document.saved` has not named, by real Yjs clocks. */

import assert from "node:assert/strict"
import { test } from "node:test"

import * as Y from "yjs"

import { sentencesAt, Unsaved } from "../../static/js/unsaved/unsaved.ts"

/** @param {...[number, number]} entries */
const clocks = (...entries) => new Map(entries)

/** Three letters by client 1, at seconds 1, 2 and 3. */
function typed() {
  const unsaved = new Unsaved()
  for (const at of [1, 2, 3]) unsaved.edited(clocks([1, at - 1]), clocks([1, at]), at * 1_000)
  return unsaved
}

test("an edit is saved when the vector covers it, and not before", () => {
  const unsaved = typed()
  unsaved.saved(clocks([1, 2]))
  assert.equal(unsaved.count, 1)
  assert.equal(unsaved.since, 3_000)
  unsaved.saved(clocks([1, 3]))
  assert.equal(unsaved.count, 0)
  assert.equal(unsaved.since, null)
})

test("clocks of other clients prove nothing about local edits", () => {
  const unsaved = typed()
  unsaved.saved(clocks([2, 99]))
  assert.equal(unsaved.count, 3)
})

test("an insertion is not saved with a later one of another client", () => {
  const unsaved = new Unsaved()
  unsaved.edited(clocks([1, 0]), clocks([1, 1]), 1_000)
  unsaved.edited(clocks(), clocks(), 2_000)
  unsaved.edited(clocks([7, 0]), clocks([7, 5]), 3_000)
  unsaved.saved(clocks([7, 5]))
  assert.equal(unsaved.savedTo, 0, "the first piece of an answer had the second client alone")
  unsaved.saved(clocks([1, 1], [7, 5]))
  assert.equal(unsaved.savedTo, 3)
})

test("a deletion is saved with a later insertion that is", () => {
  const unsaved = new Unsaved()
  unsaved.edited(clocks(), clocks(), 1)
  unsaved.edited(clocks([1, 0]), clocks([1, 1]), 2)
  unsaved.saved(clocks([1, 1]))
  assert.equal(unsaved.count, 0)
})

test("a deletion is saved by a later edit only, not by events about earlier ones", () => {
  const unsaved = typed()
  // The first is stored, and its `document.saved` arrives while the second is in flight.
  for (const at of [4_000, 4_100]) unsaved.edited(clocks(), clocks(), at)
  unsaved.saved(clocks([1, 3]))
  assert.equal(unsaved.count, 2, "it was about the insertions")
  unsaved.saved(clocks([1, 3]))
  assert.equal(unsaved.count, 2, "the event covers one of them, and the client cannot tell which")
  assert.equal(unsaved.savedTo, 3)
  const proof = unsaved.edited(clocks([1, 3]), clocks([1, 4]), 6_000)
  unsaved.edited(clocks(), clocks(), 6_100)
  unsaved.saved(clocks([1, 4]))
  assert.equal(unsaved.savedTo, proof)
  assert.equal(unsaved.deletions, 1, "a deletion after the proof has none")
})

test("a deletion without a reply gets a proof after a delay", () => {
  const unsaved = new Unsaved()
  unsaved.edited(clocks(), clocks(), 10_000)
  assert.equal(unsaved.needsProof(10_500), false)
  assert.equal(unsaved.needsProof(12_000), true)
  unsaved.edited(clocks([1, 0]), clocks([1, 1]), 12_000)
  assert.equal(unsaved.needsProof(20_000), false)
})

test("a denied deletion stays pending until it is sent again and a later edit is saved", () => {
  const unsaved = new Unsaved()
  unsaved.edited(clocks([1, 0]), clocks([1, 1]), 1_000)
  unsaved.edited(clocks(), clocks(), 2_000)
  unsaved.denied()
  // The lease is valid again: the server accepts the next insertion, and has not requested missing edits
  // yet.
  unsaved.edited(clocks([1, 1]), clocks([1, 2]), 3_000)
  unsaved.saved(clocks([1, 2]))
  assert.equal(unsaved.savedTo, 1, "what was before the deletion is safe")
  assert.equal(unsaved.deletions, 1)
  assert.equal(unsaved.needsProof(9_000), false, "an insertion proves nothing before the server asked")
  unsaved.resent()
  unsaved.saved(clocks([1, 2]))
  assert.equal(unsaved.deletions, 1, "no edit after the reply is saved yet")
  assert.equal(unsaved.needsProof(9_000), true)
  unsaved.edited(clocks([1, 2]), clocks([1, 3]), 9_000)
  assert.equal(unsaved.needsProof(19_000), false)
  unsaved.saved(clocks([1, 3]))
  assert.equal(unsaved.count, 0)
  assert.equal(unsaved.savedTo, 4)
})

test("a second denial invalidates the reply before it", () => {
  const unsaved = new Unsaved()
  unsaved.edited(clocks(), clocks(), 1_000)
  unsaved.denied()
  unsaved.resent()
  unsaved.denied()
  unsaved.edited(clocks([1, 0]), clocks([1, 1]), 2_000)
  unsaved.saved(clocks([1, 1]))
  assert.equal(unsaved.deletions, 1)
  unsaved.resent()
  unsaved.edited(clocks([1, 1]), clocks([1, 2]), 3_000)
  unsaved.saved(clocks([1, 2]))
  assert.equal(unsaved.count, 0)
})

test("continuous deletions get a proof at intervals, and not one each", () => {
  const unsaved = new Unsaved()
  /** @type {number[]} */
  const proofs = []
  // A user holds the key down for ten seconds. A `document.saved` takes half a second.
  for (let now = 0; now < 10_000; now += 50) {
    unsaved.edited(clocks(), clocks(), now)
    const last = proofs.at(-1)
    if (last !== undefined && now === last + 500) unsaved.saved(clocks([1, proofs.length]))
    if (now % 500 !== 0 || !unsaved.needsProof(now)) continue
    unsaved.edited(clocks([1, proofs.length]), clocks([1, proofs.push(now)]), now)
  }
  assert.deepEqual(proofs, [1_500, 3_500, 5_500, 7_500, 9_500])
})

test("the saved clock of a client starts at its first known value", () => {
  const unsaved = new Unsaved()
  unsaved.edited(clocks([7, 40]), clocks([7, 41]), 1)
  assert.deepEqual([...unsaved.savedClocks], [[7, 40]])
})

test("sentences with unsaved text are whole, each once", () => {
  const text = "첫 문장입니다. 둘째 문장이에요. 셋째입니다.\nThe last one."
  const at = (/** @type {string} */ part) => ({ from: text.indexOf(part), to: text.indexOf(part) + part.length })
  assert.deepEqual(sentencesAt(text, [at("문장이"), at("에요")], "ko"), ["둘째 문장이에요."])
  assert.deepEqual(sentencesAt(text, [at("첫"), at("last")], "ko"), ["첫 문장입니다.", "The last one."])
  assert.deepEqual(sentencesAt(text, [at(" 둘째")], "ko"), ["둘째 문장이에요."])
  assert.deepEqual(sentencesAt(text, [], "ko"), [])
})

test("unsaved insertions are found in the text, also inside saved text", async () => {
  const { unsavedRanges } = await import("../../static/js/unsaved/save_watch.ts")
  const doc = new Y.Doc()
  const text = doc.getText("content")
  text.insert(0, "safe words")
  const safe = new Map([[doc.clientID, 10]])
  text.insert(4, "XY")
  text.insert(0, "Z")
  text.delete(7, 1)
  assert.equal(text.toString(), "ZsafeXYwords")
  const ranges = unsavedRanges(/** @type {any} */ (text), safe)
  assert.deepEqual(ranges.map(({ from, to }) => text.toString().slice(from, to)), ["Z", "XY"])
})

test("a recovered update with a deletion is not saved by its known insertions", async (t) => {
  const { SaveWatch } = await import("../../static/js/unsaved/save_watch.ts")
  const { Y: Vendor } = await import("../../static/js/lib/vendor.ts")
  // Its warning before the page goes is the window's.
  Object.assign(globalThis, { window: new EventTarget() })
  t.after(() => Reflect.deleteProperty(globalThis, "window"))
  const gone = new Vendor.Doc()
  gone.getText("content").insert(0, "Stored. Deleted.")
  const insertions = Vendor.encodeStateAsUpdate(gone)
  const page = { user: "usr_1", document: "doc_1", title: () => "" }
  /** The unsaved part of it, where the server has the insertions. @param {Uint8Array} update */
  const left = (update) => {
    const doc = new Vendor.Doc()
    Vendor.applyUpdate(doc, insertions)
    const watch = new SaveWatch(doc, doc.getText("content"), page)
    watch.saved(btoa(String.fromCharCode(...Vendor.encodeStateVector(doc))))
    watch.recover({ keys: [], document: "doc_1", title: "", client: gone.clientID, update, count: 2, since: 1, lost: null })
    return { count: watch.state.count, text: doc.getText("content").toString() }
  }
  assert.deepEqual(left(insertions), { count: 0, text: "Stored. Deleted." })
  gone.getText("content").delete(7, 9)
  assert.deepEqual(left(Vendor.encodeStateAsUpdate(gone)), { count: 1, text: "Stored." })
})
