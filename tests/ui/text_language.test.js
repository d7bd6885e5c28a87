// @ts-check
/** The language of a text by its letters. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { Text } from "@codemirror/state"

import { languageOf, sampleOf } from "../../static/js/desk/text_language.ts"

test("the language of a text is the one that its letters show", () => {
  assert.equal(languageOf("저는 대학에서 산업공학을 전공했습니다. MBTI는 ENFP입니다."), "ko")
  assert.equal(languageOf("The essay describes the work of a team in Seoul (서울)."), "en")
  assert.equal(languageOf("私は大学で工学を専攻しました。"), "ja")
  assert.equal(languageOf("我在大学主修工业工程。"), "zh")
  assert.equal(languageOf("درست الهندسة الصناعية في الجامعة."), "ar")
  assert.equal(languageOf("למדתי הנדסה."), "he")
})

test("a text in Latin letters that is not English has no language, nor has an empty one", () => {
  assert.equal(languageOf("Der Brief beschreibt die Arbeit einer Gruppe, die niemand bemerkt."), "")
  assert.equal(languageOf(""), "")
  assert.equal(languageOf("1. 2. 3."), "")
})

test("a long text costs three samples", () => {
  const text = Text.of(Array.from({ length: 50_000 }, (_, at) => `${at}번째 줄입니다.`))
  const sample = sampleOf(text)
  assert.ok(sample.length < 6_100)
  assert.equal(languageOf(sample), "ko")
})
