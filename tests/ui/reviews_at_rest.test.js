// @ts-check
/** The states of reviews after edits: at rest they are those that the server gives. */

import assert from "node:assert/strict"
import { beforeEach, mock, test } from "node:test"

import { ChangeSet, EditorState, Text, Y } from "../../static/js/lib/vendor.ts"

import { marked, setPassages } from "../../static/js/reviews/highlights.ts"
import { Reviews } from "../../static/js/reviews/reviews.ts"
import { SharedPositions } from "../../static/js/reviews/shared_positions.ts"

/** After a pause the page asks, and it has shown a loss by then. In ms. */
const REST = 5_000
/** The last words are beside no passage. */
const TEXT = `one two three four ${"and ".repeat(30)}five`

/** The server: its text, and reviews by their letters. A lost quote that stands once is found again. */
class Server {
  text = new Y.Doc().getText("content")
  /** @type {Map<string, any>} */
  stored = new Map()
  questions = 0
  /** The status of the next answers, if they fail. @type {number[]} */
  failures = []
  /** While it is set, answers wait for it. @type {Promise<void> | null} */
  held = null

  fetch = async () => {
    this.questions += 1
    const status = this.failures.shift() ?? 200
    const json = { reviews: [...this.stored.keys()].map((id) => this.served(id)), next_cursor: null }
    await this.held
    return { ok: status < 400, status, headers: new Headers(), json: async () => structuredClone(json) }
  }

  /** @param {string} id @param {string} quote @param {number} [from] */
  comment(id, quote, from = this.text.toString().indexOf(quote)) {
    const [start, end] = [Y.createRelativePositionFromTypeIndex(this.text, from, 0), Y.createRelativePositionFromTypeIndex(this.text, from + quote.length, -1)]
    this.stored.set(id, { quote, start, end })
  }

  /** @param {string} id @returns {any} */
  served(id) {
    const { quote, ...own } = this.stored.get(id)
    const text = this.text.toString()
    const [start, end] = [own.start, own.end].map((position) => Y.createAbsolutePositionFromRelativePosition(position, /** @type {Y.Doc} */ (this.text.doc))?.index ?? 0)
    const words = text.slice(start, end)
    let state = words === quote ? "exact" : words.length * 2 < quote.length ? "orphaned" : "edited"
    if (state === "orphaned" && text.split(quote).length === 2) {
      this.comment(id, quote)
      return this.served(id)
    }
    const encoded = (/** @type {Y.RelativePosition} */ position) => Buffer.from(Y.encodeRelativePosition(position)).toString("base64")
    const relative = state === "orphaned" ? null : { start: encoded(own.start), end: encoded(own.end) }
    const anchor = { state, start, end: state === "orphaned" ? start : end, quote, prefix: "", suffix: "", relative }
    return { id, author: { id: "u2", name: "이서연" }, anchor, body: "?", suggestion: null, parts: [], status: "open", version: 1, change: 1, replies: [], created_at: id, updated_at: id }
  }

  /** @param {Y.Text} text gets the edits of the other */
  pass(text, from = this.text) {
    Y.applyUpdate(/** @type {Y.Doc} */ (text.doc), Y.encodeStateAsUpdate(/** @type {Y.Doc} */ (from.doc)))
  }
}

/** The writer's page. */
class Page extends EventTarget {
  shared = new Y.Doc().getText("content")
  state = EditorState.create({ extensions: [marked] })
  watch = Object.assign(new EventTarget(), { state: { count: 0 } })

  /** @param {Server} server */
  constructor(server) {
    super()
    this.server = server
    server.pass(this.shared)
    this.state = EditorState.create({ doc: this.shared.toString(), extensions: [marked] })
    this.reviews = new Reviews(/** @type {any} */ (this), "link", "u1", "u1", this.watch)
    this.reviews.start(new AbortController().signal)
  }

  get baseTree() {
    return this.state.doc
  }

  get marked() {
    return this.state.field(marked)
  }

  get sharedPositions() {
    return new SharedPositions(this.shared, (at) => at)
  }

  inView = (/** @type {object} */ spot) => spot

  /** @param {any} passages */
  setPassages(passages) {
    this.state = this.state.update({ effects: setPassages.of(passages) }).state
  }

  /** @param {string} words are replaced @param {string} insert */
  type(words, insert, from = this.state.doc.toString().indexOf(words)) {
    const changes = ChangeSet.of({ from, to: from + words.length, insert: Text.of(insert.split("\n")) }, this.state.doc.length)
    this.shared.delete(from, words.length)
    this.shared.insert(from, insert)
    this.state = this.state.update({ changes }).state
    this.dispatchEvent(new CustomEvent("edit"))
  }

  /** The server receives the edits, and stores them. */
  save() {
    this.server.pass(this.server.text, this.shared)
    this.count(0)
  }

