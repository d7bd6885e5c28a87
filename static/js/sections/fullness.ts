/**
 * This module compares the count of a section's body with its floor and its limit.
 *
 * The page calls `fullnessOf` on two texts, the writer's and the one with all suggestions, each with its own
 * sections. `desk/counts.ts` counts; this module selects the unit and weighs the line breaks.
 */

import { countText } from "../desk/counts.ts"
import type { Unit } from "./limits.ts"
import type { LineBreak, Section } from "./sections.ts"

/** `open`: neither limit nor floor. */
type State = "open" | "short" | "full" | "over"
export type Fullness = { count: number, limit: number | null, floor: number | null, state: State }

/** For each unit the field of `Counts`, the weight of a line break in that field, and its weight by custom. */
const UNITS = {
  spaces: { field: "all", counted: 1, custom: 1 },
  "no-spaces": { field: "solid", counted: 0, custom: 0 },
  utf8: { field: "utf8", counted: 1, custom: 1 },
  "euc-kr": { field: "euckr", counted: 1, custom: 1 },
  // The register of schools stores UTF-8 and ends a line by CR and LF.
  neis: { field: "utf8", counted: 1, custom: 2 },
  words: { field: "words", counted: 0, custom: 0 },
} as const

export function countIn(text: string, unit: Unit, lineBreak: LineBreak | null = null) {
  const { field, counted, custom } = UNITS[unit]
  const breaks = text.split("\n").length - 1
  return countText(text)[field] + breaks * ((lineBreak ?? custom) - counted)
}

/** @param section of this text */
export function fullnessOf(text: string, { body, unit, limit, line_break, floor: stated }: Section): Fullness {
  const count = countIn(text.slice(body.from, body.to), unit, line_break)
  // Readers of cover letters expect four fifths of the limit at least.
  const floor = stated ?? (limit === null ? null : Math.ceil((4 * limit) / 5))
  return { count, limit, floor, state: stateOf(count, floor, limit) }
}

function stateOf(count: number, floor: number | null, limit: number | null): State {
  if (limit !== null && limit < count) return "over"
  if (floor !== null && count < floor) return "short"
  return floor === null ? "open" : "full"
}
