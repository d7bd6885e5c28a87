/** The unsaved edits of deleted documents: to be copied and discarded. */

import * as api from "../lib/api.ts"
import { Drafts, type Draft } from "./drafts.ts"
import { RecoveredDrafts } from "./recovered_drafts.ts"

/** The drafts of closed pages of this user. */
export async function draftsOfClosedPages(user: string): Promise<{ drafts: Draft[], drop: (draft: Draft) => Promise<void> }> {
  const store = await Drafts.open(user)
  const drafts = (await store?.ofClosedPages().catch(() => [])) ?? []
  const drop = async ({ keys }: Draft) => void (await store?.drop(keys).catch(() => undefined))
  return { drafts, drop }
}

/**
 * Those whose document is gone for this user.
 *
 * @param present documents that are known to be there
 */
export async function orphaned(drafts: Draft[], present: readonly string[] = []) {
  const documents = [...new Set(drafts.map(({ document }) => document))].filter((id) => !present.includes(id))
  const gone = new Set()
  for (const id of documents) if (await isGone(id)) gone.add(id)
  return drafts.filter(({ document }) => gone.has(document))
}

async function isGone(document: string) {
  try {
    await api.document(document)
    return false
  } catch (error) {
    // A failed request does not make a document deleted.
    return error instanceof api.Problem && [403, 404].includes(error.status)
  }
}

export function orphanedDrafts(element: HTMLElement, drop: (draft: Draft) => unknown) {
  const recovered = new RecoveredDrafts(element, { drop, mayRecover: () => false, recover: () => undefined })
  recovered.start()
  return recovered
}
