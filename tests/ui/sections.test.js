// @ts-check
/**
 * The questions of a text, their limits and their counts, by the table that a server can share, and by random texts.
 *
 * A line of the table begins with its mark: `H` begins a heading, `h` continues it, `b` is body, `.` is neither.
 * `limits` has a row for each section: limit, floor, unit. `GALLEY_SEED` repeats the random texts of a run.
 */

import assert from "node:assert/strict"
import { readFileSync } from "node:fs"
import { test } from "node:test"

import { countText } from "../../static/js/desk/counts.ts"
import { countIn, fullnessOf } from "../../static/js/sections/fullness.ts"
import { limitOf } from "../../static/js/sections/limits.ts"
import { findSections } from "../../static/js/sections/sections.ts"

/**
 * @typedef {import("../../static/js/sections/sections.ts").Section} Section
 * @typedef {import("../../static/js/sections/sections.ts").Setting} Setting
 * @typedef {import("../../static/js/sections/limits.ts").Unit} Unit
 * @typedef {[limit?: number | null, floor?: number | null, unit?: Unit]} LimitRow
 * @typedef {{ name: string, lines: string[], limits: LimitRow[], settings?: (Omit<Setting, "at"> & { line: number })[] }} Row
 */

const table = JSON.parse(readFileSync(new URL("../data/sections.json", import.meta.url), "utf8"))
const seed = Number(process.env.GALLEY_SEED ?? Math.floor(Math.random() * 2 ** 32))

/** Random texts of a property. */
const ROUNDS = 300

