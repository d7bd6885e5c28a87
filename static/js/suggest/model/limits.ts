/**
 * The limits of a suggestion, and how longer ones are divided. The server refuses what is over them.
 *
 * A part that is too long becomes several that touch, cut behind paragraphs. They stay one suggestion, so that
 * the writer decides once; a suggestion that is too long itself becomes several, which share a group. A position
 * has the gaps of one suggestion, so the server refuses an insertion that is too long for one.
 */

import type { Part } from "./parts.ts"
import { isGraphemeBreak } from "./words.ts"

const PARTS_MAX = 64
/** The longest quote, in UTF-16 units. */
const QUOTE_MAX = 20_000
/** The longest text, in bytes of UTF-8. */
const TEXT_MAX = 65_536
/** A unit has at most three bytes in UTF-8. */
const TEXT_PIECE = Math.floor(TEXT_MAX / 3)
/** The quotes and texts of a suggestion, in bytes of UTF-8: the server has room for remarks and replies beside them. */
const BYTES_MAX = 240_000

const encoder = new TextEncoder()

/** The suggestions that one is divided into; itself, where it is within the limits. */
export function divided(parts: readonly Part[]): Part[][] {
  const found: Part[][] = []
  let [last, bytes] = [[] as Part[], 0]
  for (const inseparable of bound(parts.flatMap(cutPart))) {
    const size = inseparable.reduce((sum, { quote, text }) => sum + bytesOf(quote) + bytesOf(text), 0)
    if (last.length === 0 || PARTS_MAX < last.length + inseparable.length || BYTES_MAX < bytes + size) {
      bytes = 0
      found.push((last = []))
    }
    last.push(...inseparable)
    bytes += size
  }
  return found
}

/** Gaps at one position stay together. */
function bound(parts: readonly Part[]) {
  const found: Part[][] = []
  for (const part of parts) {
    const last = found.at(-1)
    if (part.quote === "" && last?.[0]?.quote === "" && last[0].start === part.start) last.push(part)
    else found.push([part])
  }
  return found
}

const bytesOf = (text: string) => encoder.encode(text).length

function cutPart(part: Part): Part[] {
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

const isShort = (text: string) => text.length <= TEXT_PIECE || bytesOf(text) <= TEXT_MAX

/** @param max in UTF-16 units */
function cutText(text: string, max: number) {
  const pieces: string[] = []
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
