// @ts-check
/** The keys of undo and redo, while the answers of the server are late or in another order. */

import assert from "node:assert/strict"
import { beforeEach, test } from "node:test"

/** Enough of an element for a toast. */
class FakeElement extends EventTarget {
  /** @type {unknown[]} */
  children = []
  childElementCount = 0
  setAttribute() {}
  append() {}
  remove() {}
  matches() {
    return false
  }
}

const element = new FakeElement()
const page = Object.assign(new EventTarget(), { setTimeout: () => 0, clearTimeout() {} })
const document = { body: element, createElement: () => new FakeElement(), getElementById: () => element, querySelector: () => null }
Object.assign(globalThis, { window: page, document, HTMLElement: FakeElement })

const { Decisions } = await import("../../static/js/reviews/decisions.ts")

/** The requests of the page, answered when the test says so. @type {{ path: string, body: any, answer: (json?: object) => Promise<void> }[]} */
let requests = []
/** Ends the read of the reviews. */
let endRead = () => {}
/** @type {{ id: string, status: string, version: number, decision: { id: string } | null }[]} */
let all = []

/** Lets the page do what its answers allow. */
const finished = () => new Promise((resolve) => setImmediate(resolve))

beforeEach(() => {
  requests = []
  all = []
  const fetch = (/** @type {string} */ path, /** @type {{ body?: string }} */ { body = "null" }) =>
    new Promise((resolve) => {
      const answer = (json = {}) => {
        resolve(Response.json(json))
        return finished()
      }
      requests.push({ path, body: JSON.parse(body), answer: /** @type {any} */ (answer) })
    })
  Object.assign(globalThis, { fetch })
})

class FakeReviews extends EventTarget {
  link = "link"
  get all() {
    return all
  }
  /** @param {string} id */
  get(id) {
    return all.find((review) => review.id === id)
  }
  read() {
    return new Promise((resolve) => (endRead = () => resolve(undefined)))
  }
}

/** @param {import("node:test").TestContext} context */
function desk(context) {
  const steps = { undo: 0, redo: 0 }
  const editor = Object.assign(new EventTarget(), { binding: { steps, endStep() {} } })
  const reviews = new FakeReviews()
  const store = { seated: true, state: { role: "writer" } }
  const decisions = new Decisions(.../** @type {[any, any, any]} */ ([editor, reviews, store]))
  decisions.start()
  context.after(() => decisions.stop())
  const type = () => {
    steps.undo++
    editor.dispatchEvent(new CustomEvent("edit", { detail: true }))
  }
  /** Sends a decision. @param {string} id @returns {() => Promise<void>} its answer */
  const decide = (id) => {
    let answer = () => {}
    const answered = new Promise((resolve) => (answer = () => resolve(undefined)))
    const decided = decisions.during(async () => {
      await answered
      decisions.made("Accepted", id)
      return id
    })
    return async () => {
      answer()
      await decided
    }
  }
  return { undoLetter: () => steps.undo--, decisions, type, decide }
}

/** Presses a key with Ctrl. @param {string} key @returns {Promise<boolean>} whether the text does not get it */
async function press(key, shiftKey = false) {
  const pressed = Object.assign(new Event("keydown", { cancelable: true }), { key, code: "", ctrlKey: true, shiftKey })
  page.dispatchEvent(pressed)
  await finished()
  return pressed.defaultPrevented
}

const undone = () => requests.map(({ path }) => /decisions\/(.*)\/undo/.exec(path)?.[1])

test("the key is the text's again once the undo is answered, and before the reviews are read", async (context) => {
  const { decide } = desk(context)
  await decide("first")()
  assert.equal(await press("z"), true)
  assert.equal(await press("z"), true, "a second press before the answer is for no text")
  await requests[0]?.answer()
  assert.equal(await press("z"), false)
  assert.deepEqual(undone(), ["first"])
})

test("a decision that is taken back before its answer is taken back, whatever is typed after the press", async (context) => {
  const { decide, type } = desk(context)
  const answer = decide("first")
  assert.equal(await press("z"), true)
  type()
  assert.equal(await press("z"), false, "the letter is the text's to undo")
  await answer()
  await finished()
  assert.deepEqual(undone(), ["first"])
})

test("after a letter the key is the text's, though the decision is answered later", async (context) => {
  const { decide, type, undoLetter } = desk(context)
  const answer = decide("first")
  type()
  await answer()
  assert.equal(await press("z"), false)
  undoLetter()
  assert.equal(await press("z"), true, "the letter is undone, and the decision is next")
})

test("decisions whose answers cross are taken back in the order in which they were sent", async (context) => {
  const { decide } = desk(context)
  const answers = [decide("first"), decide("second")]
  await answers[1]?.()
  await answers[0]?.()
  await press("z")
  await press("z")
  await requests[0]?.answer()
  assert.deepEqual(undone(), ["second", "first"])
})

test("a decision that failed leaves the key to the one before it", async (context) => {
  const { decisions, decide } = desk(context)
  await decide("first")()
  await assert.rejects(decisions.during(() => Promise.reject(new Error("refused"))))
  await press("z")
  assert.deepEqual(undone(), ["first"])
})

test("a redo waits for the read after the undo", async (context) => {
  const { decide } = desk(context)
  all = [{ id: "rev", status: "accepted", version: 2, decision: { id: "first" } }]
  await decide("first")()
  await press("z")
  await requests[0]?.answer()
  assert.equal(await press("z", true), true)
  assert.equal(await press("z", true), true, "a second press before the answer is for no text")
  assert.equal(requests.length, 1)
  all = [{ id: "rev", status: "open", version: 3, decision: null }]
  endRead()
  await finished()
  assert.deepEqual(requests[1]?.body, { decision: "accept", reviews: [{ id: "rev", version: 3 }] })
})
