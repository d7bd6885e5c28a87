// @ts-check
/** The unsaved edits of deleted documents: to be copied and discarded. */

import * as api from "../lib/api.js"
import { Drafts } from "./drafts.js"
import { RecoveredDrafts } from "./recovered_drafts.js"

/** @typedef {import("./drafts.js").Draft} Draft */

/**
 * The drafts of closed pages of this user.
 *
 * @param {string} user
 * @returns {Promise<{ drafts: Draft[], drop: (draft: Draft) => Promise<void> }>}
 */
export async function draftsOfClosedPages(user) {
  const store = await Drafts.open(user)
  const drafts = (await store?.ofClosedPages().catch(() => [])) ?? []
  const drop = async (/** @type {Draft} */ { keys }) => void (await store?.drop(keys).catch(() => undefined))
  return { drafts, drop }
}

/**
 * Those whose document is gone for this user.
 *
 * @param {Draft[]} drafts
 * @param {readonly string[]} present documents that are known to be there
 */
export async function orphaned(drafts, present = []) {
  const documents = [...new Set(drafts.map(({ document }) => document))].filter((id) => !present.includes(id))
  const gone = new Set()
  for (const id of documents) if (await isGone(id)) gone.add(id)
  return drafts.filter(({ document }) => gone.has(document))
}

/** @param {string} document */
async function isGone(document) {
  try {
    await api.document(document)
    return false
  } catch (error) {
    // A failed request does not make a document deleted.
    return error instanceof api.Problem && [403, 404].includes(error.status)
  }
}

/** @param {HTMLElement} element @param {(draft: Draft) => unknown} drop */
export function orphanedDrafts(element, drop) {
  const recovered = new RecoveredDrafts(element, { drop, mayRecover: () => false, recover: () => undefined })
  recovered.start()
  return recovered
}
