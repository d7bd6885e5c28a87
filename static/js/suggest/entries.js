// @ts-check
/** An own suggestion as the reviewer's page has it: the words that were cut last, and how much of it the server has. */

import { hasSameWords, isSame, rangeOf } from "./identity.js"
import { shiftPart, stands } from "./parts.js"
import { meetsOneOf, shares, shiftWhole } from "./ranges.js"

/**
 * @typedef {import("./ranges.js").Mapping} Mapping
 * @typedef {import("../lib/vendor.js").Text} Text
 * @typedef {import("../reviews/word_diff.js").Range} Range
 * @typedef {import("./parts.js").Part} Part
 * @typedef {{ id: string, version: number | null, since: string, parts: Part[], pinned: boolean }} Suggestion the server has none
 *   of it yet without a version; `since`: the server's `created_at`, once it came; one with a remark or replies is pinned
 *
 * @typedef {object} Progress
 * @property {Part[] | null} stored the parts of the acknowledged version
 * @property {Part[] | null} sent those of a batch that has no answer yet, or lost it
 * @property {number | null} tried the version in that batch; an event may bring a newer one before the answer
 * @property {"stored" | "due" | "sent" | "refused"} state
 * @property {boolean} isTouched the reviewer typed in it since the page cut its words
 * @property {boolean} isOutdated the writer changed other letters of a quote, or deleted the letter to which the server anchors a gap
 * @property {Range[] | null} sites of each part, the text that the writer has put in its position
 * @property {string} [group] of the pieces of a longer one
 *
 * @typedef {Suggestion & Progress} Entry
 */

/** @param {Suggestion} suggestion that the server has @returns {Entry} */
export function entryOf({ id, version, since, parts: given, pinned }) {
  const parts = copied(given)
  const progress = { stored: parts, sent: null, tried: null, isTouched: false, isOutdated: false, sites: null }
  return { id, version, since, parts, pinned, state: "stored", ...progress }
}

/** An entry moves its parts with the text. @param {readonly Part[]} parts */
export const copied = (parts) => parts.map((part) => ({ ...part }))

/** Follows an edit of the base. @param {Entry} entry @param {Mapping} map */
export function shiftEntry(entry, map) {
  for (const part of entry.parts) shiftPart(part, map)
  // A fulfilled part of the list is in both.
  for (const part of entry.stored ?? []) if (!entry.parts.includes(part)) shiftPart(part, map)
  entry.sites = entry.sites?.map((site) => shiftWhole(site, map)) ?? null
}

/** New words. @param {Entry} entry @param {Part[]} parts @param {string} [group] */
export function amend(entry, parts, group) {
  // The reviewer may have typed the stored words again before the others were sent.
  entry.state = entry.stored && isSame(entry.stored, parts) ? "stored" : "due"
  entry.parts = parts
  if (entry.state === "stored") entry.stored = parts
  entry.isOutdated = false
  entry.sites = null
  entry.group = group
}

/**
 * The parts of an entry as both texts have them now. Its gaps keep their words: others may stand at the same offset.
 *
 * @param {Entry} entry @param {import("./overlay.js").Overlay} overlay
 */
export const readAgain = ({ parts }, overlay) =>
  parts.map((part) => (part.quote === "" ? { ...part } : overlay.partOf(rangeOf(part))))

/** @param {readonly Part[]} ones @param {readonly Part[] | null} others */
export const hasWordsOf = (ones, others) => ones.length === others?.length && ones.every((part, at) => hasSameWords(part, others[at]))

/**
 * The parts of a hidden entry where the writer may have typed the letters of their quotes again; `null`: one has none.
 *
 * @param {Entry} entry @param {Text} base
 */
export function retyped(entry, base) {
  const parts = sitesOf(entry).map(({ from, to }, index) => {
    const part = /** @type {Part} */ (entry.parts[index])
    return part.quote !== "" && base.sliceString(from, to) === part.quote ? { ...part, start: from, end: to } : part
  })
  return parts.every((part) => stands(base, part)) ? parts : null
}

/** @param {Entry} entry */
export const sitesOf = ({ sites, parts }) => sites ?? parts.map(rangeOf)

/** Whether some ranges of the base, in order, have a letter of an entry or touch it. @param {readonly Range[]} inOrder @returns {(entry: Entry) => boolean} */
export function touchesOneOf(inOrder) {
  const isTouched = meetsOneOf(inOrder)
  return (entry) => sitesOf(entry).some(isTouched)
}

/** Whether the text has the words of an entry where it suggests them, beside others. @param {Entry} entry @param {Text} base */
export const isArrived = (entry, base) =>
  sitesOf(entry).every(({ from, to }, index) => {
    const now = base.sliceString(from, to)
    const { quote = "" } = entry.parts[index] ?? {}
    // The server accepted the version that it has: the reviewer may have typed on since.
    const texts = [entry.stored, entry.parts].flatMap((parts) => parts?.[index]?.text ?? [])
    return now !== quote && texts.some((text) => (text === "" ? !now.includes(quote) : now.includes(text)))
  })

/** Whether the server has all words that the reviewer typed in a suggestion. @param {Entry} entry */
export const isStoredWhole = ({ state, isTouched }) => state === "stored" && !isTouched

/** Whether the server has all words of a suggestion, which it may have to anchor anew. @param {Entry} entry */
export const isServedWhole = ({ state, isTouched, stored, parts }) => state !== "sent" && !isTouched && hasWordsOf(parts, stored)

/** Whether an edit changes letters of a quote. @param {Entry} entry @param {readonly Range[]} ranges of the base */
export const isChanged = ({ parts }, ranges) => parts.some((part) => ranges.some((range) => shares(range, rangeOf(part))))

/** Whether some ranges have the letter behind a gap. @param {Entry} entry @param {readonly Range[]} ranges */
export const losesAnchor = ({ parts }, ranges) =>
  parts.some(({ start, end }) => start === end && ranges.some(({ from, to }) => from <= start && start < to))

/** Whether the writer has put in what an entry suggests, letter by letter. @param {Entry} entry @param {Text} base */
export const isTyped = (entry, base) =>
  sitesOf(entry).every(({ from, to }, index) => base.sliceString(from, to) === entry.parts[index]?.text)

/**
 * Whether the writer deletes all quotes and the letters around all gaps of an entry. An edit that puts other letters in
 * exactly for a quote edits it.
 *
 * @param {Entry} entry @param {import("../lib/vendor.js").ChangeSet} edit of the base
 */
export function isGone({ parts }, edit) {
  /** @type {(Range & { isDeletion: boolean })[]} */
  const changed = []
  edit.iterChangedRanges((from, to, newFrom, newTo) => changed.push({ from, to, isDeletion: newFrom === newTo }))
  return parts.every(({ start, end }) =>
    changed.some(({ from, to, isDeletion }) => {
      if (start === end) return from < start && start < to
      return from <= start && end <= to && (isDeletion || to - from !== end - start)
    }),
  )
}
