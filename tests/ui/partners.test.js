// @ts-check
/** How a person is named, and the sentences of requests. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { Problem } from "../../static/js/lib/api.ts"
import { i18n } from "../../static/js/lib/i18n.ts"
import { partners } from "../../static/js/lib/partners_api.ts"
import { handleIn, personIn, tokenIn } from "../../static/js/start/person_address.ts"
import { peopleErrorText, requestSentence } from "../../static/js/start/request_text.ts"

await i18n.start()

const ORIGIN = "https://galley.example"
const TOKEN = "Ab_-5".repeat(9).slice(0, 43)

test("a handle has letters, digits, underscores and Hangul syllables, with or without its @", () => {
  for (const [typed, handle] of [
    ["kim", "kim"],
    [" @Kim_2 ", "kim_2"],
    ["＠민수", "민수"],
    ["민수".normalize("NFD"), "민수"],
    ["a".repeat(30), "a".repeat(30)],
  ]) assert.equal(handleIn(String(typed)), handle)
  for (const typed of ["", "@", "k", "a".repeat(31), "two words", "ㅁㅅ", "é2", "@@kim", "kim!"]) {
    assert.equal(handleIn(typed), null, typed)
  }
})

test("a person is named by a handle, a personal link or its token", () => {
  for (const [typed, to] of [
    ["kim", "@kim"],
    [" @Kim ", "@kim"],
    [TOKEN, TOKEN],
    [`${ORIGIN}/#ask=${TOKEN}`, TOKEN],
    [`galley.example/#ask=${TOKEN}\n`, TOKEN],
    [`#ask=${TOKEN}`, TOKEN],
  ]) assert.equal(personIn(String(typed), ORIGIN), to, typed)
})

test("a link of another site, an invite and a damaged link name no person", () => {
  for (const typed of [
    "",
    `https://other.example/#ask=${TOKEN}`,
    `${ORIGIN}/#ask=${TOKEN.slice(1)}`,
    `${ORIGIN}/s/shr_1#${TOKEN}`,
    "https://",
    "http://[#",
  ]) assert.equal(personIn(typed, ORIGIN), null, typed)
  assert.equal(tokenIn(`#move=${TOKEN}`), null)
})

/** @typedef {import("../../static/js/lib/partners_api.ts").ReviewRequest} ReviewRequest */

/** @param {Partial<ReviewRequest>} given @returns {ReviewRequest} */
const request = (given) => ({
  id: "req_1", from: { id: "u1", name: "Kim" }, to: { id: "u2", name: "Lee" }, as: "writer", message: null,
  document_id: null, title: null, state: "pending", created_at: "", decided_at: null, expires_at: "", ...given,
})

test("a request names the other user, and the document if there is one", async () => {
  await i18n.setLanguage("en")
  const [plain, about, offer] = [request({}), request({ document_id: "doc_1", title: "Essay" }), request({ as: "reviewer" })]
  assert.equal(requestSentence(plain, "u1"), "You asked Lee to review a text.")
  assert.equal(requestSentence(plain, "u2"), "Kim asks you to review a text.")
  assert.equal(requestSentence(about, "u1"), "You asked Lee to review “Essay”.")
  assert.equal(requestSentence(about, "u2"), "Kim asks you to review “Essay”.")
  assert.equal(requestSentence(request({ document_id: "doc_1", title: "" }), "u2"), "Kim asks you to review “Untitled”.")
  assert.equal(requestSentence(request({ document_id: "doc_1" }), "u2"), "Kim asks you to review a text.")
  assert.equal(requestSentence(offer, "u1"), "You offered Lee to review a text.")
  assert.equal(requestSentence(offer, "u2"), "Kim offers to review a text of yours.")
})

test("an error says what happened to the request, and when the next one may be sent", async () => {
  await i18n.setLanguage("en")
  const problem = (/** @type {string} */ kind, /** @type {Partial<Problem>} */ given = {}) =>
    peopleErrorText(Object.assign(new Problem(409, kind), given))
  assert.match(problem("request-not-pending", { state: "withdrawn" }), /withdrawn meanwhile/)
  assert.match(problem("request-not-pending", { state: "of a newer server" }), /no longer open/)
  assert.match(problem("request-limit"), /Withdraw one/)
  assert.match(problem("request-limit", { retryAfter: 3 * 3_600_000 }), /Try again in 3 hours/)
  assert.match(problem("too-many"), /limit of partners/)
  assert.match(problem("handle-taken"), /Choose a different one/)
  assert.match(problem("unknown-user"), /letter by letter/)
  assert.match(peopleErrorText(new Problem(0, "offline")), /cannot be reached/)
})

test("a list of people is read to its last page", async (context) => {
  const requested = /** @type {string[]} */ ([])
  context.mock.method(globalThis, "fetch", async (/** @type {string} */ path) => {
    requested.push(path)
    const isLast = path.includes("cursor=a%3D1")
    return Response.json({ partners: [{ since: String(requested.length) }], next_cursor: isLast ? null : "a=1" })
  })
  const rows = await partners()
  assert.deepEqual(rows.map(({ since }) => since), ["1", "2"])
  assert.deepEqual(requested, ["/api/partners?limit=100", "/api/partners?limit=100&cursor=a%3D1"])
})
