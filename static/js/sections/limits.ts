/**
 * This module reads the limit of a heading: `(1,000자 이내, 공백 제외)`, `500~700자`, `최소 500자`, `700byte`, `(max. 300 words)`.
 *
 * The parser joins all amounts of the heading to one limit and one floor. It returns nothing for amounts that
 * contradict each other, or that count for a part of the answer (`각 500자`): a meter without a limit misleads
 * less than a wrong limit. `tests/data/sections.json` holds the examples.
 *
 * The patterns use no lookbehind, because Safari parses it only from 16.4 on.
 */

export type Unit = "spaces" | "no-spaces" | "utf8" | "euc-kr" | "neis" | "words"
/** The largest and the smallest count that a form accepts. */
type Bounds = { limit: number | null, floor: number | null }
export type Limit = Bounds & { unit: Unit }
type Amount = Bounds & { kind: "characters" | "bytes" | "words", isPart: boolean, isQualified: boolean, from: number, to: number }

/** The imperative of a form: `기술하시오`, `작성해 주시기 바랍니다`. */
export const DEMAND = /(?:기술|서술|작성|설명|소개|제시|적어|써|말씀|답변?)[^.?!]{0,20}?(?:시오|시요|세요|바랍니다|바람|요망)/u

/** The imperative of an English form. */
export const IMPERATIVE = /(?:^|[.,:;?!)\]–—-]|please)\s*(?:please\s+)?(?:describe|explain|discuss|tell\s+us|write|share|reflect|summari[sz]e|introduce|outline|answer|give|state|respond)(?![a-z])/iu

export const HANGUL = /[가-힣]/u

// One digit names a part of the subject, as in `제3자` and `한글 2byte`.
const NUMBER = String.raw`(\d{1,3}(?:,\d{3})+|\d{2,5}|\d천)`
const UNIT = String.raw`(글자|자|단어|bytes?|바이트|words?|characters?|chars?)`
const FLOOR = String.raw`최소|\b(?:min(?:imum)?\.?(?:\s+of)?|at\s+least|(?:no|not)\s+(?:fewer|less)\s+than)`
const ABOUT = String.raw`약|\b(?:about|around|roughly|approx(?:imately|\.)?)`
const BELOW = String.raw`\b(?:under|below|(?:less|fewer)\s+than)`
const UPPER = String.raw`최대|≤|\b(?:max(?:imum)?\.?(?:\s+of)?|up\s+to|at\s+most|within|(?:no|not)\s+(?:more|longer)\s+than|not\s+(?:to\s+)?exceed(?:ing)?|limit(?:ed)?(?:\s+(?:of|to|is))?):?`
const BEFORE = String.raw`(?:(${FLOOR}|${ABOUT}|${BELOW}|${UPPER})\s*)?`
const RANGE = String.raw`${NUMBER}\s*${UNIT}?\s*(?:이상)?\s*(?:[~∼〜～–—-]|에서|부터|to|and)\s*(?:최대\s*)?`
/** An amount may have the other unit in brackets before its word: `700자(1,400byte) 이내`. */
const WORD = String.raw`(?:\([^()]*\)\s*)?(이내|이하|까지|미만|내외|안팎|정도|이상|or\s+(?:less|fewer|under|more)|max(?:imum)?|min(?:imum)?|at\s+(?:most|least)|limit)`
const AMOUNT = new RegExp(String.raw`${BEFORE}(?:${RANGE})?${NUMBER}[\s-]*${UNIT}(?:\s*${WORD})?`, "giu")
/** The English order: `word limit: 150`. */
const LABELLED = new RegExp(String.raw`\b(word|character)s?\s+(?:limit|max(?:imum)?\.?)(?:\s+(?:of|is))?\s*[:=]?\s*${NUMBER}(?!\d|\s*(?:word|char|자))`, "giu")
/** Most lines have no digit before a unit, and the search for amounts is slow. */
const HAS_AMOUNT = /[\d천][\s-]*(?:글?자|단어|byte|바이트|word|char)|(?:word|character)s?\s+(?:limit|max)/iu

