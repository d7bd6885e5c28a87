// @ts-check
/** The refusals of a suggestion: each reason of the server has a sentence with a way out, in both languages. */

import assert from "node:assert/strict"
import { readFileSync } from "node:fs"
import { test } from "node:test"

import { suggestingEn } from "../../static/js/lib/i18n/suggesting_en.ts"
import { suggestingKo } from "../../static/js/lib/i18n/suggesting_ko.ts"
import { gravest, REFUSALS } from "../../static/js/suggest/sync/refusals.ts"

/** The reasons of the server, as they stand in JSON. */
function served() {
  const source = readFileSync(new URL("../../src/domain/suggestion.rs", import.meta.url), "utf8")
  const [, body = ""] = /pub enum Refusal \{([^}]*)\}/.exec(source) ?? []
  return [...body.matchAll(/^ {4}([A-Z]\w*),$/gm)].map(([, name = ""]) => name.replace(/(?<=[a-z])(?=[A-Z])/g, "-").toLowerCase())
}

test("each reason of the server has a sentence in both languages", () => {
  assert.ok(9 <= served().length)
  assert.deepEqual([...REFUSALS].sort(), [...served(), "storage"].sort())
  for (const reason of REFUSALS) {
    for (const sentences of [suggestingEn, suggestingKo]) {
      const sentence = sentences[`suggesting.${reason}`]
      // The cause, and the way out.
      assert.ok(2 <= (sentence.match(/[.?!](?= |$)/g) ?? []).length, `${reason}: ${sentence}`)
    }
  }
})

test("the gravest refusal is shown, and an unknown one has a sentence, too", () => {
  assert.equal(gravest([]), "")
  assert.equal(gravest(["quote-changed", "full", "version"]), "full")
  assert.equal(gravest(["quote-changed", "reason of a newer server"]), "malformed")
})
