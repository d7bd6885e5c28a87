/**
 * From an address to a seat: the user, the link and the role.
 *
 * `/d/<document>` is the writer's address; it finds or creates the document's share link.
 * `/s/<link>#<invite>` is the reviewer's: the page uses the invite once and takes it out of the address, so
 * that it is neither in the history nor on a shared screen.
 */

import * as api from "../lib/api.ts"
import { byId, el, icon } from "../lib/dom.ts"
import { storeInTab, takeInTab } from "../lib/preferences.ts"
import { storeInvite, takeInvite } from "../lib/sign_in.ts"
import { WrittenDrafts } from "../reviews/written_drafts.ts"
import { orphanedDrafts, draftsOfClosedPages, orphaned } from "../unsaved/orphaned_drafts.ts"
import { unsentParts } from "../unsaved/unsaved_list.ts"
import type { EntryDialog } from "./entry_dialog.ts"

/** The interval in which a refused page asks for its document again, in ms. */
const REFUSED_POLL = 4_000
/** Before the id of a link that this tab has reviewed. */
const REVIEWED = "galley.reviewed."

export type Arrival = { me: api.User, link: api.Link, role: api.Role }

/** @returns `null`: the dialog says why not */
export async function enter(dialog: EntryDialog): Promise<Arrival | null> {
  dialog.opening()
  const arrived = new AbortController()
  // A visitor pastes the whole link after half of it, or a new one after a void one: only its end differs.
  window.addEventListener("hashchange", () => location.reload(), { signal: arrived.signal })
  const arrival = await arrive(dialog)
  if (arrival) arrived.abort()
  return arrival
}

async function arrive(dialog: EntryDialog): Promise<Arrival | null> {
  const [, kind, id] = /^\/([ds])\/([\w-]+)\/?$/.exec(location.pathname) ?? []
  try {
    if (id !== undefined) return await (kind === "d" ? asOwner(dialog, id) : byLink(dialog, id))
    dialog.refuse("missing")
  } catch (error) {
    if (id !== undefined) showUnsent(id)
    await refuse(dialog, error)
    if (id !== undefined && isDeletion(error)) reopened(() => api.link(id))
  }
  return null
}

/** Shows the words that a former reviewer wrote in this tab and did not send. */
function showUnsent(link: string) {
  const [written, element] = [new WrittenDrafts(link), byId("orphaned-drafts")]
  element.hidden = written.all.length === 0
  const discard = () => {
    written.clear()
    showUnsent(link)
  }
  if (!element.hidden) element.replaceChildren(el("div", { class: "notice" }, icon("alert"), el("div", {}, ...unsentParts(written.all, "", discard))))
}

async function asOwner(dialog: EntryDialog, document: string): Promise<Arrival | null> {
  const me = await api.me()
  if (!me) {
    await dialog.signIn()
    return null
  }
  try {
    return { me, link: await ownLink(document), role: "writer" }
  } catch (error) {
    await refuse(dialog, error, me, document)
    if (isDeletion(error)) reopened(() => api.shareLink(document))
    await showOrphanedDrafts(me, document)
    return null
  }
}

/** Unsaved edits of a deleted document are shown, not deleted with it. */
async function showOrphanedDrafts(me: api.User, document: string) {
  const { drafts, drop } = await draftsOfClosedPages(me.id)
  const ofDocument = drafts.filter((draft) => draft.document === document)
  orphanedDrafts(byId("orphaned-drafts"), drop).show(await orphaned(ofDocument))
}

/** The link with its invite, which only its writer is shown. */
async function ownLink(document: string) {
  const made = await api.shareLink(document)
  return { ...(await api.link(made.id)), invite: made.invite ?? null }
}

async function byLink(dialog: EntryDialog, id: string): Promise<Arrival | null> {
  const invite = decodeURIComponent(location.hash.slice(1)) || takeInvite(id)
  const signedIn = await api.me()
  const member = signedIn && (await linkOfMember(id, signedIn))
  if (member) return withRole(signedIn, member)
  showUnsent(id)
  // The invite comes before the name: a visitor who cannot join reads that first, and enters nothing.
  const preview = invite === "" ? null : await api.checkInvite(id, invite)
  if (invite !== "" && !preview) {
    history.replaceState(null, "", location.pathname)
    dialog.refuse("void")
    return null
  }
  if (preview && !preview.free) return await waitToBeLetIn(dialog, { id, invite, preview, signedIn })
  const me = signedIn ?? (await signInAsGuest(dialog, id, invite, preview))
  if (!me) return null
  const link = await joinByInvite(dialog, id, invite, { me, preview, mustConfirm: signedIn !== null })
  return link && (await withRole(me, link))
}

