// @ts-check
/** Both languages have the same sentences. */

import assert from "node:assert/strict"
import { readdirSync, readFileSync } from "node:fs"
import { test } from "node:test"

import { choose, i18n, t, tCount } from "../../static/js/lib/i18n.ts"
import { adminEn } from "../../static/js/lib/i18n/admin_en.ts"
import { adminKo } from "../../static/js/lib/i18n/admin_ko.ts"
import { en } from "../../static/js/lib/i18n/en.ts"
import { ko } from "../../static/js/lib/i18n/ko.ts"

/** All sentences of each language. */
const languages = { en: { ...en, ...adminEn }, ko: { ...ko, ...adminKo } }

await i18n.start()

const pages = new URL("../../static/", import.meta.url)

/** @param {string} sentence */
const blanks = (sentence) => [...new Set([...sentence.matchAll(/\{\w+\}/g)].map(String))].sort()

test("both languages have the same sentences with the same blanks", () => {
  assert.deepEqual(Object.keys(languages.ko), Object.keys(languages.en))
  for (const [name, sentence] of Object.entries(languages.en)) {
    const korean = languages.ko[/** @type {keyof typeof languages.ko} */ (name)]
    assert.notEqual(korean.trim(), "", name)
    assert.deepEqual(blanks(korean), blanks(sentence), name)
  }
})

test("every sentence is used, and every used one exists", () => {
  const files = readdirSync(pages, { recursive: true, encoding: "utf8" })
  const read = (/** @type {string} */ file) => readFileSync(new URL(file, pages), "utf8")
  const said = files
    .filter((file) => /\.([jt]s|html)$/.test(file) && !/^(vendor|js[\\/]lib[\\/]i18n[\\/])/.test(file))
    .map(read)
    .join("\n")
  // `state.lost.${why}` uses every sentence with that prefix.
  const families = [...said.matchAll(/`([a-z]+\.[a-z.-]*)\$\{.*?\}([a-z.-]*)`/g)]
  const isSaid = (/** @type {string} */ name) =>
    said.includes(`"${name}"`) ||
    families.some(([, start = "", end = ""]) => name.startsWith(start) && name.endsWith(end)) ||
    name.endsWith(".one")
  for (const name of Object.keys(languages.en)) assert.ok(isSaid(name), `unused: ${name}`)
  for (const [, name] of said.matchAll(/data-t(?:-label|-hint)?="([^"]+)"/g)) {
    assert.ok(name && name in languages.en, `unknown: ${name}`)
  }
})

test("a chosen language comes before the browser's, and English is for all others", () => {
  assert.equal(choose("en", ["ko-KR"]), "en")
  assert.equal(choose(null, ["ko-KR", "en"]), "ko")
  assert.equal(choose(null, ["de-DE", "ko"]), "ko")
  assert.equal(choose("xx", ["fr"]), "en")
})

test("blanks are filled, and one is not many", async () => {
  await i18n.setLanguage("en")
  assert.equal(t("saved.at", { time: "14:03" }), "Saved 14:03")
  assert.equal(tCount("state.offline.count", 1), "1 character is not saved yet.")
  assert.equal(tCount("state.offline.count", 1234), "1,234 characters are not saved yet.")
})

/** Words of the look, and of the field, that leave a user's sentences: PAGE.md has those in their place. */
const RETIRED = {
  en: /\b(chairs?|sit|sat|seated|stand up|given back|taken back|in line|the line|put in|taken? out|put it on the desk|shall|(?<!person )reviews|run out|(no|open|next|previous) review|\{count\} (edits|changes)|the key)\b/i,
  ko: /앉|일어나|일어났|모시|줄을 서|줄에|반려|저절로|빼기|열쇠|손님|펜스|리스(?!트)|(수정|변경)이? ?\{count\}건|글이 가득|받았어요|보다 \{|중 \{|멈춘 때|떠난 때/,
}

/** The administrator's page explains seats; to all others they are roles. */
const SEATS = { en: /\bseats?\b/i, ko: /(?<!제)자리(?! 비움)/ }

test("no sentence uses a retired word; the administrator's may name seats", () => {
  for (const language of /** @type {const} */ (["en", "ko"])) {
    for (const [name, sentence] of Object.entries(languages[language])) {
      assert.doesNotMatch(sentence, RETIRED[language], `${language}: ${name}`)
      if (!name.startsWith("admin.")) assert.doesNotMatch(sentence, SEATS[language], `${language}: ${name}`)
    }
  }
})

test("a Korean user finds 첨삭 in the title, on the start page and at the gate", () => {
  for (const name of /** @type {const} */ (["start.title", "start.sentence.more", "start.waiting", "entry.name.title", "review.list"])) {
    assert.match(languages.ko[name], /첨삭/, name)
  }
})
