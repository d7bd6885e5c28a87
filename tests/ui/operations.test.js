// @ts-check
/** Jobs on the admin page: sentences, lengths of runs, and their counts. */

import assert from "node:assert/strict"
import { afterEach, test } from "node:test"

import { countsSentence, foldRuns, jobSentence, seconds } from "../../static/js/admin/jobs.ts"
import { i18n } from "../../static/js/lib/i18n.ts"
import { adminEn } from "../../static/js/lib/i18n/admin_en.ts"
import { adminKo } from "../../static/js/lib/i18n/admin_ko.ts"

await i18n.start({ en: async () => adminEn, ko: async () => adminKo })

afterEach(async () => {
  await i18n.setLanguage("en")
})

test("a job says whether it runs, when it runs next, and how long a run takes", async () => {
  const job = { job: "reminders", running: null, last_runs: [], next_at: "2026-11-23T10:00:00Z", estimate_ms: 1_250 }
  assert.match(jobSentence(job), /^Next run at \d\d:\d\d:00\. A run takes about 1\.3 s\.$/)
  const running = { node: "node_1", since: "2026-11-23T10:00:05Z", fence: 7 }
  assert.match(jobSentence({ ...job, running }), /^Runs on node_1 since \d\d:\d\d:05\./)
  await i18n.setLanguage("ko")
  assert.match(jobSentence({ ...job, running }), /node_1 서버에서 실행 중/)
})

test("the counts of a run have names, the known ones in their order, and zeros are left out", () => {
  assert.equal(countsSentence({ sent: 2, candidates: 1_003, postponed: 0, unsent: 1 }), "candidates 1,003, sent 2, without a browser 1")
  assert.equal(countsSentence({ of_a_newer_server: 3, sent: 1 }), "sent 1, of_a_newer_server 3")
  assert.equal(countsSentence({ candidates: 0 }), "nothing to do")
  assert.equal(countsSentence({}), "nothing to do")
})

test("a short run has digits behind the point, and a clock that steps gives no negative length", () => {
  assert.equal(seconds(42), "0.04 s")
  assert.equal(seconds(1_250), "1.3 s")
  assert.equal(seconds(61_400), "61 s")
  assert.equal(seconds(-5), "0.00 s")
})

test("equal runs of a server that follow each other are one", () => {
  const run = (/** @type {number} */ minute, /** @type {Record<string, number>} */ counts, node = "node_1") => ({
    started_at: `2026-11-21T14:${minute}:00Z`, ended_at: `2026-11-21T14:${minute}:01Z`, node, fence: minute, outcome: /** @type {const} */ ("done"), counts,
  })
  const runs = [run(30, {}), run(29, {}), run(28, { sent: 1 }), run(27, {}), run(26, {}, "node_2")]
  assert.deepEqual(foldRuns(runs).map((folded) => folded.length), [2, 1, 1, 1])
})
