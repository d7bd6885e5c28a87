/**
 * How long a text is, in the ways people are asked for.
 *
 * - *Characters* are graphemes, what a reader would call one: 👩‍👩‍👧 is one, and so is 각 however it
 *   is composed. A line break is one, a space is one.
 * - *Without spaces* leaves out all white space, line breaks too.
 * - *UTF-8* bytes, a line break is one.
 * - *EUC-KR* means what Korean portals mean by it: code page 949, where all 11,172 syllables of
 *   modern Hangul stand. ASCII is one byte and everything else in it two. What is not in it (emoji,
 *   most other scripts) has no length there; it is taken as two bytes a code point, as the portals
 *   take it, and counted apart in `foreign` so that the page can say so.
 * - *Words* are what stands between spaces and has a letter or a digit, as a word processor counts them.
 *   In a script without spaces (Chinese, Japanese, Thai) the platform's segmenter divides them.
 *
 * Touches no DOM, so it is tested with `node --test`.
 */

import type { Text } from "@codemirror/state"
import { graphemesOf } from "../lib/graphemes.ts"

export type Counts = { all: number, solid: number, utf8: number, euckr: number, foreign: number, words: number }
export type Unit = "all" | "solid" | "utf8" | "euckr" | "words"

export const units: readonly Unit[] = ["all", "solid", "utf8", "euckr", "words"]

const utf8 = new TextEncoder()

let korean: Set<string> | undefined

/**
 * Everything that code page 949 has beyond ASCII: made once, from the platform's own decoder.
 *
 * Browsers decode `euc-kr` as code page 949; elsewhere it may be the older set with 2,350 syllables.
 * The two differ in nothing but Hangul syllables, so those are put in by hand.
 */
function codePage949() {
  if (korean) return korean
  korean = new Set()
  for (let syllable = 0xac00; syllable <= 0xd7a3; syllable++) {
    korean.add(String.fromCharCode(syllable))
  }
  const decoder = new TextDecoder("euc-kr")
  const pair = new Uint8Array(2)
  for (let lead = 0x81; lead <= 0xfe; lead++) {
    for (let trail = 0x41; trail <= 0xfe; trail++) {
      pair.set([lead, trail])
      const character = decoder.decode(pair)
      // Two results are a bad pair and an ASCII trail; U+FFFD is a bad pair alone.
      if (character.length === 1 && character !== "\ufffd") korean.add(character)
    }
  }
  return korean
}

/** Nothing but ASCII and whole syllables, of which each is one UTF-16 unit and one grapheme. */
const PLAIN = /^[\t\x20-\x7e\uac00-\ud7a3]*$/

const nothing = (): Counts => ({ all: 0, solid: 0, utf8: 0, euckr: 0, foreign: 0, words: 0 })

/** @param line without its line break */
function countLine(line: string): Counts {
  return PLAIN.test(line) ? countPlain(line) : countAny(line)
}

/** Counts lines and the breaks between them. */
function countLines(lines: Iterable<string>): Counts {
  const sum = nothing()
  let breaks = -1
  for (const line of lines) {
    add(sum, countLine(line))
    breaks++
  }
  add(sum, countBreaks(breaks))
  return sum
}

const countBreaks = (breaks: number): Counts => ({ ...nothing(), all: breaks, utf8: breaks, euckr: breaks })

/** Counts a string in one call; `Counter` counts a tree in steps. */
export const countText = (text: string) => countLines(text.split("\n"))

/** How many characters a reader counts, line breaks too. */
export const charactersIn = (text: string) => countText(text).all

/** The same as `countAny` and some thirty times as fast: most lines are such. */
function countPlain(line: string): Counts {
  let spaces = 0
  let ascii = 0
  let words = 0
  let inWord = false
  for (let at = 0; at < line.length; at++) {
    const code = line.charCodeAt(at)
    if (code < 0x80) ascii++
    if (code === 0x20 || code === 0x09) {
      spaces++
      inWord = false
    } else if (!inWord && isWordCharacter(code)) {
      words++
      inWord = true
    }
  }
  const syllables = line.length - ascii
  const bytes = { utf8: ascii + 3 * syllables, euckr: ascii + 2 * syllables }
  return { all: line.length, solid: line.length - spaces, ...bytes, foreign: 0, words }
}

/** Whether a unit of a plain line is a letter or a digit. */
const isWordCharacter = (code: number) =>
  0xac00 <= code ||
  (0x30 <= code && code <= 0x39) ||
  (0x41 <= code && code <= 0x5a) ||
  (0x61 <= code && code <= 0x7a)

/** Scripts that put no space between words. */
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u
/** How much is divided into words at once, in UTF-16 units: see `graphemes.ts`. */
const PIECE = 1_024

const segmenter = new Intl.Segmenter(undefined, { granularity: "word" })

function wordsIn(line: string) {
  let words = 0
  for (const token of line.split(/[\s\u2013\u2014]+/u)) {
    if (!/[\p{L}\p{N}]/u.test(token)) continue
    if (!UNSPACED.test(token)) {
      words++
      continue
    }
    for (let at = 0; at < token.length; at += PIECE) {
      for (const { isWordLike } of segmenter.segment(token.slice(at, at + PIECE))) if (isWordLike) words++
    }
  }
  return words
}

/** Decomposed Hangul, as macOS writes it in names and a stock client may store it: a form counts its syllables. */
const JAMO = /[\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff]+/g

function countAny(stored: string): Counts {
  const line = stored.replace(JAMO, (jamo) => jamo.normalize("NFC"))
  const counts = { ...nothing(), utf8: utf8.encode(line).length, words: wordsIn(line) }
  for (const grapheme of graphemesOf(line)) {
    counts.all++
    if (!/^\s/u.test(grapheme)) counts.solid++
  }
  const encodable = codePage949()
  for (const character of line) {
    const isAscii = (character.codePointAt(0) as number) < 0x80
    counts.euckr += isAscii ? 1 : 2
    if (!isAscii && !encodable.has(character)) counts.foreign++
  }
  return counts
}

/**
 * Counts text after text. The editor's texts are trees that share what did not change, so what was
 * counted is remembered by branch: after a keystroke only the leaf that changed is counted again.
 */
export class Counter {
  #cache: WeakMap<Text, Counts> = new WeakMap()

  count(text: Text): Counts {
    const steps = this.steps(text)
    for (;;) {
      const { done, value } = steps.next()
      if (done) return value
    }
  }

  /** The same leaf by leaf, so that others get a turn in between. What is left half done is not lost. */
  *steps(text: Text): Generator<void, Counts> {
    const cached = this.#cache.get(text)
    if (cached) return cached
    const { children } = text
    const sum = children ? countBreaks(children.length - 1) : countLines(text.iterLines())
    for (const child of children ?? []) add(sum, yield* this.steps(child))
    this.#cache.set(text, sum)
    yield
    return sum
  }
}

function add(sum: Counts, more: Counts) {
  for (const unit of Object.keys(sum) as (keyof Counts)[]) sum[unit] += more[unit]
}
