/**
 * Whether a word, or a grapheme, ends at an offset of a text.
 *
 * The words are those of `wordsOf` in `word_diff.ts`. A segmenter that reads a whole text takes a
 * millisecond for a thousand letters, so these functions read only the letters around the offset.
 */

import { graphemesOf } from "../../lib/graphemes.ts"
import { kindOf } from "../../reviews/word_diff.ts"

/** Letters that join no letter before them and begin no longer grapheme with another of them behind. */
const PLAIN = /^[\n -~ぁ-ゖァ-ヺ一-鿿가-힣]$/

/** A grapheme of more units than this may be cut; flags and families of emoji have at most 14. */
const WINDOW = 256

export function isWordBreak(text: string, at: number) {
  if (at <= 0 || text.length <= at) return true
  const sides = graphemesAround(text, at)
  if (!sides) return false
  const kind = kindOf(sides[0])
  return kind === "single" || kind !== kindOf(sides[1])
}

export const isGraphemeBreak = (text: string, at: number) => at <= 0 || text.length <= at || graphemesAround(text, at) !== null

/** The end of a grapheme before the offset and the grapheme behind it; `null` where it lies inside of one. */
function graphemesAround(text: string, at: number): [string, string] | null {
  const [before, after] = [text.charAt(at - 1), text.charAt(at)]
  if (PLAIN.test(before) && PLAIN.test(after)) return [before, after]
  let from = at - 1
  while (0 < from && at - from < WINDOW && !PLAIN.test(text.charAt(from))) from--
  let last = ""
  for (const grapheme of graphemesOf(text.slice(from, at + WINDOW))) {
    if (from === at) return [last, grapheme]
    if (at < from) return null
    from += grapheme.length
    last = grapheme
  }
  return null
}
