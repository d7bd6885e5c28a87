/** The call of the reviewer's typed suggestions. */

import { call } from "../../lib/api.ts"

/** With relative positions of Yjs in base64. */
export type PlacedPart = { at: string, text: string } | { start: string, end: string, quote: string, text: string }
type PutItem = { id: string, version: number | null, parts: PlacedPart[], group?: string }
export type PlacedBatch = { put: PutItem[], withdraw: { id: string, version: number }[] }

/**
 * Stores and withdraws suggestions, each by itself.
 *
 * @param options `keepalive`: the request outlives the page
 * @returns in the order of the batch; one that the server could not read has the id `""`
 */
export async function putSuggestions(id: string, batch: PlacedBatch, { keepalive = false }: { keepalive?: boolean } = {}) {
  const { items } = await call("POST", "/api/share-links/{id}/suggestions", { path: { id }, body: batch, keepalive })
  return items.map((item) => ({ ...item, id: item.id ?? "" }))
}
