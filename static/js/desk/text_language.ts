/**
 * The language of a text, as its letters show it: for the voice of a screen reader, the fonts, the line
 * breaks and the units of the counts.
 *
 * Touches no DOM, so it is tested with `node --test`.
 */

import type { Text } from "@codemirror/state"

/** How much is read at the beginning, in the middle and at the end, in UTF-16 units. */
const SAMPLE = 2_000

/** Scripts that one language stands for, the letters of one counted so many times. */
const SCRIPTS: readonly (readonly [string, RegExp, number])[] = [
  // A syllable is two or three letters.
  ["ko", /\p{Script=Hangul}/gu, 3],
  ["ja", /[\p{Script=Hiragana}\p{Script=Katakana}]/gu, 2],
  ["zh", /\p{Script=Han}/gu, 1],
  ["ar", /\p{Script=Arabic}/gu, 1],
  ["he", /\p{Script=Hebrew}/gu, 1],
  ["ru", /\p{Script=Cyrillic}/gu, 1],
  ["el", /\p{Script=Greek}/gu, 1],
  ["th", /\p{Script=Thai}/gu, 1],
  ["", /\p{Script=Latin}/gu, 1],
]

const ENGLISH = /\b(?:the|and|of|to|in|is|are|was|that|it|for|with|as|you|my|this)\b/gi

/** A language tag, or `""` when the letters do not show it: most languages share the Latin ones. */
export function languageOf(text: string) {
  const counts = SCRIPTS.map(([tag, script, weight]) => ({ tag, letters: weight * (text.match(script)?.length ?? 0) }))
  const [first] = counts.toSorted((one, other) => other.letters - one.letters)
  if (!first || first.letters === 0) return ""
  if (first.tag === "zh") {
    // Japanese is written with both, and often with more of these.
    const kana = counts.find(({ tag }) => tag === "ja")?.letters ?? 0
    return first.letters < 20 * kana ? "ja" : "zh"
  }
  if (first.tag !== "") return first.tag
  const words = text.match(/\p{Script=Latin}+/gu)?.length ?? 0
  const english = text.match(ENGLISH)?.length ?? 0
  return words <= 12 * english ? "en" : ""
}

/** A sample of three pieces, so that a long text costs no more than a short one. */
export function sampleOf(text: Text) {
  const { length } = text
  if (length <= 3 * SAMPLE) return text.toString()
  const middle = Math.floor(length / 2)
  const starts = [0, middle, length - SAMPLE]
  return starts.map((from) => text.sliceString(from, from + SAMPLE)).join("\n")
}
