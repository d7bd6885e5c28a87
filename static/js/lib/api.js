// @ts-check
/**
 * The server's REST side, one function a call.
 *
 * A failure is a `Problem` with the name the server gave it (`/problems/<name>` without the path),
 * so that callers say a sentence about what happened and not about a number.
 */

/**
 * @typedef {{ id: string, name: string }} User
 * @typedef {User & { guest_requests: boolean }} Me whether the user takes requests of guests
 * @typedef {{ guests: boolean, sign_in_url: string | null, user: Me | null,
 *   expires_at?: string | null }} Entry how a user without a sign-in gets one, and the end of the present one
 * @typedef {{ id: string, title: string, owner: User, created_at: string, updated_at: string,
 *   characters: number }} Document
 * @typedef {Document & { deleted_at: string, purge_at: string }} BinnedDocument
 * @typedef {{ by: User, at: string, purge_at: string }} Deletion of a document in the bin
 * @typedef {"writer" | "reviewer"} Role
 * @typedef {{ taken: boolean | null, user?: User | null, since?: string | null, waiting?: number }} SeatView
 *   `taken`: `null` while the server cannot tell
 * @typedef {{ role: Role, since: string, by: User }} Turn
 * @typedef {{ id: string, document_id: string, title: string, writer: User, reviewer: User | null,
 *   invite?: { token: string, url: string } | null, seats?: Record<Role, SeatView>, seen?: number,
 *   reviews?: { open: number, unread: number, total: number }, turn?: Turn | null,
 *   reviewer_since?: string | null, invited_at?: string, attempts?: Attempt[] }} Link
 * @typedef {{ user: User, at: string }} Attempt a user with a valid invite whom the link refused
 * @typedef {{ title: string, writer: { name: string }, free: boolean, yours: boolean }} Preview a link as a
 *   visitor with its invite sees it
 * @typedef {{ code: string, url: string, expires_at: string }} Transfer a code for another device
 * @typedef {"exact" | "edited" | "moved" | "orphaned"} AnchorState
 * @typedef {{ state: AnchorState, start: number, end: number, quote: string, prefix: string,
 *   suffix: string, relative?: { start: string, end: string } }} Anchor `relative`: positions of Yjs
 * @typedef {{ id: string, author: User, body: string, created_at: string, edited_at?: string | null }} Reply
 * @typedef {"open" | "accepted" | "rejected" | "resolved"} Status
 * @typedef {{ anchor: Anchor, text: string }} Part a place of a suggestion; a gap has an empty quote
 * @typedef {{ id: string, share_link_id: string, author: User, anchor: Anchor | null, body: string,
 *   suggestion: string | null, parts: Part[], origin: "form" | "typed" | "api", outcome: "withdrawn" | "fulfilled" | null, status: Status, version: number, replies: Reply[],
 *   decision?: { id: string, by: User, at: string, undo_until: string } | null,
 *   change?: number, changed_by?: string | null, created_at: string, updated_at: string }} Review
 * @typedef {"accept" | "reject"} Verdict
 * @typedef {{ id: string | null, decision: Verdict, done: string[],
 *   skipped: { id: string, reason: string }[], undo_until: string | null }} DecisionMade
 * @typedef {"pause" | "seat" | "decision" | "named" | "restore"} VersionKind
 * @typedef {{ id: string, number: number, kind: VersionKind, label: string | null, authors: User[],
 *   restored_from: number | null, characters: number, created_at: string }} Version
 * @typedef {{ op: "equal" | "insert" | "delete", text: string }} Segment
 * @typedef {{ from: string, to: string, segments: Segment[] }} Difference
 * @typedef {{ lock_key: string, share_link_id: string, title?: string | null, role: Role, session_id: string | null,
 *   user: User | null, node: string | null, since: string | null, fence: number | null,
 *   ttl_ms: number | null, last_seen: string | null,
 *   state: "claiming" | "held" | "uncertain" | "away" | "ended" }} HeldSeat
 * @typedef {HeldSeat & { why: string, told_by: "this-server" | "its-server" | "redis", as_of: string,
 *   last_heard: string | null, last_active: string | null, last_edit: string | null,
 *   last_renewal: string | null, trusted_until: string | null, kept_until: string | null,
 *   grace_until: string | null, idle_release_at: string | null, waiting: number,
 *   line: { position: number, user: User, since: string, node: string }[] }} SeatDetails
 * @typedef {{ class: string, name: string, lock_key: string, node: string | null,
 *   age_ms: number | null, ttl_ms: number | null, waiting: number, user: User | null }} HeldLock
 * @typedef {{ class: string, held: number, waiting: number, oldest_age_ms: number | null }} LockClass
 * @typedef {{ class: string, alarm: "failures" | "wait" | "hold", since: string, measured: number,
 *   limit: number }} LockAlarm
 * @typedef {{ classes: LockClass[], locks: HeldLock[], alarms: LockAlarm[], node: string,
 *   next_cursor: string | null }} LockList
 */

