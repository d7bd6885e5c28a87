// @ts-check
/** Each rejection by the server is a sentence of the page, in the page's language. */

import assert from "node:assert/strict"
import { readdirSync, readFileSync } from "node:fs"
import { test } from "node:test"

import { Problem } from "../../static/js/lib/api.ts"
import { errorText, reviewErrorText } from "../../static/js/lib/error_text.ts"
import { i18n, t } from "../../static/js/lib/i18n.ts"

await i18n.start()

const folder = new URL("../../src/", import.meta.url)
const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".rs"))
const source = files.map((file) => readFileSync(new URL(file, folder), "utf8")).join("\n")
/** The names of the server's problems. */
const names = [...source.matchAll(/::[A-Z_]+,\s*"([a-z]+(?:-[a-z]+)*)",\s*"[A-Z]/g)].map(([, name = ""]) => name)
const STATUSES = [400, 401, 403, 404, 405, 409, 410, 412, 413, 415, 418, 421, 422, 429, 500, 503, 507]
const DETAIL = "there is no such address"

test("no sentence is the server's, whatever the problem", async () => {
  assert.ok(30 < names.length, names.join())
  for (const language of /** @type {const} */ (["en", "ko"])) {
    await i18n.setLanguage(language)
    for (const name of [...names, "unknown", "of-a-newer-server", "constructor"]) {
      for (const status of STATUSES) {
        for (const sentence of [errorText, reviewErrorText].map((of) => of(new Problem(status, name, DETAIL)))) {
          assert.equal(typeof sentence, "string", `${status} ${name}`)
          assert.ok(!sentence.includes(DETAIL), `${status} ${name}: ${sentence}`)
          if (language === "ko") assert.match(sentence, /[가-힣]/, `${status} ${name}: ${sentence}`)
        }
      }
    }
  }
})

test("an unknown address is said to be gone, and an unknown problem has its own sentence", async () => {
  await i18n.setLanguage("en")
  assert.equal(errorText(new Problem(404, "not-found", DETAIL)), t("error.gone"))
  assert.equal(errorText(new Problem(418, "of-a-newer-server", DETAIL)), t("error.unknown"))
  assert.equal(errorText(new Problem(409, "quota-spent", DETAIL)), t("error.quota"))
  assert.equal(errorText(new Problem(0, "offline")), t("error.offline"))
  assert.equal(errorText(new TypeError("x")), t("error.server"))
})
