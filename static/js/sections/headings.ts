/**
 * This module collects the lines that may be headings of questions, and weighs their evidence.
 *
 * A label alone proves nothing, because essays, contracts and answers have numbered lists, too. So each candidate
 * carries a level: 3 for a limit or a name (`문항`, `질문`, `항목`, `Q`), 2 for a demand or a question, 1 for a usual
 * topic, 0 for a label alone. A candidate without Hangul gets level 3 for a limit of characters or words, else 0.
 * A line without a label is a candidate if it is set off and ends with its limit.
 *
 * A heading continues on the lines directly below it up to its demand or limit, because forms wrap their
 * questions and put the limit on a line of its own. `chains.ts` selects the headings among the candidates.
 */

import { IMPERATIVE, DEMAND, endsWithLimit, HANGUL, limitOf, type Limit } from "./limits.ts"

type Label = { style: string, number: number | null, isNamed: boolean, isAlone: boolean }
/** `first` and `last` are indices of lines; `isSetOff`: no text stands directly above it. */
export type Heading = {
  style: string, number: number | null, level: number, first: number, last: number,
  limit: Limit | null, isSetOff: boolean,
}

/** A longer line is a paragraph, in UTF-16 units. */
const LINE_MAX = 300
/** A text with more labels is no form. The bound limits the time that a hostile text takes. */
const CANDIDATES_MAX = 1_000
/** A question wraps over so many further lines at most. */
const CONTINUATION_MAX = 3

