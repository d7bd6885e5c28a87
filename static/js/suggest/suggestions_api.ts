/** The call of the reviewer's typed suggestions. */

import { call } from "../lib/api.ts"
import type { Result } from "./ledger.ts"

/** With relative positions of Yjs in base64. */
export type PlacedPart = { at: string, text: string } | { start: string, end: string, quote: string, text: string }
type PutItem = { id: string, version: number | null, parts: PlacedPart[], group?: string }
export type PlacedBatch = { put: PutItem[], withdraw: { id: string, version: number }[] }

/**
 * Stores and withdraws suggestions, each by itself.
 *
 * @param options `keepalive`: the request outlives the page
 * @returns in the order of the batch
 */
export async function putSuggestions(link: string, batch: PlacedBatch, { keepalive = false }: { keepalive?: boolean } = {}): Promise<Result[]> {
  const path = `/api/share-links/${encodeURIComponent(link)}/suggestions`
  return (await call("POST", path, { body: batch, keepalive })).items
}
