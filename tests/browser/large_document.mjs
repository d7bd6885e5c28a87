// @ts-check
/**
 * A big document, as years of work leave it: a megabyte of text in 200,000 pieces that were put in
 * all over it, a sentence here and a sentence there, and letters that were taken out again.
 *
 * It is written down as Yjs would (updates of version 1), but not by Yjs, which takes a minute and a
 * half for as many places. The page opens the document with Yjs.
 */

import assert from "node:assert/strict"

import { createEncoder, toUint8Array, writeUint8, writeVarString, writeVarUint, writeVarUint8Array } from "lib0/encoding"
// @ts-expect-error -- it comes without types
import { WebSocket } from "ws"

/**
 * @typedef {import("lib0/encoding").Encoder} Encoder
 * @typedef {object} Piece
 * @property {number} clock of its first letter
 * @property {string} text
 * @property {Piece | null} left where it was put in
 * @property {Piece | null} right
 * @property {Piece | null} next what follows it now
 */

/** Pieces in one message, which stays below its bound. */
const PIECES_PER_MESSAGE = 20_000
/** Of about six bytes each, in Korean and English; some end a line. */
const PIECES = ["물류 ", "원인 ", "again ", "words, ", "quick ", "분석 ", "합니다. ", "done.\n"]
/** Pieces in a row, before the writer moves elsewhere. */
const RUN = 10
/** The writer deletes the first letter of each piece with this interval. */
const DELETE_EVERY = 20
/** Time for all of it on a busy machine and with a debug build. */
const STORED_IN_MS = 90_000
const CLIENT = 4_000_000_000
const STRING = 4
const HAS_LEFT = 0x80
const HAS_RIGHT = 0x40

/** Reproducible pseudo-random numbers. @param {number} seed */
function numbers(seed) {
  let state = seed
  return (/** @type {number} */ below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

/** Inserts each run after a random earlier piece. @param {number} count @returns {Piece[]} as they were written */
function pieces(count) {
  const random = numbers(1)
  /** @type {Piece[]} */
  const written = []
  let clock = 0
  for (let at = 0; at < count; at++) {
    const left = (at % RUN === 0 ? written[random(at)] : written[at - 1]) ?? null
    const right = left?.next ?? null
    const piece = { clock, text: PIECES[random(PIECES.length)] ?? "", left, right, next: right }
    if (left) left.next = piece
    written.push(piece)
    clock += piece.text.length
  }
  return written
}

/** @param {number} at */
const isCut = (at) => at % DELETE_EVERY === 0

/** @param {Piece[]} written */
function textOf(written) {
  const cut = new Set(written.filter((_, at) => isCut(at)))
  let text = ""
  for (let piece = written[0] ?? null; piece; piece = piece.next) text += cut.has(piece) ? piece.text.slice(1) : piece.text
  return text
}

/** @param {Encoder} encoder @param {number} clock */
function writeId(encoder, clock) {
  writeVarUint(encoder, CLIENT)
  writeVarUint(encoder, clock)
}

/** A message with these pieces. @param {Piece[]} written @param {number} from @param {number} to */
function message(written, from, to) {
  const sent = written.slice(from, to)
  const update = createEncoder()
  for (const word of [1, sent.length, CLIENT, sent[0]?.clock ?? 0]) writeVarUint(update, word)
  for (const { text, left, right } of sent) {
    writeUint8(update, STRING | (left ? HAS_LEFT : 0) | (right ? HAS_RIGHT : 0))
    if (left) writeId(update, left.clock + left.text.length - 1)
    if (right) writeId(update, right.clock)
    if (!left && !right) {
      writeVarUint(update, 1)
      writeVarString(update, "content")
    }
    writeVarString(update, text)
  }
  const cut = sent.filter((_, at) => isCut(from + at))
  for (const word of [1, CLIENT, cut.length]) writeVarUint(update, word)
  for (const { clock } of cut) {
    writeVarUint(update, clock)
    writeVarUint(update, 1)
  }
  const frame = createEncoder()
  for (const kind of [0, 2]) writeVarUint(frame, kind)
  writeVarUint8Array(frame, toUint8Array(update))
  return toUint8Array(frame)
}

/**
 * Sends it to the server from the writer's seat, and leaves when the server has all of it.
 *
 * @param {import("./harness.mjs").Galley} galley
 * @param {{ document: string, link: string, writer: string }} desk of an empty text
 * @param {number} operations
 * @returns {Promise<string>} the text
 */
export async function writeLargeDocument(galley, { document, link, writer: token }, operations) {
  const written = pieces(operations)
  const socket = new WebSocket(`${galley.url.replace("http", "ws")}/ws/share-links/${link}/writer?token=${token}`)
  let closed = ""
  socket.once("close", (/** @type {number} */ code, /** @type {Buffer} */ reason) => (closed = `${code} ${reason}`))
  await new Promise((opened) => socket.once("open", opened))
  for (let from = 0; from < operations; from += PIECES_PER_MESSAGE) {
    socket.send(message(written, from, Math.min(from + PIECES_PER_MESSAGE, operations)))
  }
  const wanted = textOf(written)
  const headers = { authorization: `Bearer ${token}` }
  // A server that is busy for ten seconds closes a connection that waits for its next request.
  const read = async () => (await fetch(`${galley.url}/api/documents/${document}/text`, { headers }).catch(() => null))?.text()
  const began = performance.now()
  // Each reply costs the server a copy of the text, so the pauses are long.
  while ((await read()) !== wanted) {
    assert.equal(closed, "", "the server closed the writer's socket")
    assert.ok(performance.now() - began < STORED_IN_MS, "the server has not stored the whole text")
    await new Promise((later) => setTimeout(later, 500))
  }
  socket.close()
  return wanted
}
