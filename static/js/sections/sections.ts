/**
 * This module finds the questions of a text: their headings, the limits of the headings, and the bodies below.
 *
 * `findSections` reads the text and applies the settings that users stored. A setting overrides only its own
 * fields, so an edit of the heading still changes the others. The function prefers no section to a wrong one:
 * without a sure chain of headings (`chains.ts`) it returns the sections of the settings alone.
 *
 * - **Q1** Sections are ordered, disjoint and inside the text. A body lies below its heading.
 * - **Q2** An edit inside a body that adds no heading line changes no other section.
 * - **Q3** The time is linear in the length of the text.
 *
 * The module touches no DOM. `tests/data/sections.json` holds the examples, also for an implementation in Rust.
 */

import { selectHeadings } from "./chains.ts"
import { candidatesIn, headingAt, isBlank, type Heading } from "./headings.ts"
import type { Limit } from "./limits.ts"

/** How much a line break counts. */
export type LineBreak = 0 | 1 | 2
/** `line_break` is `null` for the custom of the unit. */
type Rules = Limit & { line_break: LineBreak | null }
/** In UTF-16 units, without the line break at its end. */
export type Range = { from: number, to: number }
/** The range of its heading; an empty body lies at the end of the heading. */
export type Section = Range & Rules & { title: string, body: Range }
/** For the line with the offset `at`; named as in the API. */
export type Setting = Partial<Rules> & { at: number, title?: string, question?: boolean }

const UNSAID: Rules = { unit: "spaces", limit: null, floor: null, line_break: null }

/** The sections of a text whose line breaks are `\n`. */
export function findSections(text: string, settings: readonly Setting[] = []): Section[] {
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

function startsOf(lines: readonly string[]) {
  let at = 0
  return lines.map((line) => {
    const start = at
    at += line.length + 1
    return start
  })
}

/** The index of the line that contains an offset. */
function lineAt(starts: readonly number[], offset: number) {
  let [low, high] = [0, starts.length]
  while (1 < high - low) {
    const middle = (low + high) >> 1
    if ((starts[middle] ?? 0) <= offset) low = middle
    else high = middle
  }
  return low
}

/** The headings that no setting excludes, and those that only a setting names. */
function withSettings(lines: readonly string[], found: readonly Heading[], settingByLine: ReadonlyMap<number, Setting>) {
  const linesOfHeadings = new Set(found.flatMap(({ first, last }) => indices(first, last)))
  const marked = [...settingByLine]
    .filter(([line, { question }]) => question !== false && !linesOfHeadings.has(line) && !isBlank(lines[line]))
    .map(([line]) => headingAt(lines, line))
  const headings = found.filter((heading) => settingOf(heading, settingByLine)?.question !== false)
  return disjoint([...headings, ...marked].sort((one, other) => one.first - other.first))
}

/** Drops a marked line on which the heading above it continues. */
function disjoint(headings: readonly Heading[]) {
  let end = -1
  return headings.filter(({ first, last }) => {
    if (first <= end) return false
    end = last
    return true
  })
}

function settingOf({ first, last }: Heading, settingByLine: ReadonlyMap<number, Setting>) {
  const line = indices(first, last).find((line) => settingByLine.has(line))
  return line === undefined ? undefined : settingByLine.get(line)
}

const indices = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, at) => first + at)

/** @param next the line of the next heading */
function sectionOf(
  lines: readonly string[],
  starts: readonly number[],
  { first, last, limit }: Heading,
  next: number,
  setting: Setting | undefined,
): Section {
  const { at: _, question: __, ...set } = setting ?? {}
  const title = lines[first]?.trim().normalize("NFC") ?? ""
  let [top, bottom] = [last + 1, next - 1]
  while (top <= bottom && isBlank(lines[top])) top++
  while (top <= bottom && isBlank(lines[bottom])) bottom--
  const heading = rangeOf(lines, starts, first, last)
  const body = top <= bottom ? rangeOf(lines, starts, top, bottom) : { from: heading.to, to: heading.to }
  return { ...heading, title, ...UNSAID, ...limit, ...set, body }
}

function rangeOf(lines: readonly string[], starts: readonly number[], first: number, last: number): Range {
  return { from: starts[first] ?? 0, to: (starts[last] ?? 0) + (lines[last]?.length ?? 0) }
}
