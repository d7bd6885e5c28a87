// Writes the fixtures of this folder with the real Yjs, for the tests of `src/yjs` and `tests/suite/fuzz`.
//
// Run it in a separate directory: npm install yjs@13.6.33 y-protocols@1.0.7, then
// node <repository>/tests/data/yjs/make.mjs. The client ids and the seed of the random edits are
// fixed, so the same version writes the same bytes.
import { writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"

const require = createRequire(join(process.cwd(), "here.js"))
const Y = require("yjs")
const sync = require("y-protocols/dist/sync.cjs")
const presence = require("y-protocols/dist/awareness.cjs")
const encoding = require("lib0/encoding")

const hex = (bytes) => Buffer.from(bytes).toString("hex")
const write = (name, value) =>
  writeFileSync(new URL(`${name}.json`, import.meta.url), `${JSON.stringify(value, null, 1)}\n`)

/** A document that records its updates. */
function document(client, gc = true) {
  const doc = new Y.Doc({ gc })
  doc.clientID = client
  const updates = []
  doc.on("update", (update, origin) => origin === "remote" || updates.push(hex(update)))
  return { doc, text: doc.getText("content"), updates }
}

const state = ({ doc, text }) => ({
  text: text.toString(),
  state_vector: hex(Y.encodeStateVector(doc)),
  whole: hex(Y.encodeStateAsUpdate(doc)),
})

// Hangul, the same text in decomposed jamo, families joined by ZWJ, combining marks, a flag.
const PIECES = [
  "Dear Ms. Kim, ", "자기소개서", "\u1112\u1161\u11AB\u1100\u116E\u11A8", "\u{1F469}\u200D\u{1F469}\u200D\u{1F467}",
  "e\u0301\u0323", "\u{1F1F0}\u{1F1F7}", "x", "\n", "\u{1F600}",
]

/** A small pseudo-random generator, the same on every machine. */
function dice(seed) {
  return (sides) => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0
    return Math.floor((seed / 2 ** 32) * sides)
  }
}

/** The boundaries of characters. Each edit begins at a boundary. */
function boundary(text, roll) {
  const at = roll(text.length + 1)
  const inside = at > 0 && at < text.length && /[\uDC00-\uDFFF]/.test(text[at])
  return inside ? at - 1 : at
}

function edit({ text }, roll) {
  const content = text.toString()
  const from = boundary(content, roll)
  if (roll(3) === 0 && from < content.length) {
    const to = Math.min(content.length, from + 1 + roll(4))
    const splits = to < content.length && /[\uDC00-\uDFFF]/.test(content[to])
    text.delete(from, (splits ? to + 1 : to) - from)
  } else {
    text.insert(from, PIECES[roll(PIECES.length)])
  }
}

// 1. One client types, deletes and formats.
const one = document(1001)
const letter = "Dear Ms. Kim,\n저는 \u1112\u1161\u11AB\u1100\u116E\u11A8 \u{1F469}\u200D\u{1F467} e\u0301."
for (const character of letter) one.text.insert(one.text.length, character)
one.text.delete(0, 5)
one.text.insert(0, "Hello ")
one.text.format(6, 3, { bold: true })
one.text.format(6, 3, { link: { href: "https://example.org/\u2713", rel: ["nofollow"] } })
one.text.format(6, 3, { bold: null })
write("typing", { updates: one.updates, ...state(one) })

// 2. Three clients edit concurrently and receive each other's updates late, in the order in which a
// server would relay them.
const roll = dice(7)
const people = [11, 4_000_000_000, 305].map((client) => document(client))
const passed = []
const heard = people.map(() => 0)
for (let round = 0; round < 60; round += 1) {
  for (const [who, person] of people.entries()) {
    const said = person.updates.length
    for (let edits = roll(3); edits > 0; edits -= 1) edit(person, roll)
    passed.push(...person.updates.slice(said))
    if (roll(3) === 0) {
      for (const update of passed.slice(heard[who])) {
        Y.applyUpdate(person.doc, Buffer.from(update, "hex"), "remote")
      }
      heard[who] = passed.length
    }
  }
}
for (const [who, person] of people.entries()) {
  for (const update of passed.slice(heard[who])) {
    Y.applyUpdate(person.doc, Buffer.from(update, "hex"), "remote")
  }
}
write("together", { updates: passed, ...state(people[0]) })

// 3. A client edits offline, reloads the page and answers an old sync step 1. The server has a part
// of the edits already.
const before = document(21)
before.text.insert(0, "What the server knows. ")
const known = [...before.updates]
const oldVector = Y.encodeStateVector(before.doc)
before.text.insert(before.text.length, "What it half knows: 자기소개서. ")
const half = [...known, before.updates.at(-1)]
before.text.insert(before.text.length, "And more \u{1F600}.")
before.text.delete(0, 5)
const after = document(22)
Y.applyUpdate(after.doc, Y.encodeStateAsUpdate(before.doc), "remote")
after.text.insert(4, "new ")
write("offline", {
  server: half,
  step2: hex(Y.encodeStateAsUpdate(after.doc, oldVector)),
  whole_step2: hex(Y.encodeStateAsUpdate(after.doc)),
  ...state(after),
})

