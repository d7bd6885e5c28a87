// @ts-check
/**
 * From an address to a seat: the user, the link and the role.
 *
 * `/d/<document>` is the writer's address; it finds or creates the document's share link.
 * `/s/<link>#<invite>` is the reviewer's: the page uses the invite once and takes it out of the address, so
 * that it is neither in the history nor on a shared screen.
 */

import * as api from "../lib/api.js"
import { byId } from "../lib/dom.js"
import { storeInvite, takeInvite } from "../lib/sign_in.js"
import { orphanedDrafts, draftsOfClosedPages, orphaned } from "../unsaved/orphaned_drafts.js"

/**
 * @typedef {{ me: api.User, link: api.Link, role: api.Role }} Arrival
 * @typedef {import("./entry_dialog.js").EntryDialog} Gate
 */

/**
 * @param {Gate} gate
 * @returns {Promise<Arrival | null>} `null`: the gate says why not
 */
export async function enter(gate) {
  gate.opening()
  const [, way, id] = /^\/([ds])\/([\w-]+)\/?$/.exec(location.pathname) ?? []
  try {
    if (id !== undefined) return await (way === "d" ? asOwner(gate, id) : byLink(gate, id))
    gate.say("missing")
  } catch (error) {
    await refuse(gate, error)
  }
  return null
}

/** @param {Gate} gate @param {string} document @returns {Promise<Arrival | null>} */
async function asOwner(gate, document) {
  const me = await api.me()
  if (!me) {
    await gate.signIn()
    return null
  }
  try {
    return { me, link: await owned(document), role: "writer" }
  } catch (error) {
    await refuse(gate, error)
    await showLeft(me, document)
    return null
  }
}

/** Unsaved edits of a deleted document are shown, not deleted with it. @param {api.User} me @param {string} document */
async function showLeft(me, document) {
  const { drafts, drop } = await draftsOfClosedPages(me.id)
  const ofIt = drafts.filter((draft) => draft.document === document)
  orphanedDrafts(byId("left"), drop).show(await orphaned(ofIt))
}

/** The link with its invite, which only its writer is shown. @param {string} document */
async function owned(document) {
  const made = await api.shareLink(document)
  return { ...(await api.link(made.id)), invite: made.invite ?? null }
}

/** @param {Gate} gate @param {string} id @returns {Promise<Arrival | null>} */
async function byLink(gate, id) {
  const invite = decodeURIComponent(location.hash.slice(1)) || takeInvite(id)
  const known = await api.me()
  const me = known ?? (await named(gate, id, invite))
  if (!me) return null
  const link = (await whereIBelong(id, me)) ?? (await joined(gate, id, invite, { me, asks: known !== null }))
  history.replaceState(null, "", location.pathname)
  if (!link) return null
  if (link.writer.id === me.id) return { me, link: await owned(link.document_id), role: "writer" }
  return { me, link, role: "reviewer" }
}

/** A guest with an invite gives a name; all others sign in first. @param {Gate} gate @param {string} id @param {string} invite */
async function named(gate, id, invite) {
  const { guests, sign_in_url: url } = await api.entry()
  if (guests && invite !== "") {
    const me = await gate.askName()
    gate.opening()
    return me
  }
  if (guests && url === null) {
    gate.say("incomplete")
    return null
  }
  storeInvite(id, invite)
  await gate.signIn()
  return null
}

/**
 * The link, when its invite makes one the reviewer. The writer and the reviewer need none.
 *
 * @param {Gate} gate
 * @param {string} id
 * @param {string} invite
 * @param {{ me: api.User, asks: boolean }} given `asks`: the user was signed in before, and has said nothing yet
 */
async function joined(gate, id, invite, { me, asks }) {
  if (invite === "") {
    gate.say("incomplete")
    return null
  }
  if (asks && !(await gate.askReview(me))) {
    location.assign("/")
    return null
  }
  gate.opening()
  await api.join(id, invite)
  const link = await whereIBelong(id, me)
  if (!link) gate.say("incomplete")
  return link
}

/**
 * The link, when one is its writer or its reviewer already.
 *
 * @param {string} id
 * @param {api.User} me
 */
async function whereIBelong(id, me) {
  try {
    const link = await api.link(id)
    return [link.writer.id, link.reviewer?.id].includes(me.id) ? link : null
  } catch (error) {
    if (error instanceof api.Problem && [403, 404].includes(error.status)) return null
    throw error
  }
}

/** @param {Gate} gate @param {unknown} error */
async function refuse(gate, error) {
  if (!(error instanceof api.Problem)) return gate.say("failed", error)
  if (error.kind === "reviewer-exists") {
    history.replaceState(null, "", location.pathname)
    return gate.say("exists")
  }
  if (error.status === 401) return gate.signIn()
  if ([403, 404, 410, 422].includes(error.status)) return gate.say("missing")
  gate.say("failed", error)
}