/** A paragraph, or an instruction about all answers. */
const MORE = /[.!?]["”’)]?\s+(?![([])\S|(?:^|\s)각\s|모든|전체|문항|항목|\b(?:each|every|all|answers|questions|responses)\b/iu

/** A heading with more amounts states no single limit. */
const AMOUNTS_MAX = 6
/** A longer line without a bracket is a sentence, in UTF-16 units. */
const TITLE_MAX = 60

/** The end of the unit: `500자리` is no amount. */
const UNIT_END = /^(?:로|씩|분량|제한|입력|[^\p{L}\p{N}]|$)/u
/** The words before and behind an amount that counts for a part of the answer. */
const PART = /(?:^|[\s([,/])(?:각각?\s*(?:\S{1,4}\s*)?|(?:활동|사례|경험|건|개|편)\s?[별당]\s*|each:?\s*)$/iu
const PART_BEHIND = /^(?:씩|\.?,?\s*(?:each|per|apiece)(?![a-z]))/iu
const BRACKETS = /[^()[\]{}<>〈〉【】〔〕]/gu
/** The words that stand beside the amounts at the end of a heading. */
const NOTES = [
  "공백|띄어쓰기|빈칸|미포함|불포함|포함|제외|없이|최대|최소|총|한글|영문|국문|utf-?8|euc-?kr|neis|나이스",
  String.raw`글자\s?수|제한|분량|입력|가능|기준|(?:작성|기술|서술)(?:할 것|함)?|으?로|씩`,
  String.raw`\b(?:word|character|length|count|limit|total|max(?:imum)?|min(?:imum)?|or|less|fewer|more|at|most|least|up|to|about|in|excl\w*|incl\w*|not|with|without|and|counting|spaces?|required|recommended|suggested|only|required|english|answer|response|essay)s?\b`,
]
const NOTE = new RegExp(NOTES.join("|"), "giu")
const NO_SPACES = /\b(?:without|excl\w*|no|not\s+(?:including|counting))\s+(?:white\s*)?spaces|spaces\s+(?:are\s+)?(?:excluded|not)/iu
const SPACES = /(?:공백|띄어쓰기|빈칸)[^()\d]{0,8}?(미포함|불포함|포함|제외|없이)/u

export function limitOf(heading: string): Limit | null {
  if (!HAS_AMOUNT.test(heading)) return null
  const amounts = amountsOf(heading)
  const [first] = amounts
  if (!first || amounts.some(({ isPart }) => isPart)) return null
  const same = amounts.filter(({ kind }) => kind === first.kind)
  const limits = new Set(same.map(({ limit }) => limit).filter((limit) => limit !== null))
  const floors = new Set(same.map(({ floor }) => floor).filter((floor) => floor !== null))
  if (1 < limits.size || 1 < floors.size) return null
  const [[limit = null], [floor = null]] = [[...limits], [...floors]]
  if (limit !== null && floor !== null && limit < floor) return null
  const unit = first.kind === "words" ? "words" : first.kind === "bytes" ? byteUnitOf(heading) : characterUnitOf(heading)
  return { unit, limit, floor }
}

/**
 * Whether a line without a label is a heading by its limit: one demand with a limit, or words with the limit at the
 * end, in brackets or with the word of a bound.
 */
export function endsWithLimit(line: string) {
  const amounts = HAS_AMOUNT.test(line) ? amountsOf(line) : []
  const [first] = amounts
  if (!first || first.kind === "bytes" || limitOf(line) === null) return false
  const bracket = line.slice(0, first.from).lastIndexOf(openBracketOf(line, first))
  const isBracketed = openBracketOf(line, first) !== "" && /^[^()[\]{}]*[)\]}〉>】〕][\s.*]*$/u.test(line.slice(bracket + 1))
  const before = line.slice(0, isBracketed ? bracket : first.from).trim()
  const isTitle = !/(?:다|[.!])["”’]?$/u.test(before) || DEMAND.test(line) || IMPERATIVE.test(line)
  if ((DEMAND.test(line) || IMPERATIVE.test(line)) && !MORE.test(line)) return true
  const isEnd = isBracketed || (first.isQualified && !hasLetters(line.slice(first.to)) && before.length <= TITLE_MAX)
  return isEnd && isTitle && hasLetters(before)
}

/** Whether words remain beside amounts and notes. */
const hasLetters = (text: string) => /\p{L}/u.test(text.replace(/\([^()]*\)/g, "").replace(LABELLED, "").replace(AMOUNT, "").replace(NOTE, ""))

/** The bracket in which an amount stands, or `""`. */
function openBracketOf(heading: string, { from }: Amount) {
  const bracket = heading.slice(0, from).replace(BRACKETS, "").at(-1) ?? ""
  return "([{<〈【〔".includes(bracket) ? bracket : ""
}

/** The amounts that the heading states as a limit. */
function amountsOf(heading: string): Amount[] {
  const matches = [...heading.matchAll(AMOUNT)]
  if (AMOUNTS_MAX < matches.length) return []
  const amounts = [...matches.flatMap((match) => readAmount(match) ?? []), ...[...heading.matchAll(LABELLED)].map(readLabelled)]
  return amounts.filter((amount) => isStatedAsLimit(heading, amount))
}

function readLabelled({ 0: all, 1: unit = "", 2: number, index: from = 0 }: RegExpMatchArray): Amount {
  const kind = /^w/i.test(unit) ? "words" : "characters"
  return { limit: valueOf(number), floor: null, kind, isPart: false, isQualified: true, from, to: from + all.length }
}

function readAmount(match: RegExpMatchArray): Amount | null {
  const [all, before, low, , high, unit = "", word] = match
  const [text, from] = [match.input ?? "", match.index ?? 0]
  const [lead, rest] = [text.slice(0, from), text.slice(from + all.length)]
  if (/[\d,.a-z자]$/i.test(lead) || (!word && !UNIT_END.test(rest))) return null
  const isPart = PART.test(lead) || PART_BEHIND.test(rest)
  const kind = /^[b바]/i.test(unit) ? "bytes" : /^[w단]/i.test(unit) ? "words" : "characters"
  const isQualified = Boolean(low || before || word)
  return { ...boundsOf(high, low, before, word), kind, isPart, isQualified, from, to: from + all.length }
}

const IS_FLOOR = new RegExp(String.raw`^(?:${FLOOR})$|^(?:이상|or\s+more)$`, "iu")
const IS_ABOUT = new RegExp(String.raw`^(?:${ABOUT})$`, "iu")
const IS_BELOW = new RegExp(String.raw`^(?:${BELOW}|미만)$`, "iu")

function boundsOf(high: string | undefined, low: string | undefined, before: string | undefined = "", word: string | undefined = ""): Bounds {
  const number = valueOf(high)
  const limit = IS_BELOW.test(before) || IS_BELOW.test(word) ? number - 1 : number
  if (low) return { limit, floor: valueOf(low) }
  if (IS_FLOOR.test(before) || IS_FLOOR.test(word)) return { limit: null, floor: number }
  const isAbout = word ? ["내외", "안팎", "정도"].includes(word) : IS_ABOUT.test(before)
  return isAbout ? { limit: Math.floor((11 * number) / 10), floor: Math.ceil((9 * number) / 10) } : { limit, floor: null }
}

const valueOf = (number: string | undefined = "") => Number(number.replaceAll(",", "").replace("천", "000"))

/**
 * A form states a limit in brackets, at the end, or in a demand. Other sentences only mention an amount. In English a
 * sentence also ends with one, so the amount follows a mark, or a bound ends a line without a full stop.
 */
function isStatedAsLimit(heading: string, amount: Amount) {
  if (openBracketOf(heading, amount) || DEMAND.test(heading) || IMPERATIVE.test(heading)) return true
  if (hasLetters(heading.slice(amount.to))) return false
  if (HANGUL.test(heading)) return true
  return /(?:^|[?:.!;,–—/|-])$/u.test(heading.slice(0, amount.from).trim()) || (amount.isQualified && !/\.\s*$/.test(heading))
}

function characterUnitOf(heading: string): Unit {
  if (NO_SPACES.test(heading)) return "no-spaces"
  const word = SPACES.exec(heading)?.[1]
  return word === undefined || word === "포함" ? "spaces" : "no-spaces"
}

function byteUnitOf(heading: string): Unit {
  if (/neis|나이스/iu.test(heading)) return "neis"
  return /utf-?8|한글[^()]{0,6}3\s*(?:byte|바이트|b)/iu.test(heading) ? "utf8" : "euc-kr"
}
