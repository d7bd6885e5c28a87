// @ts-check
/**
 * What a suggestion changes, word by word.
 *
 * Words are what stands between spaces, so that a Korean eojeol (a noun with its particle) stays
 * whole; spaces and punctuation marks are words of their own. Where one word replaces one word and
 * both begin or end alike, only the middle is marked: `회사는 → 회사가` shows `는 → 가`.
 *
 * Imports nothing and touches no DOM, so it is tested with `node --test`.
 */

/**
 * @typedef {"same" | "removed" | "added"} Kind
 * @typedef {{ kind: Kind, text: string }} Piece
 */

/** Beyond this many comparisons the middle is shown as one removed and one added piece. */
const COMPARISONS_MAX = 4_000_000

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" })

/** @param {string} text @returns {string[]} words, runs of white space, single marks */
export function wordsOf(text) {
  /** @type {string[]} */
  const found = []
  let previous = ""
  for (const { segment } of graphemes.segment(text)) {
    const kind = /^\s/.test(segment) ? "space" : /^[\p{L}\p{N}\p{M}'’]/u.test(segment) ? "word" : "mark"
    if (kind === previous && kind !== "mark") found.push(`${found.pop() ?? ""}${segment}`)
    else found.push(segment)
    previous = kind
  }
  return found
}

/**
 * @param {string} before
 * @param {string} after
 * @returns {Piece[]} in reading order; removed before added
 */
export function wordDiff(before, after) {
  const [from, to] = [wordsOf(before), wordsOf(after)]
  const shorter = Math.min(from.length, to.length)
  let head = 0
  while (head < shorter && from[head] === to[head]) head++
  let tail = 0
  while (tail < shorter - head && from.at(-1 - tail) === to.at(-1 - tail)) tail++

  /** @type {Piece[]} */
  const pieces = []
  push(pieces, "same", from.slice(0, head).join(""))
  for (const piece of middle(from.slice(head, from.length - tail), to.slice(head, to.length - tail))) {
    push(pieces, piece.kind, piece.text)
  }
  push(pieces, "same", from.slice(from.length - tail).join(""))
  return refine(joinAcrossSpaces(pieces))
}

/**
 * Longest common subsequence of the words.
 *
 * @param {string[]} from
 * @param {string[]} to
 * @returns {Piece[]}
 */
function middle(from, to) {
  if (COMPARISONS_MAX < from.length * to.length) {
    return [
      { kind: "removed", text: from.join("") },
      { kind: "added", text: to.join("") },
    ]
  }
  const width = to.length + 1
  const lengths = new Uint32Array((from.length + 1) * width)
  const length = (/** @type {number} */ i, /** @type {number} */ j) => lengths[i * width + j] ?? 0
  for (let i = from.length - 1; 0 <= i; i--) {
    for (let j = to.length - 1; 0 <= j; j--) {
      lengths[i * width + j] =
        from[i] === to[j] ? length(i + 1, j + 1) + 1 : Math.max(length(i + 1, j), length(i, j + 1))
    }
  }
  /** @type {Piece[]} */
  const pieces = []
  let [i, j] = [0, 0]
  while (i < from.length || j < to.length) {
    if (i < from.length && j < to.length && from[i] === to[j]) {
      pieces.push({ kind: "same", text: from[i++] ?? "" })
      j++
    } else if (j === to.length || (i < from.length && length(i, j + 1) <= length(i + 1, j))) {
      pieces.push({ kind: "removed", text: from[i++] ?? "" })
    } else {
      pieces.push({ kind: "added", text: to[j++] ?? "" })
    }
  }
  return pieces
}

/**
 * A lone space between two changes would chop a phrase into confetti: it joins both sides.
 *
 * @param {Piece[]} pieces
 * @returns {Piece[]}
 */
function joinAcrossSpaces(pieces) {
  /** @type {Piece[]} */
  const joined = []
  let removed = ""
  let added = ""
  const flush = () => {
    push(joined, "removed", removed)
    push(joined, "added", added)
    removed = ""
    added = ""
  }
  for (const [at, piece] of pieces.entries()) {
    const last = at === pieces.length - 1
    const bridge = piece.kind === "same" && /^[^\S\n]+$/.test(piece.text) && !last
    if (piece.kind === "removed") removed += piece.text
    else if (piece.kind === "added") added += piece.text
    else if (bridge && removed !== "" && added !== "") {
      removed += piece.text
      added += piece.text
    } else {
      flush()
      push(joined, "same", piece.text)
    }
  }
  flush()
  return joined
}

/**
 * Narrows one word replaced by one word to what differs between them.
 *
 * @param {Piece[]} pieces
 * @returns {Piece[]}
 */
function refine(pieces) {
  /** @type {Piece[]} */
  const refined = []
  for (let at = 0; at < pieces.length; at++) {
    const [removed, added] = [pieces[at], pieces[at + 1]]
    if (removed?.kind === "removed" && added?.kind === "added" && isPair(removed.text, added.text)) {
      for (const piece of insideWord(removed.text, added.text)) push(refined, piece.kind, piece.text)
      at++
    } else if (removed) {
      push(refined, removed.kind, removed.text)
    }
  }
  return refined
}

/** Hangul only: an English word with a marked middle is harder to read than a whole one. */
const isPair = (/** @type {string} */ before, /** @type {string} */ after) =>
  [before, after].every((word) => /^[^\s]*\p{Script=Hangul}[^\s]*$/u.test(word))

/** @param {string} before @param {string} after @returns {Piece[]} */
function insideWord(before, after) {
  const [from, to] = [before, after].map((word) => [...graphemes.segment(word)].map((s) => s.segment))
  if (!from || !to) return []
  const shorter = Math.min(from.length, to.length)
  let head = 0
  while (head < shorter && from[head] === to[head]) head++
  let tail = 0
  while (tail < shorter - head && from.at(-1 - tail) === to.at(-1 - tail)) tail++
  return [
    { kind: "same", text: from.slice(0, head).join("") },
    { kind: "removed", text: from.slice(head, from.length - tail).join("") },
    { kind: "added", text: to.slice(head, to.length - tail).join("") },
    { kind: "same", text: from.slice(from.length - tail).join("") },
  ]
}

/** @param {Piece[]} pieces @param {Kind} kind @param {string} text */
function push(pieces, kind, text) {
  if (text === "") return
  const last = pieces.at(-1)
  if (last?.kind === kind) last.text += text
  else pieces.push({ kind, text })
}
