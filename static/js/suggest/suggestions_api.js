// @ts-check
/** The call of the reviewer's typed suggestions. */

import { call } from "../lib/api.js"

/**
 * @typedef {{ at: string, text: string } | { start: string, end: string, quote: string, text: string }} PlacedPart with
 *   relative positions of Yjs in base64
 * @typedef {{ id: string, version: number | null, parts: PlacedPart[], group?: string }} PutItem
 * @typedef {{ put: PutItem[], withdraw: { id: string, version: number }[] }} PlacedBatch
 */

/**
 * Stores and withdraws suggestions, each by itself.
 *
 * @param {string} link
 * @param {PlacedBatch} batch
 * @param {{ keepalive?: boolean }} [options] `keepalive`: the request outlives the page
 * @returns {Promise<import("./ledger.js").Result[]>} in the order of the batch
 */
export async function putSuggestions(link, batch, { keepalive = false } = {}) {
  const path = `/api/share-links/${encodeURIComponent(link)}/suggestions`
  return (await call("POST", path, { body: batch, keepalive })).items
}
