/**
 * The contents of a Yjs update, read without a document: whether it applies, whether it deletes,
 * and its inserted text.
 *
 * Draws nothing, tested with `node --test`.
 */

import { Y } from "../lib/vendor.ts"

/**
 * Whether all that the update builds upon is in the document, or in the update itself. One that does
 * not fit is what a server refused, or stands on that: in a document it would wait for ever.
 */
export function fits(doc: Y.Doc, update: Uint8Array) {
  const { structs, ds } = Y.decodeUpdate(update)
  const ends = Y.decodeStateVector(Y.encodeStateVector(doc))
  const isThere = (id: Y.ID | null) => id === null || id.clock < (ends.get(id.client) ?? 0)
  const roots: (Y.ID | null)[] = []
  for (const struct of structs) {
    const { client, clock } = struct.id
    const end = ends.get(client) ?? 0
    if (struct instanceof Y.Skip || end < clock) return false
    ends.set(client, Math.max(end, clock + struct.length))
    if (struct instanceof Y.Item) roots.push(struct.origin, struct.rightOrigin)
  }
  for (const [client, deletes] of ds.clients) {
    for (const { clock, len } of deletes) if ((ends.get(client) ?? 0) < clock + len) return false
  }
  return roots.every(isThere)
}

/** Whether anything is deleted by it. */
export function deletesText(update: Uint8Array) {
  return 0 < Y.decodeUpdate(update).ds.clients.size
}

/** The inserted text that is not deleted, in order of insertion: one piece for each position. */
export function textIn(update: Uint8Array): string[] {
  const { structs, ds } = Y.decodeUpdate(update)
  const pieces: string[] = []
  let last: Y.ID | null = null
  for (const struct of structs) {
    if (!(struct instanceof Y.Item) || !(struct.content instanceof Y.ContentString)) continue
    const { client, clock } = struct.id
    const deletes = ds.clients.get(client) ?? []
    const remains = (at: number) => !deletes.some((deleted) => deleted.clock <= at && at < deleted.clock + deleted.len)
    const text = [...struct.content.str.split("")].filter((_, at) => remains(clock + at)).join("")
    const continues = last !== null && struct.origin !== null && Y.compareIDs(struct.origin, last)
    if (continues) pieces.push(`${pieces.pop() ?? ""}${text}`)
    else pieces.push(text)
    last = Y.createID(client, clock + struct.length - 1)
  }
  return pieces.map((piece) => piece.trim()).filter((piece) => piece !== "")
}
