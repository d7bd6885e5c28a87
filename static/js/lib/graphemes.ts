/**
 * Graphemes: what a reader would call characters, however many code points they are made of.
 *
 * Imports nothing and touches no DOM, so it is tested with `node --test`.
 */

/** How much is segmented at once, in UTF-16 units. */
const PIECE = 1_024

const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" })

/**
 * The graphemes of a text, in order.
 *
 * Piece by piece, since V8's segmenter takes a time that grows with the square of its text: 20 s for
 * 80,000 characters in one go. Where one grapheme ends and the next begins depends on nothing before
 * the one and nothing behind the other, so each piece begins where the last grapheme of the piece
 * before it began, which may have been cut.
 */
export function* graphemesOf(text: string): Generator<string, void> {
  let at = 0
  let length = PIECE
  while (at < text.length) {
    const end = text.length <= at + length ? text.length : between(text, at + length)
    const found = Array.from(segmenter.segment(text.slice(at, end)), ({ segment }) => segment)
    const cut = end === text.length ? "" : (found.pop() ?? "")
    yield* found
    at = end - cut.length
    // A grapheme can be longer than a piece: letters with a thousand accents are.
    length = found.length === 0 ? 2 * length : PIECE
  }
}

/** The end of the code point that `at` is inside of: half of one joins nothing. */
const between = (text: string, at: number) => (/[\udc00-\udfff]/.test(text.charAt(at)) ? at + 1 : at)
