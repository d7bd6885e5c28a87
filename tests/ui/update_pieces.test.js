// @ts-check
/** The division of an update: its pieces in order are the whole, none builds on a later one, and none is too long. */

import assert from "node:assert/strict"
import { readFileSync } from "node:fs"
import { test } from "node:test"

import { Y } from "../../static/js/lib/vendor.ts"
import { MESSAGE_BYTES } from "../../static/js/seat/yjs_socket.ts"
import { piecesOf } from "../../static/js/seat/update_pieces.ts"

/** A generator of numbers below `n`, by mulberry32. @param {number} seed */
function numbers(seed) {
  return (/** @type {number} */ n) => {
    seed = (seed + 0x6d2b79f5) | 0
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) % n
  }
}

/** Documents of several clients that exchange some of their updates. @param {(n: number) => number} below */
function writtenByMany(below) {
  const docs = Array.from({ length: 1 + below(4) }, (_, at) => Object.assign(new Y.Doc(), { clientID: 1 + at * 7 }))
  for (let step = 0; step < 60; step++) {
    const doc = /** @type {Y.Doc} */ (docs[below(docs.length)])
    const text = doc.getText("content")
    const at = below(text.length + 1)
    const kind = below(5)
    if (kind < 3) text.insert(at, "가😀b".repeat(1 + below(kind === 0 ? 60 : 3)))
    else if (kind === 3) text.delete(at, Math.min(below(30), text.length - at))
    else Y.applyUpdate(/** @type {Y.Doc} */ (docs[below(docs.length)]), Y.encodeStateAsUpdate(doc))
  }
  const all = /** @type {Y.Doc} */ (docs[0])
  for (const doc of docs) Y.applyUpdate(all, Y.encodeStateAsUpdate(doc))
  return all
}

/** @param {Uint8Array[]} pieces @param {Y.Doc} doc that receives them */
function receive(pieces, doc) {
  for (const piece of pieces) {
    Y.applyUpdate(doc, piece)
    const { pendingStructs, pendingDs } = doc.store
    assert.deepEqual([pendingStructs, pendingDs], [null, null], "a piece builds on a later one")
  }
  return doc
}

test("the pieces of any update give the same document, in order and below the limit", () => {
  const seed = Number(process.env.GALLEY_SEED) || 36
  const below = numbers(seed)
  for (let round = 0; round < 200; round++) {
    const doc = writtenByMany(below)
    const receiver = receive([Y.encodeStateAsUpdate(doc)], new Y.Doc())
    const text = doc.getText("content")
    // Deletions of what the receiver has, beside new text.
    for (let step = below(20); 0 < step; step--) {
      const at = below(text.length + 1)
      if (step % 2 === 0) text.delete(at, Math.min(below(9), text.length - at))
      else text.insert(at, "새 글😀".repeat(1 + below(40)))
    }
    const max = 48 + below(300)
    for (const [update, before] of [
      [Y.encodeStateAsUpdate(doc), new Y.Doc()],
      [Y.encodeStateAsUpdate(doc, Y.encodeStateVector(receiver)), receiver],
    ]) {
      const pieces = piecesOf(/** @type {Uint8Array} */ (update), max)
      assert.ok(pieces.every((piece) => piece.length <= max), `seed ${seed}: a piece of more than ${max} bytes`)
      const after = receive(pieces, /** @type {Y.Doc} */ (before))
      assert.equal(after.getText("content").toString(), text.toString(), `seed ${seed}`)
      assert.deepEqual(Y.encodeStateAsUpdate(after), Y.encodeStateAsUpdate(doc))
    }
  }
})

test("a short update is its own piece, and a text without its pair is cut beside it", () => {
  const doc = new Y.Doc()
  doc.getText("content").insert(0, "a" + "😀".repeat(500))
  const update = Y.encodeStateAsUpdate(doc)
  assert.deepEqual(piecesOf(update, update.length), [update])
  for (const max of [40, 64, 100, 999]) {
    const pieces = piecesOf(update, max)
    const text = receive(pieces, new Y.Doc()).getText("content").toString()
    assert.equal(text, doc.getText("content").toString())
    assert.ok(pieces.every((piece) => piece.length <= max))
  }
})

test("an insertion is in no piece before what was deleted in front of it", () => {
  const doc = new Y.Doc()
  const text = doc.getText("content")
  text.insert(0, "begun ".repeat(50))
  const receiver = receive([Y.encodeStateAsUpdate(doc)], new Y.Doc())
  text.insert(0, "early ".repeat(50))
  text.delete(0, 6)
  text.delete(text.length - 6, 6)
  text.insert(102, "late ".repeat(50))
  for (const piece of piecesOf(Y.encodeStateAsUpdate(doc, Y.encodeStateVector(receiver)), 64)) {
    Y.applyUpdate(receiver, piece)
    const now = receiver.getText("content").toString()
    if (now.includes("late")) assert.equal((now.match(/early |begun /g) ?? []).length, 98)
  }
  assert.equal(receiver.getText("content").toString(), text.toString())
})

test("many deletions are divided, too, and a document of a megabyte in no more pieces than twice as many", () => {
  const doc = new Y.Doc()
  const text = doc.getText("content")
  text.insert(0, "가나".repeat(300_000))
  const receiver = receive([Y.encodeStateAsUpdate(doc)], new Y.Doc())
  doc.transact(() => {
    for (let at = 2_000; 0 < at; at--) text.delete(at * 3, 1)
  })
  const pieces = piecesOf(Y.encodeStateAsUpdate(doc, Y.encodeStateVector(receiver)), 1_000)
  assert.ok(pieces.length > 1 && pieces.every((piece) => piece.length <= 1_000))
  assert.equal(receive(pieces, receiver).getText("content").toString(), text.toString())
  const whole = Y.encodeStateAsUpdate(doc)
  assert.ok(piecesOf(whole, 100_000).length < 2 * (whole.length / 100_000) + 12)
})

test("the limit that an older server does not name is the default", () => {
  const [, bytes] = /^message_bytes = (\d+)$/m.exec(readFileSync(new URL("../../config/default.toml", import.meta.url), "utf8")) ?? []
  assert.equal(MESSAGE_BYTES, Number(bytes))
})