import { measureBy } from "./server_clock.js"

/** The server rejected the request, or did not reply (`status` 0, name `offline`). */
export class Problem extends Error {
  /**
   * @param {number} status
   * @param {string} name
   * @param {string} [detail] for people, in English
   * @param {Deletion | null} [deleted] the document is in the bin
   */
  constructor(status, name, detail = "", deleted = null) {
    super(`${status} ${name} ${detail}`.trim())
    this.status = status
    this.kind = name
    this.detail = detail
    this.deleted = deleted
    /** The id and the state of what stands in the way, and the refused field. */
    this.id = ""
    this.state = ""
    this.field = ""
    /** That an imported text looks like. */
    this.encoding = ""
    /** When to try again, in ms; 0: the server does not know. */
    this.retryAfter = 0
  }
}

/**
 * @param {string} method
 * @param {string} path
 * @param {{ body?: unknown, version?: number, bearer?: string, signal?: AbortSignal, keepalive?: boolean,
 *   read?: (response: Response) => void }} [options] `keepalive`: the request outlives the page
 * @returns {Promise<any>} the JSON of the answer, `null` when it has none
 */
export async function call(method, path, { body, version, bearer, signal, keepalive = false, read } = {}) {
  const headers = new Headers({ accept: "application/json" })
  if (body !== undefined) headers.set("content-type", "application/json")
  if (version !== undefined) headers.set("if-match", `"${version}"`)
  if (bearer !== undefined) headers.set("authorization", `Bearer ${bearer}`)
  const init = { method, headers, keepalive, signal: signal ?? null, credentials: /** @type {const} */ ("same-origin") }
  const payload = body === undefined ? {} : { body: JSON.stringify(body) }
  const sent = performance.now()
  let response
  try {
    response = await fetch(path, { ...init, ...payload })
  } catch (error) {
    if (signal?.aborted) throw error
    throw new Problem(0, "offline")
  }
  measureBy(response, sent)
  const json = await response.json().catch(() => null)
  if (response.ok) read?.(response)
  if (response.ok) return json
  const retryAfter = 1_000 * (Number(response.headers.get("retry-after")) || 0)
  const problem = problemIn(response.status, json)
  throw Object.assign(problem, { id: String(json?.id ?? ""), state: String(json?.state ?? ""), field: String(json?.field ?? ""), retryAfter })
}

