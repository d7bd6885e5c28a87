// @ts-check
/** Notifications and reminders: keys, names of browsers, time zones and sentences. */

import assert from "node:assert/strict"
import { afterEach, test } from "node:test"

import { i18n } from "../../static/js/lib/i18n.ts"
import { savedSentence } from "../../static/js/notify/dialog.ts"
import { ownTimeZone } from "../../static/js/lib/i18n.ts"
import { browserName, timeZones } from "../../static/js/notify/notify_text.ts"
import { bytesOf } from "../../static/js/notify/push.ts"

await i18n.start()

afterEach(async () => {
  await i18n.setLanguage("en")
})

test("a key of the server is read from base64url, with and without its end", () => {
  assert.deepEqual([...bytesOf("-_8B")], [251, 255, 1])
  assert.deepEqual([...bytesOf("AQ")], [1])
  assert.equal(bytesOf(`B${"A".repeat(86)}`).length, 65)
})

test("the push service of a browser names the browser, and an unknown one itself", () => {
  assert.equal(browserName("fcm.googleapis.com"), "Chrome")
  assert.equal(browserName("updates.push.services.mozilla.com"), "Firefox")
  assert.equal(browserName("web.push.apple.com"), "Safari")
  assert.equal(browserName("wns2-par02p.notify.windows.com"), "Edge")
  assert.equal(browserName("push.example.org"), "push.example.org")
  assert.equal(browserName("evilmozilla.com"), "evilmozilla.com")
})

test("the time zones have the browser's, the chosen one and UTC, each once", () => {
  const zones = timeZones("Mars/Olympus")
  for (const zone of ["Asia/Seoul", "UTC", "Mars/Olympus", ownTimeZone()]) {
    assert.equal(zones.filter((other) => other === zone).length, 1, zone)
  }
  assert.deepEqual(zones, zones.toSorted())
})

test("saved reminders say when none comes", async () => {
  const all = { review_unanswered: true, seat_free: false, request_unanswered: true, quiet: null, time_zone: "Asia/Seoul" }
  const quiet = { from: "22:00", to: "08:00" }
  assert.equal(savedSentence(all), "Saved. Reminders come at any hour.")
  assert.equal(savedSentence({ ...all, quiet }), "Saved. No reminder comes from 22:00 to 08:00 (Asia/Seoul).")
  assert.equal(savedSentence({ ...all, quiet, time_zone: "America/New_York" }), "Saved. No reminder comes from 22:00 to 08:00 (America/New York).")
  assert.equal(savedSentence({ ...all, review_unanswered: false, request_unanswered: false, quiet }), "Saved. You get no reminders.")
  await i18n.setLanguage("ko")
  assert.match(savedSentence({ ...all, quiet }), /22:00부터 08:00까지는/)
})
