// @ts-check
/** The reviews of a link: an answer that an event overtook changes nothing that is newer. */

import assert from "node:assert/strict"
import { beforeEach, test } from "node:test"

import { Reviews } from "../../static/js/reviews/reviews.ts"

const author = { id: "u2", name: "이서연" }

/** @param {string} id @param {object} [changes] @returns {any} */
const review = (id, changes) => ({ id, author, anchor: null, body: id, suggestion: null, parts: [], status: "open", version: 1, change: 1, replies: [], ...changes })

/** The lists that the page requests, each answered when the test says so. @type {((reviews: object[]) => void)[]} */
let answers = []

beforeEach(() => {
  answers = []
  const fetch = () =>
    new Promise((resolve) => answers.push((reviews) => resolve(Response.json({ reviews, next_cursor: null }))))
  Object.assign(globalThis, { window: globalThis, fetch })
})

/** @param {...object} stored */
async function reviewsWith(...stored) {
  const editor = {
    marked: { passages: new Map(), look: {} },
    baseTree: { toString: () => "", length: 0, sliceString: () => "" },
    inView: (/** @type {object} */ spot) => spot,
    setPassages: (/** @type {Map<string, object>} */ passages) => (editor.marked = { ...editor.marked, passages }),
  }
  const reviews = new Reviews(/** @type {any} */ (editor), "link", "u1", "u1", /** @type {any} */ (null))
  await answered(reviews.read(), 0, stored)
  answers = []
  return reviews
}

/** @param {Promise<void>} read @param {number} at @param {object[]} list */
async function answered(read, at, list) {
  answers[at]?.(list)
  await read
}

test("a review that came during a read stays, though the answer is without it", async () => {
  const reviews = await reviewsWith(review("old"), review("gone"))
  const read = reviews.read()
  reviews.apply(review("new", { change: 2 }))
  await answered(read, 0, [review("old")])
  assert.deepEqual(reviews.all.map(({ id }) => id), ["old", "new"], "the one that was listed and is missing is deleted")
})

test("a review that was decided during a read stays decided", async () => {
  const reviews = await reviewsWith(review("one"), review("two"))
  const read = reviews.read()
  reviews.apply(review("one", { status: "accepted", version: 2, change: 3 }))
  await answered(read, 0, [review("one"), review("two", { body: "newer", change: 2 })])
  assert.equal(reviews.get("one")?.status, "accepted")
  assert.equal(reviews.get("two")?.body, "newer")
})

test("a review that was deleted during a read does not come back", async () => {
  const reviews = await reviewsWith(review("one"))
  const read = reviews.read()
  reviews.drop("one")
  // The event of one that the page has not read yet.
  reviews.drop("two")
  await answered(read, 0, [review("one"), review("two")])
  assert.deepEqual(reviews.all, [])
  reviews.apply(review("one", { version: 2 }))
  assert.deepEqual(reviews.all, [], "nor by a late answer")
})

test("the answer of an earlier read is ignored after that of a later one", async () => {
  const reviews = await reviewsWith()
  const reads = [reviews.read(), reviews.read()]
  await answered(/** @type {Promise<void>} */ (reads[1]), 1, [review("one")])
  await answered(/** @type {Promise<void>} */ (reads[0]), 0, [])
  assert.deepEqual(reviews.all.map(({ id }) => id), ["one"])
})

test("a read takes what the server has, also if that is older than an event before it", async () => {
  const reviews = await reviewsWith(review("one"), review("two"))
  reviews.apply(review("one", { status: "accepted", version: 2, change: 3 }))
  reviews.drop("two")
  // The database was set back to a backup.
  await answered(reviews.read(), 0, [review("one"), review("two")])
  assert.deepEqual(reviews.all.map(({ id, status }) => `${id} ${status}`), ["one open", "two open"])
})