/** @param {number} first a seed */
function numbers(first) {
  let state = first
  return (/** @type {number} */ below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

const MARK = /^[Hhb.] /

/** @param {string[]} lines with their marks */
const textOf = (lines) => lines.map((line) => line.replace(MARK, "")).join("\n")

/** The text with the marks that the sections give it. @param {string} text @param {Section[]} sections */
function marked(text, sections) {
  let start = 0
  return text.split("\n").map((line) => {
    const at = start
    start += line.length + 1
    const has = (/** @type {{ from: number, to: number }} */ { from, to }) => from <= at && at < to
    if (line.trim() === "") return line
    if (sections.some(({ from }) => from === at)) return `H ${line}`
    if (sections.some(has)) return `h ${line}`
    return sections.some(({ body }) => has(body)) ? `b ${line}` : `. ${line}`
  })
}

/** @param {string} text @param {Row["settings"]} settings by line */
function settingsOf(text, settings = []) {
  const lines = text.split("\n")
  return settings.map(({ line, ...setting }) => ({ ...setting, at: lines.slice(0, line).join("\n").length + Math.min(line, 1) }))
}

test("the sections of the table are found, and no others", () => {
  for (const { name, lines, limits, settings } of /** @type {Row[]} */ (table.sections)) {
    const text = textOf(lines)
    const sections = findSections(text, settingsOf(text, settings))
    assert.deepEqual(marked(text, sections), lines, name)
    const rows = limits.map(([limit = null, floor = null, unit = "spaces"]) => ({ limit, floor, unit }))
    assert.deepEqual(sections.map(({ limit, floor, unit }) => ({ limit, floor, unit })), rows, name)
    assertInvariants(text, sections, name)
  }
})

test("a heading states its limit in the spellings of the table", () => {
  for (const [heading, limit = null, floor = null, unit = "spaces"] of table.limits) {
    const isNone = limit === null && floor === null
    assert.deepEqual(limitOf(heading), isNone ? null : { unit, limit, floor }, heading)
  }
})

test("a set-off line of the table is a heading with its limit, or none", () => {
  const found = (/** @type {string} */ line) => findSections(`${line}\n\nan answer\n`).map(({ limit, floor, unit }) => [line, limit, floor, unit])
  for (const [line, ...bounds] of table.headings) {
    const [limit = null, floor = null, unit = "spaces"] = bounds
    assert.deepEqual(found(line), bounds.length === 0 ? [] : [[line, limit, floor, unit]], line)
  }
})

test("words are counted as the foot of the desk counts them", () => {
  const text = "It's 3.5 km – “well-known”, e.g. naïve;\n\nfoo—bar & 물류가 좋습니다"
  assert.equal(countIn(text, "words"), countText(text).words)
})

test("a body counts in each unit as in the table", () => {
  for (const [text, counts] of /** @type {[string, Record<Unit, number>][]} */ (table.counts)) {
    for (const [unit, count] of Object.entries(counts)) {
      assert.equal(countIn(text, /** @type {Unit} */ (unit)), count, `${JSON.stringify(text)} in ${unit}`)
    }
  }
  for (const [text, unit, lineBreak, count] of table.line_breaks) {
    assert.equal(countIn(text, unit, lineBreak), count, `${JSON.stringify(text)} in ${unit}, a break counts ${lineBreak}`)
  }
})

test("a section is short below its floor, or below four fifths of its limit", () => {
  for (const { count, limit, floor, state, shown } of table.fullness) {
    const text = `문항 1\n${"가".repeat(count)}`
    const [section] = findSections(text, [{ at: 0, limit, floor }])
    assert.ok(section)
    assert.deepEqual(fullnessOf(text, section), { count, limit, floor: shown, state }, `${count} of ${limit}, floor ${floor}`)
  }
})

test("two texts show a section with and without suggestions", () => {
  const [without, accepted] = ["1. 지원동기 (10자)\n가나다라마바사아자차카", "1. 지원동기 (10자)\n가나다라마바사아"].map((text) =>
    findSections(text).map((section) => fullnessOf(text, section)),
  )
  assert.deepEqual(without, [{ count: 11, limit: 10, floor: 8, state: "over" }])
  assert.deepEqual(accepted, [{ count: 8, limit: 10, floor: 8, state: "full" }])
})

/** Q1. @param {string} text @param {Section[]} sections @param {string} message */
function assertInvariants(text, sections, message) {
  let end = -1
  for (const { from, to, body, title } of sections) {
    assert.ok(end < from && from < to && to <= body.from && body.from <= body.to && body.to <= text.length, message)
    assert.ok(from === 0 || text[from - 1] === "\n", message)
    assert.ok(body.to === text.length || text[body.to] === "\n", message)
    assert.ok(text.slice(from, to).trimStart().startsWith(title) && title !== "", message)
    const [content, between] = [text.slice(body.from, body.to), text.slice(to, body.from)]
    assert.equal(between.trim(), "", message)
    assert.ok(content === "" || (!isBlank(content.split("\n")[0]) && !isBlank(content.split("\n").at(-1))), message)
    end = Math.max(to, body.to)
  }
}

/** @param {string | undefined} line */
const isBlank = (line) => line?.trim() === ""

test("Q1: sections are ordered, disjoint and inside the text, whatever the text and its settings", () => {
  const lines = /** @type {Row[]} */ (table.sections).flatMap((row) => row.lines.map((line) => line.replace(MARK, "")))
  for (let round = 0; round < ROUNDS; round++) {
    const random = numbers(seed + round)
    const text = Array.from({ length: random(14) }, () => (random(4) === 0 ? "" : lines[random(lines.length)])).join("\n")
    const settings = Array.from({ length: random(4) }, () => ({ at: random(text.length + 1), question: random(3) !== 0, limit: 1 + random(999) }))
    const message = `GALLEY_SEED=${seed}, round ${round}: ${JSON.stringify(text)}`
    assertInvariants(text, findSections(text), message)
    assertInvariants(text, findSections(text, settings), message)
  }
})

const LABELS = [
  (/** @type {number} */ n) => `${n}. `,
  (/** @type {number} */ n) => `${n}) `,
  (/** @type {number} */ n) => `(${n}) `,
  (/** @type {number} */ n) => String.fromCharCode(0x245f + n),
  (/** @type {number} */ n) => `문항 ${n}. `,
  (/** @type {number} */ n) => `[질문 ${n}] `,
  (/** @type {number} */ n) => `Q${n}. `,
  () => "■ ",
  () => "## ",
]
const TITLES = ["지원동기", "자신을 소개해 주십시오.", "나를 움직인 책", "어떤 사람입니까?", "Describe yourself"]
const WORDS = ["저는", "물류가", "좋습니다.", "창고", "🙂", "boxes", "가", "거칩니다.", "👩‍👩‍👧", "한"]
const LIST = ["1. 물류를 좋아합니다.", "2. 사람을 좋아합니다.", "3. 숫자를 좋아합니다."]

/** @param {(below: number) => number} random */
const sentence = (random) => Array.from({ length: 1 + random(12) }, () => WORDS[random(WORDS.length)]).join(" ")

/** A form with a limit in each heading, and its sections. @param {(below: number) => number} random */
function form(random) {
  const label = LABELS[random(LABELS.length)] ?? LABELS[0]
  const sections = Array.from({ length: 1 + random(9) }, (_, at) => {
    const limit = 100 + random(1_900)
    const title = TITLES[random(TITLES.length)]
    const paragraph = () => [sentence(random), LIST.join("\n"), "[손길을 줄이는 사람]"][random(8)] ?? sentence(random)
    const body = [sentence(random), ...Array.from({ length: random(4) }, paragraph)].join(["\n", "\n\n"][random(2)])
    return { title: `${label?.(at + 1)}${title} (${limit}자 이내)`, body: random(6) === 0 ? "" : body, limit }
  })
  const lines = sections.map(({ title, body }) => `${title}${"\n".repeat(1 + random(3))}${body}`)
  return { text: `${random(2) === 0 ? "" : "자기소개서\n\n"}${lines.join("\n".repeat(1 + random(3)))}`, sections }
}

/** @param {string} text */
const readSections = (text) =>
  findSections(text).map(({ title, body, limit }) => ({ title, body: text.slice(body.from, body.to), limit }))

test("every generated form is found, with its limits and bodies", () => {
  for (let round = 0; round < ROUNDS; round++) {
    const { text, sections } = form(numbers(seed + round))
    assert.deepEqual(readSections(text), sections, `GALLEY_SEED=${seed}, round ${round}`)
  }
})

test("Q2: an edit inside a body that adds no heading line changes no other section", () => {
  for (let round = 0; round < ROUNDS; round++) {
    const random = numbers(seed + round)
    let { text } = form(random)
    for (let step = 0; step < 5; step++) {
      const before = findSections(text)
      const edited = random(before.length)
      const section = before[edited]
      const line = section && sentenceIn(random, text, section)
      if (!line) continue
      const at = line.from + random(line.to - line.from)
      const inserted = [sentence(random), `${sentence(random)}\n${sentence(random)}`, `x\n\nx${sentence(random)}`, ""][random(4)]
      const after = `${text.slice(0, at)}${inserted}${text.slice(inserted === "" ? at + 1 : at)}`
      const [old, now] = [readSections(text), readSections(after)]
      const message = `GALLEY_SEED=${seed}, round ${round}: ${JSON.stringify([text, after])}`
      assert.equal(now.length, old.length, message)
      for (const [index, other] of now.entries()) {
        assert.deepEqual(other, { ...old[index], ...(index === edited && { body: other.body }) }, message)
      }
      text = after
    }
  }
})

/** A line of a body without a label. @param {(below: number) => number} random @param {string} text @param {Section} section */
function sentenceIn(random, text, { body }) {
  let start = body.from
  const lines = text.slice(body.from, body.to).split("\n").map((line) => {
    const from = start
    start += line.length + 1
    return { from, to: from + line.length, line }
  })
  const sentences = lines.filter(({ line }) => 1 < line.length && WORDS.some((word) => line.startsWith(word)))
  return sentences[random(sentences.length)]
}

test("Q3: the cost of the search for sections grows with the lines", () => {
  const LINES = 50_000
  const fill = (/** @type {number} */ count, /** @type {(at: number) => string} */ line) => Array.from({ length: count }, (_, at) => line(at)).join("\n")
  /** @type {Record<string, (at: number) => string>} */
  const texts = {
    answers: () => "저는 물류가 좋습니다. 손길이 깁니다.",
    lists: (at) => `${1 + (at % 9)}. 저는 물류가 좋습니다. 손길`,
    headings: () => "1. 지원동기 (500자 이내)     ",
    questions: (at) => (at % 2 === 0 ? "" : `${1 + (at % 99)}. 지원동기를 기술해 주십시오. 이 까닭은 무엇입니까?`),
    brackets: () => "[지원동기 (500자)]        ",
    labels: (at) => (at % 2 === 0 ? "" : "Q1.                                     "),
  }
  // Of the processor, in µs, and the least of several runs: other processes delay the rest.
  const least = (/** @type {string} */ text) =>
    Math.min(...Array.from({ length: 9 }, () => {
      const start = process.cpuUsage()
      findSections(text)
      return process.cpuUsage(start).user
    }))
  for (const [name, line] of Object.entries(texts)) {
    const text = (/** @type {number} */ count) => `1. 지원동기 (500자)\n${fill(count, line)}\n2. 포부 (500자)\n`
    const [few, many] = [least(text(LINES / 10)), least(text(LINES))]
    assert.ok(many < 60 * Math.max(few, 1_000), `${name}: ${many} µs beside ${few} µs`)
  }
})
