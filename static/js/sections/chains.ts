/**
 * This module selects the chain of headings that divides a text into questions.
 *
 * A chain has one style. Its numbers rise by one from 1; marks without numbers form one chain. The candidates of
 * the highest level (`headings.ts`) make the chain, and weaker ones only fill its gaps.
 *
 * The selection prefers no chain to a wrong one: it rejects two possible chains of one style, and two chains of
 * equal evidence. The page then offers the writer to mark the questions. The time is linear in the candidates.
 */

import { isBlank, type Heading } from "./headings.ts"

/** `headings` is empty if several chains of its style are possible. */
type Chain = {
  headings: Heading[], level: number, limits: number, hasBody: boolean, isSetOff: boolean,
  isBracket: boolean, first: number, last: number,
}

/** Marks that enclose a heading. Answers use them for sub-headings. */
const BRACKETS = "<〈【["

export function selectHeadings(lines: readonly string[], candidates: readonly Heading[]): Heading[] {
  const styles: Map<string, Heading[]> = new Map()
  for (const candidate of candidates) {
    const sameStyle = styles.get(candidate.style)
    if (sameStyle) sameStyle.push(candidate)
    else styles.set(candidate.style, [candidate])
  }
  const chains = [...styles.values()].map((sameStyle) => chainOf(lines, sameStyle))
  return selectChain(chains.filter((chain) => chain !== null))?.headings ?? []
}

/** @param chains at most one of each style */
function selectChain(chains: readonly Chain[]) {
  const isInAnswer = (chain: Chain) =>
    chains.some((other) => encloses(other, chain) && chain.level <= other.level)
  let possible = chains.filter((chain) => !isInAnswer(chain))
  for (const score of SCORES) {
    const best = highest(possible.map(score))
    possible = possible.filter((chain) => score(chain) === best)
  }
  const selected = possible.length === 1 ? possible[0] : outermost(possible)
  // Parts of a question may have limits of their own. The last part would then contain the next question.
  return selected && !chains.some((other) => encloses(other, selected)) ? selected : null
}

const SCORES: readonly ((chain: Chain) => number)[] = [({ hasBody }) => Number(hasBody), ({ level }) => level, ({ limits }) => limits]

/** The chain that alone is set off by empty lines, if the others begin below its first heading. */
function outermost(chains: readonly Chain[]) {
  const [selected, ...others] = chains.filter(({ isSetOff }) => isSetOff)
  return others.length === 0 && chains.every(({ first }) => selected && selected.first <= first) ? selected : null
}

/** Whether a chain lies in the sections of another: it is a list, or sub-headings. */
const encloses = (outer: Chain, inner: Chain) =>
  outer.first < inner.first && (inner.last < outer.last || (inner.isBracket && !outer.isBracket))

/** The chain of a style, or `null` without sufficient evidence. */
function chainOf(lines: readonly string[], candidates: readonly Heading[]) {
  const level = highest(candidates.map((candidate) => candidate.level))
  const isMarked = candidates[0]?.number === null
  const headings = isMarked ? markedHeadings(candidates, level) : numberedHeadings(lines, candidates, level)
  const strong = candidates.filter((candidate) => candidate.level === level)
  return isSufficient(headings ?? candidates, level) ? describe(lines, headings ?? [], headings ?? strong, level) : null
}

function isSufficient(headings: readonly Heading[], level: number) {
  const likely = headings.filter((heading) => 0 < heading.level).length
  return level === 3 || (2 <= headings.length && headings.length < 2 * likely)
}

/** @param members the headings, or the candidates of several possible chains */
function describe(lines: readonly string[], headings: Heading[], members: readonly Heading[], level: number): Chain {
  const [first, last] = [members[0], members.at(-1)]
  return {
    headings,
    level,
    limits: limitsIn(members),
    hasBody: hasBody(lines, members),
    isSetOff: members.every(({ isSetOff }) => isSetOff),
    isBracket: BRACKETS.includes(first?.style ?? " "),
    first: first?.first ?? 0,
    last: last?.first ?? 0,
  }
}

function markedHeadings(candidates: readonly Heading[], level: number) {
  const isMixed = level === 3 && BRACKETS.includes(candidates[0]?.style ?? "")
  return candidates.filter((candidate) => !isMixed || 0 < candidate.level)
}

/** The chain with answers and most limits, or `null` if there are two, or none. */
function numberedHeadings(lines: readonly string[], candidates: readonly Heading[], level: number) {
  const chains = chainsIn(candidates, level) ?? []
  const scores = chains.map((chain) => Number(hasBody(lines, chain)) * lines.length + limitsIn(chain))
  const best = highest(scores)
  const [selected, ...others] = chains.filter((_, at) => scores[at] === best)
  if (!selected || 0 < others.length) return null
  // Instructions above a form are a list without answers, and the form begins again with 1.
  const isAlone = candidates.filter(({ number }) => number === 1).length === 1
  return isAlone || hasBody(lines, selected) ? selected : null
}

/** The chains of candidates of a level, one after the other; `null` if one of them has a gap. */
function chainsIn(candidates: readonly Heading[], level: number) {
  const chains: Heading[][] = []
  /** The candidates of lower levels since the last one of the level. */
  let weaker: Heading[] = []
  for (const candidate of candidates) {
    if (candidate.level < level) {
      weaker.push(candidate)
      continue
    }
    if (chains.length === 0 || candidate.number === 1) chains.push([])
    const chain = chains.at(-1) ?? []
    const gap = between(chain.at(-1)?.number ?? 0, weaker, candidate.number ?? 0)
    if (!gap) return null
    chain.push(...gap, candidate)
    weaker = []
  }
  extend(chains.at(-1) ?? [], weaker)
  return chains
}

/** The candidates with the numbers between two numbers, or `null` if they are missing or ambiguous. */
function between(before: number, candidates: readonly Heading[], after: number) {
  const best: Map<number, Heading> = new Map()
  const tied = new Set()
  for (const candidate of candidates) {
    const number = candidate.number ?? 0
    const other = best.get(number)
    if (number <= before || after <= number || (other && candidate.level < other.level)) continue
    if (other?.level === candidate.level) tied.add(other)
    else best.set(number, candidate)
  }
  const headings = [...best.values()].sort((one, other) => one.first - other.first)
  const isChain = headings.every((heading, at) => heading.number === before + at + 1 && !tied.has(heading))
  return isChain && headings.length === after - before - 1 ? headings : null
}

/**
 * Appends the weaker candidates that continue a chain to the end of the text. A number 1 begins a list. Behind
 * it only candidates with more evidence continue the chain.
 */
function extend(chain: Heading[], weaker: readonly Heading[]) {
  let needed = 0
  for (const candidate of weaker) {
    if (candidate.number === 1) needed = Math.max(needed, candidate.level + 1)
    if (candidate.number === (chain.at(-1)?.number ?? 0) + 1 && needed <= candidate.level) chain.push(candidate)
  }
}

/** Whether text stands between two of the headings. A list of questions alone has none. */
function hasBody(lines: readonly string[], headings: readonly Heading[]) {
  if (headings.length === 1) return true
  return headings.some(({ last }, at) => {
    const next = headings[at + 1]?.first ?? 0
    return lines.slice(last + 1, next).some((line) => !isBlank(line))
  })
}

const limitsIn = (headings: readonly Heading[]) => headings.filter(({ limit }) => limit !== null).length

const highest = (numbers: readonly number[]) => numbers.reduce((one, other) => Math.max(one, other), 0)
