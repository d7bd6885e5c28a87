// @ts-check
/**
 * The limits of a suggestion, and how longer ones are divided. The server refuses what is over them.
 *
 * A part that is too long becomes several that touch, cut behind paragraphs. They stay one suggestion, so that
 * the writer decides once; a suggestion that is too long itself becomes several, which share a group.
 */

import { isGraphemeBreak } from "./words.js"

/** @typedef {import("./parts.js").Part} Part */

const PARTS_MAX = 64
/** The longest quote, in UTF-16 units. */
const QUOTE_MAX = 20_000
/** The longest text, in bytes of UTF-8. */
const TEXT_MAX = 65_536
/** A unit has at most three bytes in UTF-8. */
const TEXT_PIECE = Math.floor(TEXT_MAX / 3)
/** The quotes and texts of a suggestion, in UTF-16 units: an item of a batch has at most a mebibyte. */
const UNITS_MAX = 300_000

const encoder = new TextEncoder()

/**
 * The suggestions that one is divided into; itself, where it is within the limits.
 *
 * @param {readonly Part[]} parts @returns {Part[][]}
 */
export function divided(parts) {
  /** @type {Part[][]} */
  const found = []
  let [last, units] = [/** @type {Part[]} */ ([]), 0]
  for (const part of parts.flatMap(cutPart)) {
    const size = part.quote.length + part.text.length
    if (last.length === 0 || last.length === PARTS_MAX || UNITS_MAX < units + size) {
      units = 0
      found.push((last = []))
    }
    last.push(part)
    units += size
  }
  return found
}

/** @param {Part} part @returns {Part[]} */
function cutPart(part) {
  const quotes = part.quote.length <= QUOTE_MAX ? [part.quote] : cutText(part.quote, QUOTE_MAX)
  const texts = isShort(part.text) ? [part.text] : cutText(part.text, TEXT_PIECE)
  let start = part.start
  return Array.from({ length: Math.max(quotes.length, texts.length) }, (_, index) => {
    const [quote = "", text = ""] = [quotes[index], texts[index]]
    const end = start + quote.length
    const cut = { start, end, quote, text }
    start = end
    return cut
  })
}

/** @param {string} text */
const isShort = (text) => text.length <= TEXT_PIECE || encoder.encode(text).length <= TEXT_MAX

/** @param {string} text @param {number} max in UTF-16 units */
function cutText(text, max) {
  /** @type {string[]} */
  const pieces = []
  let from = 0
  while (max < text.length - from) {
    const paragraph = text.lastIndexOf("\n", from + max - 1) + 1
    let to = from < paragraph ? paragraph : from + max
    while (!isGraphemeBreak(text, to)) to--
    // A grapheme of so many letters is no text.
    if (to <= from) to = from + max
    pieces.push(text.slice(from, to))
    from = to
  }
  return [...pieces, text.slice(from)]
}