/** The problem that an answer carries. @param {number} status @param {any} json the body, `null` if it is none */
export function problemIn(status, json) {
  const name = String(json?.type ?? "").replace(/^.*\/problems\//, "")
  const problem = new Problem(status, name || "unknown", String(json?.detail ?? json?.title ?? ""), json?.deleted ?? null)
  return Object.assign(problem, { encoding: String(json?.encoding ?? "") })
}

/** The rows of every page of a list. @param {string} path @param {string} rows their name in the answer */
export async function all(path, rows) {
  const found = []
  for (let cursor = ""; ; ) {
    const page = await call("GET", path + (cursor && `${path.includes("?") ? "&" : "?"}cursor=${encode(cursor)}`))
    found.push(...page[rows])
    if (!page.next_cursor) return found
    cursor = page.next_cursor
  }
}

/**
 * @template T
 * @param {Promise<T>} answer
 * @returns {Promise<T | null>} `null`: the server does not have it
 */
export async function ifThere(answer) {
  try {
    return await answer
  } catch (error) {
    if (error instanceof Problem && error.status === 404) return null
    throw error
  }
}

/** @param {string} id */
const encode = (id) => encodeURIComponent(id)

/** How a user without a sign-in gets one here, and who has one. @returns {Promise<Entry>} */
export const entry = () => call("GET", "/api/auth")

/** @returns {Promise<Me | null>} `null`: no user is signed in */
export const me = async () => (await entry()).user

/** Signs out: the browser forgets the cookie. @returns {Promise<void>} */
export const signOut = () => call("POST", "/api/auth/leave")

/** A guest corrects the name. @param {string} name @returns {Promise<User>} */
export const renameGuest = async (name) => (await call("PATCH", "/api/me", { body: { name } })).user

/** @param {boolean} takes whether guests may send requests @returns {Promise<Me>} */
export const setGuestRequests = (takes) => call("PATCH", "/api/me", { body: { guest_requests: takes } })

/** A code that signs this guest in on another device. @returns {Promise<Transfer>} */
export const createCode = () => call("POST", "/api/me/transfer")

/** Signs in by a code from another device. @param {string} code @returns {Promise<User>} */
export const enterByCode = async (code) => (await call("POST", "/api/auth/transfer", { body: { code } })).user

/** @param {string} name @returns {Promise<User>} */
export const signInAsGuest = async (name) => (await call("POST", "/api/auth/guest", { body: { name } })).user

/** @returns {Promise<Document[]>} */
export const documents = async () => (await call("GET", "/api/documents?limit=100")).documents ?? []

/** @param {string} id @returns {Promise<Document>} */
export const document = (id) => call("GET", `/api/documents/${encode(id)}`)

/** The text as the server has it. @param {string} id @returns {Promise<string>} */
export async function text(id) {
  const headers = { accept: "text/plain, application/json" }
  const response = await fetch(`/api/documents/${encode(id)}/text`, { headers, credentials: "same-origin" }).catch(() => {
    throw new Problem(0, "offline")
  })
  if (!response.ok) throw new Problem(response.status, "unknown")
  return response.text()
}

/** @param {string} title @param {string} text @returns {Promise<Document>} */
export const createDocument = (title, text) =>
  call("POST", "/api/documents", { body: { title, text } })

/** @param {string} id @param {string} title @returns {Promise<Document>} */
export const renameDocument = (id, title) =>
  call("PATCH", `/api/documents/${encode(id)}`, { body: { title } })

/**
 * The settings of the sections, with their version.
 *
 * @param {string} document
 * @returns {Promise<{ sections: (Omit<import("../sections/sections.js").Setting, "at"> & { at: number | null })[], version: number }>}
 */
export async function sections(document) {
  let version = 0
  const read = (/** @type {Response} */ { headers }) => void (version = Number(headers.get("etag")?.replaceAll('"', "")))
  const { sections } = await call("GET", `/api/documents/${encode(document)}/sections`, { read })
  return { sections, version }
}

/** @param {string} document @param {unknown[]} sections @param {number} version the one that they replace */
export const setSections = (document, sections, version) =>
  call("PUT", `/api/documents/${encode(document)}/sections`, { body: { sections }, version })

/** @param {string} id @returns {Promise<void>} */
export const deleteDocument = (id) => call("DELETE", `/api/documents/${encode(id)}`)

/** The bin. @returns {Promise<{ documents: BinnedDocument[], retention_seconds: number }>} */
export const bin = () => call("GET", "/api/documents?deleted=true&limit=100")

/** Takes a document out of the bin. @param {string} id @returns {Promise<Document>} */
export const restoreDocument = (id) => call("POST", `/api/documents/${encode(id)}/restore`)

/** Deletes a document of the bin for ever. @param {string} id @returns {Promise<void>} */
export const purgeDocument = (id) => call("DELETE", `/api/documents/${encode(id)}?permanent=true`)

/** @param {string} document @param {string} [rest] */
const versionsAt = (document, rest = "") => `/api/documents/${encode(document)}/versions${rest}`

/**
 * @param {string} document
 * @param {{ cursor?: string | null }} [options]
 * @returns {Promise<{ versions: Version[], next_cursor: string | null }>} newest first
 */
export const versions = (document, { cursor } = {}) =>
  call("GET", versionsAt(document, `?limit=100${cursor ? `&cursor=${encode(cursor)}` : ""}`))

/** @param {string} document @param {string} label @returns {Promise<Version>} */
export const nameVersion = (document, label) => call("POST", versionsAt(document), { body: { label } })

/** @param {string} document @param {string} id @param {AbortSignal} [signal] @returns {Promise<Version & { text: string }>} */
export const version = (document, id, signal) => call("GET", versionsAt(document, `/${encode(id)}`), { signal })

/**
 * @param {string} document
 * @param {string} id
 * @param {string} against another version, or `current`
 * @param {AbortSignal} [signal]
 * @returns {Promise<Difference>}
 */
export const difference = (document, id, against, signal) =>
  call("GET", versionsAt(document, `/${encode(id)}/diff?against=${encode(against)}`), { signal })

/** @param {string} document @param {string} id @returns {Promise<Version>} */
export const restore = (document, id) => call("POST", versionsAt(document, `/${encode(id)}/restore`))

/** @param {string} document @returns {Promise<Link>} */
export const shareLink = (document) => call("POST", `/api/documents/${encode(document)}/share-link`)

/** @returns {Promise<Link[]>} */
export const links = async () => (await call("GET", "/api/share-links")).share_links ?? []

/** @param {string} id @returns {Promise<Link>} */
export const link = (id) => call("GET", `/api/share-links/${encode(id)}`)

/** @param {string} id @param {string} invite @returns {Promise<Link>} */
export const join = (id, invite) =>
  call("POST", `/api/share-links/${encode(id)}/join`, { body: { invite } })

/**
 * A link as a visitor with its invite sees it, signed in or not.
 *
 * @param {string} id
 * @param {string} invite
 * @returns {Promise<Preview | null>} `null`: the invite is wrong or void
 */
export const checkInvite = (id, invite) =>
  ifThere(call("POST", `/api/share-links/${encode(id)}/invite/check`, { body: { invite } }))

/** Makes a new invite; every older one is void. @param {string} id @returns {Promise<Link>} */
export const renewInvite = (id) => call("POST", `/api/share-links/${encode(id)}/invite`)

/** @param {string} id @returns {Promise<void>} */
export const removeReviewer = (id) => call("DELETE", `/api/share-links/${encode(id)}/reviewer`)

/** Makes a refused user the reviewer. @param {string} id @param {string} user @returns {Promise<Link>} */
export const letIn = (id, user) => call("PUT", `/api/share-links/${encode(id)}/reviewer`, { body: { user_id: user } })

/** @param {string} link @param {string} [rest] */
const reviewsAt = (link, rest = "") => `/api/share-links/${encode(link)}/reviews${rest}`

/** @param {string} link @returns {Promise<Review[]>} */
export const reviews = (link) => all(reviewsAt(link), "reviews")

/** @param {string} link @param {string} id @returns {Promise<Review>} */
export const review = (link, id) => call("GET", reviewsAt(link, `/${encode(id)}`))

/**
 * @param {string} link
 * @param {{ anchor: { start: number, end: number, quote: string } | null, body: string,
 *   suggestion?: string }} review `anchor` `null`: on the whole text
 * @returns {Promise<Review>}
 */
export const createReview = (link, review) => call("POST", reviewsAt(link), { body: review })

/**
 * @param {string} link
 * @param {Review} review as it was shown: a change since is refused
 * @param {{ body?: string, suggestion?: string | null }} changes
 * @returns {Promise<Review>}
 */
export const editReview = (link, review, changes) =>
  call("PATCH", reviewsAt(link, `/${encode(review.id)}`), { body: changes, version: review.version })

/** @param {string} link @param {Review} review @returns {Promise<void>} */
export const deleteReview = (link, review) =>
  call("DELETE", reviewsAt(link, `/${encode(review.id)}`), { version: review.version })

/**
 * @param {string} link
 * @param {Review} review
 * @param {"accept" | "reject" | "resolve" | "reopen"} decision
 * @returns {Promise<Review>}
 */
export const decide = (link, review, decision) =>
  call("POST", reviewsAt(link, `/${encode(review.id)}/${decision}`), { version: review.version })

/**
 * Accepts or rejects suggestions at once.
 *
 * @param {string} link
 * @param {Verdict} decision
 * @param {Review[]} reviews as they are shown
 * @param {string[]} moved the guessed places of the only one, which the user has seen
 * @returns {Promise<DecisionMade>}
 */
export const decideMany = (link, decision, reviews, moved = []) => {
  const body = { decision, reviews: reviews.map(({ id, version }) => ({ id, version, ...(0 < moved.length ? { moved } : {}) })) }
  return call("POST", `/api/share-links/${encode(link)}/decisions`, { body })
}

/** @param {string} link @param {string} id @returns {Promise<{ undone: string[] }>} */
export const undoDecision = (link, id) =>
  call("POST", `/api/share-links/${encode(link)}/decisions/${encode(id)}/undo`, { body: {} })

/** @param {string} link @param {Review} review @param {string} body @returns {Promise<Review | Reply>} */
export const reply = (link, review, body) =>
  call("POST", reviewsAt(link, `/${encode(review.id)}/replies`), { body: { body } })

/** @param {Review} review @param {Reply} reply */
const replyAt = (review, { id }) => `/${encode(review.id)}/replies/${encode(id)}`

/** @param {string} link @param {Review} review @param {Reply} reply @param {string} body @returns {Promise<Review>} */
export const editReply = (link, review, reply, body) =>
  call("PATCH", reviewsAt(link, replyAt(review, reply)), { body: { body } })

/** @param {string} link @param {Review} review @param {Reply} reply @returns {Promise<Review>} */
export const deleteReply = (link, review, reply) => call("DELETE", reviewsAt(link, replyAt(review, reply)))

/** All changes up to this one are seen. @param {string} link @param {number} change @param {{ keepalive?: boolean }} [options] */
export const setSeen = (link, change, { keepalive = false } = {}) =>
  call("PUT", `/api/share-links/${encode(link)}/seen`, { body: { change }, keepalive })

/** Hands the text over. @param {string} link @param {Role} to @returns {Promise<{ turn: Turn }>} */
export const handOver = (link, to) => call("POST", `/api/share-links/${encode(link)}/turn`, { body: { to } })

/** @param {string} bearer @param {AbortSignal} signal @param {string} [cursor] @returns {Promise<{ sessions: HeldSeat[], nodes: { sessions: number }[], next_cursor: string | null }>} */
export const heldSeats = (bearer, signal, cursor = "") => call("GET", `/api/admin/sessions${cursor && `?cursor=${encode(cursor)}`}`, { bearer, signal })

/** Why a session holds its seat. @param {string} bearer @param {string} session @returns {Promise<SeatDetails>} */
export const seatDetails = (bearer, session) =>
  call("GET", `/api/admin/sessions/${encode(session)}`, { bearer })

/**
 * Held locks by class: of the class `of`, or of all.
 *
 * @param {string} bearer
 * @param {{ of?: string, limit: number, signal?: AbortSignal }} page
 * @returns {Promise<LockList>}
 */
export const heldLocks = (bearer, { of, limit, signal }) =>
  call("GET", `/api/admin/locks?limit=${limit}${of === undefined ? "" : `&class=${encode(of)}`}`, { bearer, signal })

/** @param {string} bearer @param {string} link @returns {Promise<void>} */
export const revokeLink = (bearer, link) => call("DELETE", `/api/admin/share-links/${encode(link)}`, { bearer })

/** @param {string} bearer @param {string} session @returns {Promise<void>} */
export const evictSession = (bearer, session) =>
  call("DELETE", `/api/admin/sessions/${encode(session)}`, { bearer })
