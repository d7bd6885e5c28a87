// @ts-check
/**
 * This module compares the count of a section's body with its floor and its limit.
 *
 * The page calls `fullnessOf` on two texts, the writer's and the one with all suggestions, each with its own
 * sections. `desk/counts.js` counts; this module selects the unit and weighs the line breaks.
 */

import { countText } from "../desk/counts.js"

/**
 * @typedef {import("./limits.js").Unit} Unit
 * @typedef {import("./sections.js").LineBreak} LineBreak
 * @typedef {import("./sections.js").Section} Section
 * @typedef {"open" | "short" | "full" | "over"} State `open`: neither limit nor floor
 * @typedef {{ count: number, limit: number | null, floor: number | null, state: State }} Fullness
 */

/** For each unit the field of `Counts`, the weight of a line break in that field, and its weight by custom. */
const UNITS = /** @type {const} */ ({
  spaces: { field: "all", counted: 1, custom: 1 },
  "no-spaces": { field: "solid", counted: 0, custom: 0 },
  utf8: { field: "utf8", counted: 1, custom: 1 },
  "euc-kr": { field: "euckr", counted: 1, custom: 1 },
  // The register of schools stores UTF-8 and ends a line by CR and LF.
  neis: { field: "utf8", counted: 1, custom: 2 },
  words: { field: "words", counted: 0, custom: 0 },
})

/** @param {string} text @param {Unit} unit @param {LineBreak | null} [lineBreak] */
export function countIn(text, unit, lineBreak = null) {
  const { field, counted, custom } = UNITS[unit]
  const breaks = text.split("\n").length - 1
  return countText(text)[field] + breaks * ((lineBreak ?? custom) - counted)
}

/** @param {string} text @param {Section} section of this text @returns {Fullness} */
export function fullnessOf(text, { body, unit, limit, line_break, floor: stated }) {
  const count = countIn(text.slice(body.from, body.to), unit, line_break)
  // Readers of cover letters expect four fifths of the limit at least.
  const floor = stated ?? (limit === null ? null : Math.ceil((4 * limit) / 5))
  return { count, limit, floor, state: stateOf(count, floor, limit) }
}

/** @param {number} count @param {number | null} floor @param {number | null} limit @returns {State} */
function stateOf(count, floor, limit) {
  if (limit !== null && limit < count) return "over"
  if (floor !== null && count < floor) return "short"
  return floor === null ? "open" : "full"
}
