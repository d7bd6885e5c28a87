// @ts-check
/**
 * This module reads the limit of a heading: `(1,000자 이내, 공백 제외)`, `500~700자`, `최소 500자`, `700byte`.
 *
 * The parser joins all amounts of the heading to one limit and one floor. It returns nothing for amounts that
 * contradict each other, or that count for a part of the answer (`각 500자`): a meter without a limit misleads
 * less than a wrong limit. `tests/data/sections.json` holds the examples.
 *
 * The patterns use no lookbehind, because Safari parses it only from 16.4 on.
 */

/**
 * @typedef {"spaces" | "no-spaces" | "utf8" | "euc-kr" | "neis"} Unit
 * @typedef {{ limit: number | null, floor: number | null }} Bounds the largest and the smallest count that a form accepts
 * @typedef {Bounds & { unit: Unit }} Limit
 * @typedef {Bounds & { isBytes: boolean, isPart: boolean, from: number, to: number }} Amount
 */

/** The imperative of a form: `기술하시오`, `작성해 주시기 바랍니다`. */
export const DEMAND = /(?:기술|서술|작성|설명|소개|제시|적어|써|말씀|답변?)[^.?!]{0,20}?(?:시오|시요|세요|바랍니다|바람|요망)/u

// One digit names a part of the subject, as in `제3자` and `한글 2byte`.
const NUMBER = String.raw`(\d{1,3}(?:,\d{3})+|\d{2,5}|\d천)`
const UNIT = String.raw`(글자|자|[Bb]ytes?|BYTES?|바이트)`
const RANGE = String.raw`${NUMBER}\s*${UNIT}?\s*(?:이상)?\s*(?:[~∼〜～–—-]|에서|부터)\s*(?:최대\s*)?`
/** An amount may have the other unit in brackets before its word: `700자(1,400byte) 이내`. */
const WORD = String.raw`(?:\([^()]*\)\s*)?(이내|이하|까지|미만|내외|안팎|정도|이상)`
const AMOUNT = new RegExp(String.raw`(?:(최소|약)\s*)?(?:${RANGE})?${NUMBER}\s*${UNIT}(?:\s*${WORD})?`, "gu")
/** Most lines have no digit before a unit, and the search for amounts is slow. */
const HAS_AMOUNT = /[\d천]\s*(?:글?자|[Bb]yte|BYTE|바이트)/u

/** A heading with more amounts states no single limit. */
const AMOUNTS_MAX = 6

/** The end of the unit: `500자리` is no amount. */
const UNIT_END = /^(?:로|씩|분량|제한|입력|[^\p{L}\p{N}]|$)/u
/** The words before an amount that counts for a part of the answer. */
const PART = /(?:^|[\s([,/])(?:각각?\s*(?:\S{1,4}\s*)?|(?:활동|사례|경험|건|개|편)\s?[별당]\s*)$/u
const BRACKETS = /[^()[\]{}<>〈〉【】〔〕]/gu
/** The words that stand beside the amounts at the end of a heading. */
const NOTES = [
  "공백|띄어쓰기|빈칸|미포함|불포함|포함|제외|없이|최대|최소|총|한글|영문|국문|utf-?8|euc-?kr|neis|나이스",
  String.raw`글자\s?수|제한|분량|입력|가능|기준|(?:작성|기술|서술)(?:할 것|함)?|으?로|씩`,
]
const NOTE = new RegExp(NOTES.join("|"), "giu")
const SPACES = /(?:공백|띄어쓰기|빈칸)[^()\d]{0,8}?(미포함|불포함|포함|제외|없이)/u

/** @param {string} heading @returns {Limit | null} */
export function limitOf(heading) {
  if (!HAS_AMOUNT.test(heading)) return null
  const amounts = amountsOf(heading)
  const [first] = amounts
  if (!first || amounts.some(({ isPart }) => isPart)) return null
  const same = amounts.filter(({ isBytes }) => isBytes === first.isBytes)
  const limits = new Set(same.map(({ limit }) => limit).filter((limit) => limit !== null))
  const floors = new Set(same.map(({ floor }) => floor).filter((floor) => floor !== null))
  if (1 < limits.size || 1 < floors.size) return null
  const [[limit = null], [floor = null]] = [[...limits], [...floors]]
  if (limit !== null && floor !== null && limit < floor) return null
  return { unit: first.isBytes ? byteUnitOf(heading) : characterUnitOf(heading), limit, floor }
}

/** The amounts that the heading states as a limit. @param {string} heading @returns {Amount[]} */
function amountsOf(heading) {
  const matches = [...heading.matchAll(AMOUNT)]
  if (AMOUNTS_MAX < matches.length) return []
  const amounts = matches.flatMap((match) => readAmount(match) ?? [])
  return amounts.filter((amount) => isStatedAsLimit(heading, amount))
}

/** @param {RegExpMatchArray} match @returns {Amount | null} */
function readAmount(match) {
  const [all, before, low, , high, unit = "", word] = match
  const [text, from] = [match.input ?? "", match.index ?? 0]
  const [lead, rest] = [text.slice(0, from), text.slice(from + all.length)]
  if (/[\d,.a-z자]$/i.test(lead) || (!word && !UNIT_END.test(rest))) return null
  const isPart = PART.test(lead) || rest.startsWith("씩")
  return { ...boundsOf(high, low, before, word), isBytes: /^[b바]/i.test(unit), isPart, from, to: from + all.length }
}

/**
 * @param {string | undefined} high @param {string | undefined} low
 * @param {string | undefined} before @param {string | undefined} word
 * @returns {Bounds}
 */
function boundsOf(high, low, before, word) {
  const number = valueOf(high)
  const limit = word === "미만" ? number - 1 : number
  if (low) return { limit, floor: valueOf(low) }
  if (before === "최소" || word === "이상") return { limit: null, floor: number }
  const isAbout = word ? ["내외", "안팎", "정도"].includes(word) : before === "약"
  return isAbout ? { limit: Math.floor((11 * number) / 10), floor: Math.ceil((9 * number) / 10) } : { limit, floor: null }
}

/** @param {string | undefined} number */
const valueOf = (number = "") => Number(number.replaceAll(",", "").replace("천", "000"))

/**
 * A form states a limit in brackets, at the end, or in a demand. Other sentences only mention an amount.
 *
 * @param {string} heading @param {Amount} amount
 */
function isStatedAsLimit(heading, { from, to }) {
  const bracket = heading.slice(0, from).replace(BRACKETS, "").at(-1)
  if ((bracket && "([{<〈【〔".includes(bracket)) || DEMAND.test(heading)) return true
  return !/\p{L}/u.test(heading.slice(to).replace(/\([^()]*\)/g, "").replace(AMOUNT, "").replace(NOTE, ""))
}

/** @param {string} heading @returns {Unit} */
function characterUnitOf(heading) {
  const word = SPACES.exec(heading)?.[1]
  return word === undefined || word === "포함" ? "spaces" : "no-spaces"
}

/** @param {string} heading @returns {Unit} */
function byteUnitOf(heading) {
  if (/neis|나이스/iu.test(heading)) return "neis"
  return /utf-?8|한글[^()]{0,6}3\s*(?:byte|바이트|b)/iu.test(heading) ? "utf8" : "euc-kr"
}