  /** @param {number} count of unsaved edits */
  count(count) {
    this.watch.state = { count }
    this.watch.dispatchEvent(new Event("change"))
  }

  /** @param {string} id */
  stateOf(id) {
    return this.reviews.stateOf(/** @type {any} */ (this.reviews.get(id)))
  }
}

/** @param {number} ms */
async function after(ms) {
  for (let passed = 0; passed < ms; passed += 100) {
    mock.timers.tick(100)
    for (let turn = 0; turn < 20; turn++) await Promise.resolve()
  }
}

/** @param {string[]} quotes of the reviews "0", "1" … */
async function begin(...quotes) {
  const server = new Server()
  server.text.insert(0, TEXT)
  for (const [at, quote] of quotes.entries()) server.comment(String(at), quote)
  Object.assign(globalThis, { fetch: server.fetch })
  const page = new Page(server)
  await page.reviews.read()
  server.questions = 0
  return { server, page }
}

beforeEach(() => {
  mock.timers.reset()
  mock.timers.enable({ apis: ["setTimeout", "Date"], now: 100_000 })
  Object.assign(globalThis, { window: globalThis })
})

test("a comment that comes with letters which were deleted and typed again meanwhile is asked for", async () => {
  const { server, page } = await begin()
  server.comment("0", "three")
  const event = server.served("0")
  page.type("three", "")
  page.type("", "three", 8)
  page.save()
  page.reviews.apply(event)
  await after(REST)
  assert.equal(page.stateOf("0"), "exact")
})

test("an event that is older than the text here is no last word", async () => {
  const { server, page } = await begin()
  server.comment("0", "three")
  page.type("three", "")
  page.save()
  const event = server.served("0")
  page.type("", "three", 8)
  page.save()
  page.reviews.apply(event)
  assert.equal(event.anchor.state, "orphaned")
  await after(REST)
  assert.equal(page.stateOf("0"), "exact")
})

test("an answer to a page whose edits the server lacks is no last word", async () => {
  const { server, page } = await begin("three")
  page.type("three", "")
  page.save()
  await after(REST)
  assert.equal(page.stateOf("0"), "orphaned")
  page.count(1)
  page.type("", "three", 8)
  // The connection is back, and the page reads before its edits have come.
  await page.reviews.read()
  await after(REST)
  assert.equal(page.stateOf("0"), "orphaned")
  const { questions } = server
  page.save()
  await after(REST)
  assert.equal(page.stateOf("0"), "exact")
  assert.equal(server.questions, questions + 1, "one question, when the edits are saved")
})

test("a lost passage is asked for after an edit while its words stand somewhere, and not while they stand nowhere", async () => {
  const { server, page } = await begin("three", "four")
  page.type("three four", "")
  page.save()
  await after(REST)
  const { questions } = server
  page.type("five", "six")
  page.save()
  await after(REST)
  assert.equal(server.questions, questions)
  page.type("six", "three; three")
  page.save()
  await after(REST)
  assert.equal(page.stateOf("0"), "orphaned", "of two lookalikes the server takes none")
  page.type("; three", "")
  page.save()
  await after(REST)
  assert.deepEqual(["0", "1"].map((id) => page.stateOf(id)), ["exact", "orphaned"])
})

test("an edited passage that is edited on is asked for", async () => {
  const { server, page } = await begin("three four")
  page.type("three", "")
  page.save()
  await after(REST)
  assert.equal(page.stateOf("0"), "edited")
  page.type("fou", "")
  page.save()
  await after(REST)
  assert.equal(page.stateOf("0"), "orphaned", "too little of it is left")
  const { questions } = server
  await after(60 * REST)
  assert.equal(server.questions, questions, "an answer ends the questions")
})

test("a question stays due through an edit elsewhere and through a failure of the server", async () => {
  const { server, page } = await begin("three")
  page.type("three", "")
  page.save()
  await after(REST)
  page.type("", "three", 8)
  page.save()
  // Read while an edit comes.
  server.failures.push(503)
  await after(800)
  page.type("one", "1")
  page.save()
  await after(2 * REST)
  assert.equal(page.stateOf("0"), "exact")
})

test("an edit during a read is followed by another one", async () => {
  const { server, page } = await begin("three")
  page.type("three", "")
  page.save()
  let release = () => {}
  server.held = new Promise((resolve) => (release = () => resolve()))
  await after(REST)
  page.type("", "three", 8)
  page.save()
  release()
  await after(REST)
  assert.equal(page.stateOf("0"), "exact")
})

test("each of two losses is shown when it is due", async () => {
  const { page } = await begin("three", "one")
  /** @type {string[]} */
  let shown = []
  page.reviews.addEventListener("change", () => (shown = ["0", "1"].map((id) => page.stateOf(id))))
  page.type("three", "")
  page.save()
  await after(1_000)
  page.type("one", "")
  page.save()
  await after(REST)
  assert.deepEqual(shown, ["orphaned", "orphaned"])
})
