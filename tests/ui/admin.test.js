// @ts-check
/** Sentences of the admin page about seats and alarms, in both languages. */

import assert from "node:assert/strict"
import { afterEach, test } from "node:test"

import { alarmSentence } from "../../static/js/admin/locks.ts"
import { sentence } from "../../static/js/admin/explain.ts"
import { i18n } from "../../static/js/lib/i18n.ts"
import { adminEn } from "../../static/js/lib/i18n/admin_en.ts"
import { adminKo } from "../../static/js/lib/i18n/admin_ko.ts"

await i18n.start({ en: async () => adminEn, ko: async () => adminKo })

afterEach(async () => {
  await i18n.setLanguage("en")
})

const as_of = "2026-11-21T14:03:10Z"

/** @type {import("../../static/js/lib/api.ts").SeatDetails} */
const held = {
  lock_key: "share-link:lock:shr_1:writer",
  share_link_id: "shr_1",
  title: null,
  role: "writer",
  session_id: "ses_1",
  user: { id: "usr_1", name: "Lee" },
  node: "node_1",
  since: as_of,
  fence: 1,
  ttl_ms: 11_000,
  last_seen: as_of,
  state: "held",
  why: "",
  told_by: "this-server",
  as_of,
  last_heard: "2026-11-21T14:03:08Z",
  last_active: "2026-11-21T14:00:10Z",
  last_edit: null,
  last_renewal: "2026-11-21T14:03:09Z",
  trusted_until: "2026-11-21T14:03:19Z",
  kept_until: "2026-11-21T14:03:21Z",
  grace_until: null,
  idle_release_at: null,
  waiting: 0,
  line: [],
}

test("a seat has an explanation, and each state a different one", async () => {
  assert.match(sentence(held), /^The browser of Lee was heard 2 seconds ago, and the lease was renewed 1 second ago\./)
  const states = /** @type {const} */ (["held", "uncertain", "away", "claiming", "ended"])
  for (const language of /** @type {const} */ (["en", "ko"])) {
    await i18n.setLanguage(language)
    const said = states.map((state) => sentence({ ...held, state }))
    said.push(sentence({ ...held, told_by: "redis", last_heard: null }))
    assert.equal(new Set(said).size, said.length)
    for (const one of said) assert.doesNotMatch(one, /\{|undefined|null/)
  }
  assert.match(sentence(held), /2초 전에/)
})

test("an alarm names its class, severity, start and remedy", async () => {
  const alarm = { class: "seat", alarm: /** @type {const} */ ("failures"), since: as_of, measured: 0.0952, limit: 0.05, remedy: "" }
  assert.match(alarmSentence(alarm), /^Seats: 9\.5% of the attempts .*\/readyz.* \(since \d\d:\d\d\)$/)
  const hold = { ...alarm, class: "export", alarm: /** @type {const} */ ("hold"), measured: 7.31 }
  assert.match(alarmSentence(hold), /^export: one was held for 7\.3 s/)
  await i18n.setLanguage("ko")
  assert.match(alarmSentence(alarm), /^자리: .*9\.5%가 실패/)
  assert.match(alarmSentence({ ...hold, alarm: "wait" }), /평균 7\.3초 기다렸습니다/)
})
