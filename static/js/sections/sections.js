// @ts-check
/**
 * This module finds the questions of a text: their headings, the limits of the headings, and the bodies below.
 *
 * `findSections` reads the text and applies the settings that users stored. A setting overrides only its own
 * fields, so an edit of the heading still changes the others. The function prefers no section to a wrong one:
 * without a sure chain of headings (`chains.js`) it returns the sections of the settings alone.
 *
 * - **Q1** Sections are ordered, disjoint and inside the text. A body lies below its heading.
 * - **Q2** An edit inside a body that adds no heading line changes no other section.
 * - **Q3** The time is linear in the length of the text.
 *
 * The module touches no DOM. `tests/data/sections.json` holds the examples, also for an implementation in Rust.
 */

import { selectHeadings } from "./chains.js"
import { candidatesIn, headingAt, isBlank } from "./headings.js"

/**
 * @typedef {import("./headings.js").Heading} Heading
 * @typedef {import("./limits.js").Limit} Limit
 * @typedef {0 | 1 | 2} LineBreak how much a line break counts
 * @typedef {Limit & { line_break: LineBreak | null }} Rules `line_break` is `null` for the custom of the unit
 * @typedef {{ from: number, to: number }} Range in UTF-16 units, without the line break at its end
 * @typedef {Range & Rules & { title: string, body: Range }} Section the range of its heading; an empty body lies at the end of the heading
 * @typedef {Partial<Rules> & { at: number, title?: string, question?: boolean }} Setting for the line with the offset `at`; named as in the API
 */

/** @type {Rules} */
const UNSAID = { unit: "spaces", limit: null, floor: null, line_break: null }

/**
 * The sections of a text whose line breaks are `\n`.
 *
 * @param {string} text @param {readonly Setting[]} [settings] @returns {Section[]}
 */
export function findSections(text, settings = []) {
  // A stock client may have stored decomposed letters. The offsets are those of the stored text.
  const stored = text.split("\n")
  const lines = text.normalize("NFC").split("\n")
  const starts = startsOf(stored)
  const settingByLine = new Map(settings.map((setting) => [lineAt(starts, setting.at), setting]))
  const headings = withSettings(lines, selectHeadings(lines, candidatesIn(lines)), settingByLine)
  return headings.map((heading, at) => {
    const next = headings[at + 1]?.first ?? lines.length
    return sectionOf(stored, starts, heading, next, settingOf(heading, settingByLine))
  })
}

/** @param {readonly string[]} lines */
function startsOf(lines) {
  let at = 0
  return lines.map((line) => {
    const start = at
    at += line.length + 1
    return start
  })
}

/** The index of the line that contains an offset. @param {readonly number[]} starts @param {number} offset */
function lineAt(starts, offset) {
  let [low, high] = [0, starts.length]
  while (1 < high - low) {
    const middle = (low + high) >> 1
    if ((starts[middle] ?? 0) <= offset) low = middle
    else high = middle
  }
  return low
}

/**
 * The headings that no setting excludes, and those that only a setting names.
 *
 * @param {readonly string[]} lines @param {readonly Heading[]} found @param {ReadonlyMap<number, Setting>} settingByLine
 */
function withSettings(lines, found, settingByLine) {
  const linesOfHeadings = new Set(found.flatMap(({ first, last }) => indices(first, last)))
  const marked = [...settingByLine]
    .filter(([line, { question }]) => question !== false && !linesOfHeadings.has(line) && !isBlank(lines[line]))
    .map(([line]) => headingAt(lines, line))
  const headings = found.filter((heading) => settingOf(heading, settingByLine)?.question !== false)
  return disjoint([...headings, ...marked].sort((one, other) => one.first - other.first))
}

/** Drops a marked line on which the heading above it continues. @param {readonly Heading[]} headings */
function disjoint(headings) {
  let end = -1
  return headings.filter(({ first, last }) => {
    if (first <= end) return false
    end = last
    return true
  })
}

/** @param {Heading} heading @param {ReadonlyMap<number, Setting>} settingByLine */
function settingOf({ first, last }, settingByLine) {
  const line = indices(first, last).find((line) => settingByLine.has(line))
  return line === undefined ? undefined : settingByLine.get(line)
}

/** @param {number} first @param {number} last */
const indices = (first, last) => Array.from({ length: last - first + 1 }, (_, at) => first + at)

/**
 * @param {readonly string[]} lines @param {readonly number[]} starts
 * @param {Heading} heading @param {number} next the line of the next heading @param {Setting | undefined} setting
 * @returns {Section}
 */
function sectionOf(lines, starts, { first, last, limit }, next, setting) {
  const { at: _, question: __, ...set } = setting ?? {}
  const title = lines[first]?.trim().normalize("NFC") ?? ""
  let [top, bottom] = [last + 1, next - 1]
  while (top <= bottom && isBlank(lines[top])) top++
  while (top <= bottom && isBlank(lines[bottom])) bottom--
  const heading = rangeOf(lines, starts, first, last)
  const body = top <= bottom ? rangeOf(lines, starts, top, bottom) : { from: heading.to, to: heading.to }
  return { ...heading, title, ...UNSAID, ...limit, ...set, body }
}

/** @param {readonly string[]} lines @param {readonly number[]} starts @param {number} first @param {number} last @returns {Range} */
function rangeOf(lines, starts, first, last) {
  return { from: starts[first] ?? 0, to: (starts[last] ?? 0) + (lines[last]?.length ?? 0) }
}