async function withRole(me: api.User, link: api.Link): Promise<Arrival> {
  history.replaceState(null, "", location.pathname)
  if (link.writer.id === me.id) return { me, link: await ownLink(link.document_id), role: "writer" }
  storeInTab(REVIEWED + link.id, me.id)
  return { me, link, role: "reviewer" }
}

/** A guest with an invite gives a name; all others sign in first. */
async function signInAsGuest(dialog: EntryDialog, id: string, invite: string, preview: api.Preview | null) {
  const { guests, sign_in_url: url } = await api.entry()
  if (guests && preview) {
    if (url !== null) storeInvite(id, invite)
    const me = await dialog.requestName(preview, "entry.name.text", url)
    dialog.opening()
    return me
  }
  if (guests && url === null) {
    dialog.refuse("incomplete")
    return null
  }
  storeInvite(id, invite)
  await dialog.signIn()
  return null
}

/**
 * The link has another reviewer. The page shows that; on request the server notifies the writer of the visitor,
 * who enters once the writer lets them in.
 */
async function waitToBeLetIn(
  dialog: EntryDialog,
  { id, invite, preview, signedIn }: { id: string, invite: string, preview: api.Preview, signedIn: api.User | null },
): Promise<Arrival | null> {
  const { guests } = await api.entry()
  await dialog.refuseTaken(preview, signedIn !== null || guests)
  const me = signedIn ?? (await dialog.requestName(preview, "entry.tell.text"))
  dialog.opening()
  const joined = await api.join(id, invite).catch((error) => {
    if (error instanceof api.Problem && error.kind === "reviewer-exists") return null
    throw error
  })
  if (!joined) dialog.notified(preview)
  return withRole(me, await polled(() => linkOfMember(id, me)))
}

/** Asks until there is an answer, while the page is in use. */
async function polled<T>(read: () => Promise<T | null>): Promise<T> {
  for (;;) {
    const answer = document.hidden ? null : await read().catch(() => null)
    if (answer) return answer
    await new Promise((resolve) => window.setTimeout(resolve, REFUSED_POLL))
  }
}

/** Opens the page anew once its document is restored. @param read fails until then */
const reopened = (read: () => Promise<object>) => void polled(read).then(() => location.reload())

const isDeletion = (error: unknown) => error instanceof api.Problem && error.deleted !== null

/**
 * The link, when its invite makes one the reviewer. The writer and the reviewer need none.
 *
 * @param given `mustConfirm`: the user was signed in before, and has confirmed nothing yet
 */
async function joinByInvite(
  dialog: EntryDialog,
  id: string,
  invite: string,
  { me, preview, mustConfirm }: { me: api.User, preview: api.Preview | null, mustConfirm: boolean },
) {
  if (!preview) {
    const isFormer = takeInTab(REVIEWED + id) === me.id
    if (isFormer) storeInTab(REVIEWED + id, me.id)
    dialog.refuse(isFormer ? "former" : "incomplete")
    return null
  }
  if (mustConfirm && !(await dialog.confirmReview(me, preview))) {
    location.assign("/")
    return null
  }
  dialog.opening()
  await api.join(id, invite)
  const link = await linkOfMember(id, me)
  if (!link) dialog.refuse("incomplete")
  return link
}

/** The link, when one is its writer or its reviewer already. */
async function linkOfMember(id: string, me: api.User) {
  try {
    const link = await api.link(id)
    return [link.writer.id, link.reviewer?.id].includes(me.id) ? link : null
  } catch (error) {
    if (error instanceof api.Problem && error.deleted === null && [403, 404].includes(error.status)) return null
    throw error
  }
}

/** @param me the owner */
async function refuse(dialog: EntryDialog, error: unknown, me: api.User | null = null, document: string = "") {
  if (!(error instanceof api.Problem)) return dialog.refuse("failed", error)
  if (error.kind === "reviewer-exists") {
    // Another visitor was faster.
    return location.reload()
  }
  if (error.deleted) return dialog.deleted(error.deleted, me, document)
  if (error.status === 401) return dialog.signIn()
  if (error.kind === "foreign-origin") return dialog.refuse("origin")
  if ([403, 404, 410, 422].includes(error.status)) return dialog.refuse("missing")
  dialog.refuse("failed", error)
}