// 4. Updates that a room rejects: types outside the text, and structs that depend on missing ones.
function only(make) {
  const doc = new Y.Doc()
  doc.clientID = 31
  // A document fixes the type of a root at its first access, so the getter delays that access.
  make({ doc, get text() { return doc.getText("content") } })
  return hex(Y.encodeStateAsUpdate(doc))
}
const nested = ({ doc }, levels) => {
  let list = []
  for (let level = 1; level < levels; level += 1) list = [list]
  doc.getArray("content").push([list])
}
const lacking = document(32)
lacking.text.insert(0, "first ")
lacking.text.insert(6, "second")
const waiting = document(33)
Y.applyUpdate(waiting.doc, Buffer.from(lacking.updates[0], "hex"), "remote")
waiting.text.delete(0, 2)
waiting.text.insert(0, "!")
write("refused", {
  embed: only(({ text }) => text.insertEmbed(0, { image: "x.png" })),
  attribute: only(({ text }) => text.setAttribute("title", "x")),
  other_root: only(({ doc }) => doc.getText("title").insert(0, "x")),
  map: only(({ doc }) => doc.getMap("content").set("key", 1)),
  array: only(({ doc }) => doc.getArray("content").push([1, "two", { three: [3] }])),
  nested_type: only(({ doc }) => doc.getArray("content").push([new Y.Text("x")])),
  sub_document: only(({ doc }) => doc.getArray("content").push([new Y.Doc({ guid: "x" })])),
  binary: only(({ doc }) => doc.getArray("content").push([new Uint8Array([1, 2])])),
  deep_values: only((made) => nested(made, 100)),
  deep_format: only(({ text }) => {
    let value = []
    for (let level = 0; level < 70; level += 1) value = [value]
    text.insert(0, "x", { deep: value })
  }),
  gap_own: lacking.updates[1],
  gap_origin: waiting.updates[1],
  gap_delete: waiting.updates[0],
  skip: hex(Y.mergeUpdates([
    Buffer.from(lacking.updates[0], "hex"),
    Y.encodeStateAsUpdate(lacking.doc, Uint8Array.of(1, 32, 9)),
  ])),
})

// 5. Relative positions: their offsets at creation and after each edit.
const anchored = document(41)
anchored.text.insert(0, "The quick \u{1F98A} brown fox. 한국어 text.")
const start = anchored.text.toString().indexOf("brown")
const positions = [
  [start, 0], [start + 5, -1], [0, 0], [0, -1], [anchored.text.length, -1],
].map(([index, assoc]) => Y.createRelativePositionFromTypeIndex(anchored.text, index, assoc))
const steps = []
const note = () =>
  steps.push({
    updates: anchored.updates.length,
    text: anchored.text.toString(),
    offsets: positions.map((at) => Y.createAbsolutePositionFromRelativePosition(at, anchored.doc).index),
  })
note()
const edits = [
  (text) => text.insert(0, "\u{1F600} "),
  (text) => text.insert(text.toString().indexOf("brown"), "X"),
  (text) => text.insert(text.toString().indexOf("brown") + 5, "Y"),
  (text) => text.insert(text.toString().indexOf("brown") + 2, "-한-"),
  (text) => text.delete(text.toString().indexOf("br"), 8),
  (text) => anchored.doc.transact(() => {
    const all = text.toString()
    text.delete(0, text.length)
    text.insert(0, all)
  }),
]
for (const change of edits) {
  change(anchored.text)
  note()
}
write("positions", {
  updates: anchored.updates,
  positions: positions.map((at) => hex(Y.encodeRelativePosition(at))),
  steps,
})

// 6. Frames of the stock client's protocol.
const framed = (kind, fill) => {
  const encoder = encoding.createEncoder()
  encoding.writeVarUint(encoder, kind)
  fill(encoder)
  return hex(encoding.toUint8Array(encoder))
}
const awareness = new presence.Awareness(one.doc)
awareness.setLocalState({ user: { name: "김민수 \u{1F600}" }, cursor: null })
const states = presence.encodeAwarenessUpdate(awareness, [one.doc.clientID])
presence.removeAwarenessStates(awareness, [one.doc.clientID], "left")
const gone = presence.encodeAwarenessUpdate(awareness, [one.doc.clientID])
write("frames", {
  step1: framed(0, (encoder) => sync.writeSyncStep1(encoder, lacking.doc)),
  step2: framed(0, (encoder) => sync.writeSyncStep2(encoder, lacking.doc)),
  update: framed(0, (encoder) => sync.writeUpdate(encoder, Buffer.from(lacking.updates[0], "hex"))),
  awareness: framed(1, (encoder) => encoding.writeVarUint8Array(encoder, states)),
  gone: framed(1, (encoder) => encoding.writeVarUint8Array(encoder, gone)),
  query: framed(3, () => {}),
})
awareness.destroy()
