// @ts-check
/** The invariants of a rest, with nothing on its way: pure, over what both pages show and what the server has. */

/**
 * @typedef {import("./fuzz_page.mjs").Seen} Seen
 * @typedef {import("./fuzz_page.mjs").Piece} Piece
 * @typedef {{ text: string, accepted: string, open: { id: string, state: string, parts: string[] }[] }} Served
 * @typedef {{ writer: Seen, reviewer: Seen, served: Served }} Found
 * @typedef {{ what: string, seen: string, wanted: string }} Fault
 */

/** The text without suggestions, as it is drawn. @param {readonly Piece[]} pieces */
export const baseOf = (pieces) => joined(pieces, ({ kind }) => kind !== "new")

/** The text with all suggestions that a page calls acceptable. @param {readonly Piece[]} pieces */
export const acceptedOf = (pieces) => joined(pieces, ({ kind }) => kind !== "old")

/** The text of the reviewer's editor, as it is drawn: the own new words are in it. @param {Seen} seen */
const viewOf = ({ pieces }) => joined(pieces, ({ kind }) => kind !== "old")

/** @param {readonly Piece[]} pieces @param {(piece: Piece) => boolean} has */
const joined = (pieces, has) => pieces.filter(has).map(({ text }) => text).join("")

/** Half of a pair, the sign for one, and controls but the tab: none is in a text. */
const BROKEN = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]|\ufffd|[\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]/

/** @param {Found} found @param {readonly string[]} without groups of acts and checks @returns {Fault[]} */
export function faultsOf({ writer, reviewer, served }, without) {
  /** @type {Fault[]} */
  const faults = []
  const same = (/** @type {string} */ what, /** @type {string} */ seen, /** @type {string} */ wanted) => {
    if (seen !== wanted) faults.push({ what, seen, wanted })
  }
  for (const [role, seen] of Object.entries({ writer, reviewer })) {
    same(`the ${role}'s page says`, seen.saved, "saved")
    if (seen.offered === "") same(`the ${role}'s browser stores rows`, String(seen.stored), "0")
    same(`the ${role}'s notice`, seen.notice, "")
    same(`marks of the ${role} without a card`, seen.dangling, "")
    same(`the ${role}'s Y.Text, beside the server's text`, seen.shared, served.text)
    same(`the ${role}'s base, beside the Y.Text`, seen.base, seen.shared)
    same(`the ${role}'s editor, beside base and overlay`, seen.editor, seen.overlaid)
    same(`the ${role}'s drawn base`, baseOf(seen.pieces), seen.base)
    same(`the ${role}'s drawn acceptance, beside the server's`, acceptedOf(seen.pieces), served.accepted)
    same(`cards of the ${role}`, seen.cards.map((card) => cardOf(card, without)).join("\n"), served.open.map((card) => cardOf(card, without)).sort().join("\n"))
  }
  same("the reviewer's drawn view", viewOf(reviewer), reviewer.editor)
  const broken = BROKEN.exec(served.text)
  if (broken) faults.push({ what: "a letter that is none", seen: JSON.stringify(served.text.slice(Math.max(broken.index - 4, 0), broken.index + 4)), wanted: "" })
  return faults
}

/** @param {{ id: string, state: string }} review @param {readonly string[]} without */
const cardOf = ({ id, state }, without) => `${id} ${classOf(state, without)}`

/** The state of a review; `states`: whether it stands. @param {string} state @param {readonly string[]} without */
function classOf(state, without) {
  if (!without.includes("states")) return state
  return state === "exact" || state === "moved" ? "stands" : "stands not"
}

/** The faults of a reload. @param {Seen} before @param {Seen} after @param {readonly string[]} without @returns {Fault[]} */
export function reloadFaults(before, after, without) {
  const pieces = (/** @type {Seen} */ seen) => seen.pieces.map(({ kind, id, text }) => `${kind} ${id}: ${JSON.stringify(text)}`).join("\n")
  // A card far from the window has its words only.
  const drawn = (/** @type {Seen} */ seen) => new Set(seen.cards.flatMap(({ id, state, text }) => (text === null || classOf(state, without) === "stands not" ? [] : [id])))
  const [first, second] = [drawn(before), drawn(after)]
  const cards = (/** @type {Seen} */ seen) => seen.cards.map((card) => `${cardOf(card, without)}: ${first.has(card.id) && second.has(card.id) ? card.text : ""}`).join("\n")
  return [pieces, cards].flatMap((shown) => {
    const [wanted, seen] = [shown(before), shown(after)]
    return wanted === seen ? [] : [{ what: "after the reload", seen, wanted }]
  })
}

/** Where two texts differ, with a little of what stands around. @param {string} seen @param {string} wanted */
export function difference(seen, wanted) {
  let from = 0
  while (from < Math.min(seen.length, wanted.length) && seen[from] === wanted[from]) from += 1
  let behind = 0
  while (behind < Math.min(seen.length, wanted.length) - from && seen.at(-1 - behind) === wanted.at(-1 - behind)) behind += 1
  const around = (/** @type {string} */ text) => JSON.stringify(text.slice(Math.max(from - 12, 0), text.length - behind + 12))
  return `at ${from}: seen ${around(seen)}\n${" ".repeat(String(from).length)}  wanted ${around(wanted)}`
}
