// @ts-check
/** The days that a deleted document has left in the bin, as its sentence counts them. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { deletedSentence } from "../../static/js/lib/deleted_sentence.ts"
import { i18n } from "../../static/js/lib/i18n.ts"

await i18n.start()
await i18n.setLanguage("en")

const DAY = 86_400_000
const SECOND = 1_000
const NOW = Date.parse("2026-05-04T10:00:00.000Z")

/** @param {number} moment in ms since 1970 */
const iso = (moment) => new Date(moment).toISOString()

for (const [left, words] of /** @type {[number, RegExp][]} */ ([
  // The page's measure of the server's clock may be late by a second.
  [30 * DAY + SECOND - 1, /for 30 days\.$/],
  [30 * DAY - SECOND, /for 30 days\.$/],
  [30 * DAY - DAY / 4, /for 30 days\.$/],
  [29 * DAY, /for 29 days\.$/],
  [DAY + SECOND, /for one day\.$/],
  [DAY / 2, /for one day\.$/],
  [DAY / 2 - SECOND, /until .+\.$/],
  [-SECOND, /until .+\.$/],
])) {
  test(`${left / DAY} days before the end of the bin's time`, (t) => {
    t.mock.timers.enable({ apis: ["Date"], now: NOW })
    const deletion = { at: iso(NOW - SECOND), by: { id: "kim", name: "Kim" }, purge_at: iso(NOW + left) }
    assert.match(deletedSentence(deletion, true), words)
  })
}
