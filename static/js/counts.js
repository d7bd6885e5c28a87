// @ts-check
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
 *
 * Touches no DOM, so it is tested with `node --test`.
 */

import { graphemesOf } from "./graphemes.js"

/**
 * @typedef {{ all: number, solid: number, utf8: number, euckr: number, foreign: number }} Counts
 * @typedef {"all" | "solid" | "utf8" | "euckr"} Unit
 */

/** @type {readonly Unit[]} */
export const units = ["all", "solid", "utf8", "euckr"]

const utf8 = new TextEncoder()

/** @type {Set<string> | undefined} */
let korean

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

/** @param {string} line without its line break @returns {Counts} */
function countLine(line) {
  const counts = { all: 0, solid: 0, utf8: utf8.encode(line).length, euckr: 0, foreign: 0 }
  for (const grapheme of graphemesOf(line)) {
    counts.all++
    if (!/^\s/u.test(grapheme)) counts.solid++
  }
  const known = codePage949()
  for (const character of line) {
    const isAscii = /** @type {number} */ (character.codePointAt(0)) < 0x80
    counts.euckr += isAscii ? 1 : 2
    if (!isAscii && !known.has(character)) counts.foreign++
  }
  return counts
}

/**
 * Counts text after text and remembers the lines: after a keystroke only the line that changed is
 * counted again.
 */
export class Counter {
  /** @type {Map<string, Counts>} */
  #lines = new Map()

  /** @param {Iterable<string>} lines @returns {Counts} */
  count(lines) {
    /** @type {Map<string, Counts>} */
    const seen = new Map()
    const sum = { all: 0, solid: 0, utf8: 0, euckr: 0, foreign: 0 }
    let breaks = -1
    for (const line of lines) {
      const counts = this.#lines.get(line) ?? countLine(line)
      seen.set(line, counts)
      sum.all += counts.all
      sum.solid += counts.solid
      sum.utf8 += counts.utf8
      sum.euckr += counts.euckr
      sum.foreign += counts.foreign
      breaks++
    }
    this.#lines = seen
    const between = Math.max(breaks, 0)
    sum.all += between
    sum.utf8 += between
    sum.euckr += between
    return sum
  }
}