/** The begin of a label. The check is cheap and rejects most lines. */
const FIRST = /^\s*(?:\*\*|▶)?\s*[\d(①-⑳Ⅰ-ⅫqQeEpPsS문질항에#■□◆◇[<【〈]/u
const NAMED = [
  /^[[<【〈(]?\s*(?<name>문항|질문|항목)\s*0?(?<number>[1-9]\d?)(?:번)?(?![\p{L}\p{N}]|-\d)/u,
  /^[[<【〈(]?\s*0?(?<number>[1-9]\d?)번\s*(?<name>문항|질문|항목)(?![\p{L}\p{N}])/u,
  // A number without a mark behind it may be a quarter: `Q1 매출`.
  /^[[<【〈(]?\s*(?<name>Q)(?:uestion)?\s*\.?\s*0?(?<number>[1-9]\d?)\s*(?:[.):：\]>】〉]|[-–](?!\d)|$)/iu,
  /^[[<【〈(]?\s*(?<name>Question|Essay|Prompt|Short\s+Answer|에세이)\s*[#.]?\s*0?(?<number>[1-9]\d?)\s*(?:[.):：\]>】〉(]|[-–—](?!\d)|$)/iu,
]
/** Each style with its pattern; a style of signs is the sign for 1. */
const NUMBERED: readonly (readonly [string, RegExp])[] = [
  ["1.", /^0?([1-9]\d?)\.(?!\d)/],
  ["1)", /^0?([1-9]\d?)\)/],
  ["(1)", /^\(0?([1-9]\d?)\)/],
  ["[1]", /^\[0?([1-9]\d?)\]/],
  ["①", /^([①-⑳])/u],
  ["Ⅰ", /^([Ⅰ-Ⅻ])/u],
]
const MARKED = [/^(#{1,6})\s+\S/, /^([■□◆◇])\s*\S/u, /^([<〈【[])[^<>〈〉【】[\]="]+[>〉】\]]\s*(?:\([^()]*\))?\**$/u]

const QUESTION = /\?["”’')\]\s*]*(?:\([^()]*\))?\s*$/u
const TOPICS = [
  String.raw`지원\s?(?:동기|이유|사유)|입사\s?(?:동기|후)|포부|(?:학업|연구|진로)\s?계획`,
  String.raw`자기\s?소개|성장\s?(?:과정|배경)|학창\s?시절|학교\s?생활|봉사\s?활동`,
  String.raw`성격|장\s?[·∙,.]?\s?단점|(?:본인|나|자신)의\s?(?:강점|장점)|생활\s?신조|가치관|좌우명`,
  String.raw`직무\s?(?:역량|경험)|(?:갈등|협업|팀워크|리더십|도전|실패|성공|성취|극복)\S*\s?(?:경험|사례)`,
]
const TOPIC = new RegExp(TOPICS.join("|"), "u")
const SENTENCE = /다[.!]?\s*$/u
/** The begin of a note directly below a question: `(500자 이내)`, `※ 공백 포함 1,000자`. */
const NOTE = /^\s*[([<【〈※*]+\s*(?:\d|공백|띄어쓰기|글자|분량|최소|최대|총|약|max|min|up to|no more|at (?:most|least)|limit|word|character|approx|about|within)/iu
/** A note without the word of a bound counts the answer above it. */
const BOUND = /이내|이하|까지|미만|내외|최소|최대|제한|\b(?:max|min|up to|no more|at (?:most|least)|limit|or (?:less|fewer))/iu
const LAST_BRACKET = /\s*[([<【〈][^()[\]]*[)\]】〉>][\s.*]*$/u

/** @returns in the order of the text */
export function candidatesIn(lines: readonly string[]): Heading[] {
  const candidates: Heading[] = []
  for (let at = 0; at < lines.length; at++) {
    const label = labelOf(lines[at] ?? "") ?? limitLabel(lines, at)
    if (!label) continue
    const candidate = headingAt(lines, at, label)
    candidates.push(candidate)
    if (CANDIDATES_MAX < candidates.length) return []
    at = candidate.last
  }
  return withoutLists(candidates)
}

/** The heading that begins in a line, with or without a label. */
export function headingAt(lines: readonly string[], first: number, label: Label | null = labelOf(lines[first] ?? "")): Heading {
  const { last, text, limit } = extentOf(lines, first)
  const evidence = label?.isAlone ? `${text} ${textAfter(lines, last)}` : text
  const above = lines[first - 1]
  // A title often stands directly above the first question.
  const isSetOff = isBlank(above) || (first === 1 && !SENTENCE.test(above ?? ""))
  const { style = "", number = null, isNamed = false } = label ?? {}
  return { style, number, level: levelOf(evidence, isNamed, limit), first, last, limit, isSetOff }
}

/** Whether a line is empty to the eye, or is none. */
export const isBlank = (line: string | undefined) => line === undefined || line.trim() === ""

function labelOf(line: string): Label | null {
  if (LINE_MAX < line.length || !FIRST.test(line)) return null
  const text = line.trim().replace(/^(?:\*\*|▶)\s*/u, "")
  return namedLabel(text) ?? numberedLabel(text) ?? markedLabel(text)
}

function namedLabel(text: string): Label | null {
  for (const pattern of NAMED) {
    const match = pattern.exec(text)
    if (!match?.groups) continue
    const { name = "", number } = match.groups
    return { style: name.toUpperCase(), number: Number(number), isNamed: true, isAlone: isAlone(text, match) }
  }
  return null
}

function numberedLabel(text: string): Label | null {
  for (const [style, pattern] of NUMBERED) {
    const match = pattern.exec(text)
    if (!match) continue
    const [, digits = ""] = match
    const number = /\d/.test(digits) ? Number(digits) : digits.charCodeAt(0) - style.charCodeAt(0) + 1
    return { style, number, isNamed: false, isAlone: isAlone(text, match) }
  }
  return null
}

/** Markup and citations have brackets without Hangul. */
function markedLabel(text: string): Label | null {
  if (!HANGUL.test(text)) return null
  const style = MARKED.map((pattern) => pattern.exec(text)?.[1]).find((style) => style !== undefined)
  return style === undefined ? null : { style, number: null, isNamed: false, isAlone: false }
}

/** A line that is set off and ends with a limit, in it or in a note below it, needs no label. */
function limitLabel(lines: readonly string[], at: number): Label | null {
  const [above, line = "", below = ""] = [lines[at - 1], lines[at], lines[at + 1]]
  const isSetOff = isBlank(above) || at === 1 || /(?:다|요|[.!?])["”’)]?\s*$/u.test(above ?? "")
  if (!isSetOff || LINE_MAX < line.length || isBlank(line)) return null
  const isAbove = NOTE.test(below) && BOUND.test(below) && !endsWithLimit(line) && !SENTENCE.test(line)
  return endsWithLimit(isAbove ? `${line} ${below.trim()}` : line) ? { style: "", number: null, isNamed: false, isAlone: false } : null
}

/** @param label at its start */
const isAlone = (text: string, [label]: RegExpExecArray) => !/[\p{L}\p{N}]/u.test(text.slice(label.length))

/** The last line of a heading, with its whole text and limit. */
function extentOf(lines: readonly string[], first: number) {
  let [last, text] = [first, lines[first] ?? ""]
  let limit = limitOf(text)
  for (let at = first + 1; at <= first + CONTINUATION_MAX && !(limit && DEMAND.test(text)); at++) {
    const line = lines[at] ?? ""
    const label = labelOf(line)
    const isNote = at === last + 1 && NOTE.test(line)
    if (isBlank(line) || LINE_MAX < line.length || (label && (label.number !== null || !isNote))) break
    const start = line.replace(LAST_BRACKET, "")
    const isSentence = SENTENCE.test(start) || (!HANGUL.test(line) && /[.?!:)]\s*$/.test(text))
    const isEnd = start !== line && !isBlank(start) && !isSentence
    const added = !limit && (isNote || isEnd) ? limitOf(line) : null
    const whole = lines.slice(first, at + 1).join(" ")
    if (added || (!DEMAND.test(text) && DEMAND.test(whole))) {
      last = at
      text = whole
      limit = limitOf(text)
    } else if (isSentence || label) break
  }
  return { last, text, limit }
}

/** The next line with text. */
function textAfter(lines: readonly string[], last: number) {
  let at = last + 1
  while (at < lines.length && isBlank(lines[at])) at++
  return lines[at] ?? ""
}

function levelOf(text: string, isNamed: boolean, limit: Limit | null) {
  if (!HANGUL.test(text)) return limit && isEnglishLimit(text, isNamed, limit) ? 3 : 0
  if (isNamed || limit) return 3
  if (DEMAND.test(text) || QUESTION.test(text)) return 2
  return TOPIC.test(text) && !SENTENCE.test(text) ? 1 : 0
}

/** Contracts and reports state bytes. */
const isEnglishLimit = (text: string, isNamed: boolean, { unit }: Limit) =>
  ["spaces", "no-spaces", "words"].includes(unit) && (isNamed || IMPERATIVE.test(text) || QUESTION.test(text) || endsWithLimit(text))

/**
 * Drops the items of lists. A numbered heading needs a demand, a limit, a name or an empty line above it. A
 * candidate without them is an item, and it makes the candidate with the number before it an item.
 */
function withoutLists(candidates: readonly Heading[]) {
  const isItem = ({ number, level, isSetOff }: Heading) => number !== null && level < 2 && !isSetOff
  const beginsList = (heading: Heading, next: Heading | undefined) =>
    next?.style === heading.style &&
    isItem(next) &&
    next.number === (heading.number ?? 0) + 1 &&
    (heading.level < 2 || next.first === heading.last + 1)
  return candidates.filter((heading, at) => !isItem(heading) && !beginsList(heading, candidates[at + 1]))
}
