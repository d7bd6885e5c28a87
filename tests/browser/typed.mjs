// @ts-check
/** Suggestions with parts, as the page of a reviewer sends them while the reviewer types in the text. */

import assert from "node:assert/strict"

/** @typedef {import("./harness.mjs").User} User */
/** @typedef {{ quote?: string, after?: string, text: string }} Change a quote with its new text, or a text that is added behind other words */

let count = 0

/** A new id, as a page makes one. */
const newId = () => `typed-suggestion-${String(++count).padStart(6, "0")}`

/** The parts that the server takes. @param {string} text the text of the document @param {readonly Change[]} changes */
const partsOf = (text, changes) =>
  changes.map(({ quote, after = "", text: words }) => {
    const found = text.indexOf(quote ?? after)
    assert.notEqual(found, -1, `“${quote ?? after}” is in the text`)
    return quote === undefined ? { at: found + after.length, text: words } : { start: found, end: found + quote.length, quote, text: words }
  })

/**
 * Stores suggestions through the page of their reviewer, who holds the seat.
 *
 * @param {User} reviewer @param {string} text the text of the document @param {...{ id?: string, version?: number, body?: string, changes: readonly Change[] }} suggestions
 * @returns {Promise<{ id: string, state: string, version: number, reason?: string }[]>} the answer to each
 */
export async function suggest(reviewer, text, ...suggestions) {
  const put = suggestions.map(({ id = newId(), version = null, changes, ...more }) => ({ id, version, parts: partsOf(text, changes), ...more }))
  const items = await reviewer.page.evaluate(async (put) => {
    const link = location.pathname.split("/").at(-1)
    const headers = { "content-type": "application/json" }
    const answer = await fetch(`/api/share-links/${link}/suggestions`, { method: "POST", headers, body: JSON.stringify({ put, withdraw: [] }) })
    if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`)
    return (await answer.json()).items
  }, put)
  for (const item of items) assert.equal(item.state, "kept", JSON.stringify(item))
  return items
}
