/** An own suggestion as the reviewer's page has it: the words that were cut last, and how much of it the server has. */

import type { ChangeSet, Text } from "../../lib/vendor.ts"
import type { Range } from "../../reviews/word_diff.ts"
import { hasSameWords, isSame, rangeOf } from "./identity.ts"
import type { Overlay } from "./overlay.ts"
import { shiftPart, stands, type Part } from "./parts.ts"
import { meetsOneOf, shares, shiftWhole, type Mapping } from "./ranges.ts"

/** The server has none of it yet without a version; `since`: the server's `created_at`, once it came; one with a remark or replies is pinned. */
export type Suggestion = { id: string, version: number | null, since: string, parts: Part[], pinned: boolean }

export interface Progress {
  stored: Part[] | null // the parts of the acknowledged version
  sent: Part[] | null // those of a batch that has no answer yet, or lost it
  tried: number | null // the version in that batch; an event may bring a newer one before the answer
  state: "stored" | "due" | "sent" | "refused"
  isTouched: boolean // the reviewer typed in it since the page cut its words
  isOutdated: boolean // the writer changed other letters of a quote, or deleted the letter to which the server anchors a gap
  sites: Range[] | null // of each part, the text that the writer has put in its position
  group?: string // of the pieces of a longer one
}

export type Entry = Suggestion & Progress

/** @param suggestion that the server has */
export function entryOf({ id, version, since, parts: given, pinned }: Suggestion): Entry {
  const parts = copied(given)
  const progress = { stored: parts, sent: null, tried: null, isTouched: false, isOutdated: false, sites: null }
  return { id, version, since, parts, pinned, state: "stored", ...progress }
}

/** An entry moves its parts with the text. */
export const copied = (parts: readonly Part[]) => parts.map((part) => ({ ...part }))

/** Follows an edit of the base. */
export function shiftEntry(entry: Entry, map: Mapping) {
  for (const part of entry.parts) shiftPart(part, map)
  // A fulfilled part of the list is in both.
  for (const part of entry.stored ?? []) if (!entry.parts.includes(part)) shiftPart(part, map)
  entry.sites = entry.sites?.map((site) => shiftWhole(site, map)) ?? null
}

/** New words. */
export function amend(entry: Entry, parts: Part[], group?: string) {
  // The reviewer may have typed the stored words again before the others were sent.
  entry.state = entry.stored && isSame(entry.stored, parts) ? "stored" : "due"
  entry.parts = parts
  if (entry.state === "stored") entry.stored = parts
  entry.isOutdated = false
  entry.sites = null
  entry.group = group
}

/** The parts of an entry as both texts have them now. Its gaps keep their words: others may stand at the same offset. */
export const readAgain = ({ parts }: Entry, overlay: Overlay) =>
  parts.map((part) => (part.quote === "" ? { ...part } : overlay.partOf(rangeOf(part))))

export const hasWordsOf = (ones: readonly Part[], others: readonly Part[] | null) =>
  ones.length === others?.length && ones.every((part, at) => hasSameWords(part, others[at]))

/** The parts of a hidden entry where the writer may have typed the letters of their quotes again; `null`: one has none. */
export function retyped(entry: Entry, base: Text) {
  const parts = sitesOf(entry).map(({ from, to }, index) => {
    const part = entry.parts[index] as Part
    return part.quote !== "" && base.sliceString(from, to) === part.quote ? { ...part, start: from, end: to } : part
  })
  return parts.every((part) => stands(base, part)) ? parts : null
}

export const sitesOf = ({ sites, parts }: Entry) => sites ?? parts.map(rangeOf)

/** Whether some ranges of the base, in order, have a letter of an entry or touch it. */
export function touchesOneOf(inOrder: readonly Range[]): (entry: Entry) => boolean {
  const isTouched = meetsOneOf(inOrder)
  return (entry) => sitesOf(entry).some(isTouched)
}

/** Whether the text has the words of an entry where it suggests them, beside others. */
export const isArrived = (entry: Entry, base: Text) =>
  sitesOf(entry).every(({ from, to }, index) => {
    const now = base.sliceString(from, to)
    const { quote = "" } = entry.parts[index] ?? {}
    // The server accepted the version that it has: the reviewer may have typed on since.
    const texts = [entry.stored, entry.parts].flatMap((parts) => parts?.[index]?.text ?? [])
    return now !== quote && texts.some((text) => (text === "" ? !now.includes(quote) : now.includes(text)))
  })

/** Whether the server has all words that the reviewer typed in a suggestion. */
export const isStoredWhole = ({ state, isTouched }: Entry) => state === "stored" && !isTouched

/** Whether the server has all words of a suggestion, which it may have to anchor anew. */
export const isServedWhole = ({ state, isTouched, stored, parts }: Entry) => state !== "sent" && !isTouched && hasWordsOf(parts, stored)

/** Whether an edit changes letters of a quote. @param ranges of the base */
export const isChanged = ({ parts }: Entry, ranges: readonly Range[]) => parts.some((part) => ranges.some((range) => shares(range, rangeOf(part))))

/** Whether some ranges have the letter behind a gap. */
export const losesAnchor = ({ parts }: Entry, ranges: readonly Range[]) =>
  parts.some(({ start, end }) => start === end && ranges.some(({ from, to }) => from <= start && start < to))

/** Whether the writer has put in what an entry suggests, letter by letter. */
export const isTyped = (entry: Entry, base: Text) =>
  sitesOf(entry).every(({ from, to }, index) => base.sliceString(from, to) === entry.parts[index]?.text)

/**
 * Whether the writer deletes all quotes and the letters around all gaps of an entry. An edit that puts other letters in
 * exactly for a quote edits it.
 *
 * @param edit of the base
 */
export function isGone({ parts }: Entry, edit: ChangeSet) {
  const changed: (Range & { isDeletion: boolean })[] = []
  edit.iterChangedRanges((from, to, newFrom, newTo) => changed.push({ from, to, isDeletion: newFrom === newTo }))
  return parts.every(({ start, end }) =>
    changed.some(({ from, to, isDeletion }) => {
      if (start === end) return from < start && start < to
      return from <= start && end <= to && (isDeletion || to - from !== end - start)
    }),
  )
}
