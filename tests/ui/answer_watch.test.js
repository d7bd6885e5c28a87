// @ts-check
/** The watch for a server that does not answer, in virtual time. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { AnswerWatch } from "../../static/js/seat/answer_watch.ts"

/** A connection whose server answers until `frozenAt`, and a watch that checks each half second. */
function watched() {
  const connection = { lastMessageAt: /** @type {number | null} */ (0), queries: 0, query: () => void connection.queries++ }
  const watch = new AnswerWatch(connection)
  let now = 0
  watch.stir(0)
  return {
    connection,
    watch,
    get now() {
      return now
    },
    /** @param {number} until @param {{ answers: boolean, hidden?: boolean }} server */
    run(until, { answers, hidden = false }) {
      for (; now < until; now += 500) {
        const { queries } = connection
        watch.check(now, { hidden })
        if (answers && queries < connection.queries) connection.lastMessageAt = now + 20
      }
    },
  }
}

test("a server that answers is never reported", () => {
  const page = watched()
  page.run(30_000, { answers: true })
  assert.equal(page.watch.since, null)
  assert.ok(0 < page.connection.queries)
})

test("a frozen server is reported within six seconds, and its answer ends the report", () => {
  const page = watched()
  page.run(10_000, { answers: true })
  page.run(16_000, { answers: false })
  assert.notEqual(page.watch.since, null)
  page.connection.lastMessageAt = page.now
  page.run(17_000, { answers: true })
  assert.equal(page.watch.since, null)
})

test("without activity, or while the page is hidden, no query is sent", () => {
  const page = watched()
  page.run(61_000, { answers: true })
  const { queries } = page.connection
  page.run(90_000, { answers: true })
  assert.ok(page.connection.queries <= queries + 1)
  const hidden = watched()
  hidden.run(20_000, { answers: false, hidden: true })
  assert.equal(hidden.connection.queries, 0)
})

test("a closed socket has its own state, and is not reported as silent", () => {
  const page = watched()
  page.run(6_000, { answers: false })
  assert.notEqual(page.watch.since, null)
  page.connection.lastMessageAt = null
  page.run(7_000, { answers: false })
  assert.equal(page.watch.since, null)
})
