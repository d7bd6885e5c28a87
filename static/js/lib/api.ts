/**
 * The server's REST side, one function a call.
 *
 * A failure is a `Problem` with the name the server gave it (`/problems/<name>` without the path),
 * so that callers say a sentence about what happened and not about a number.
 */

import type { Setting } from "../sections/sections.ts"
import { measureBy } from "./server_clock.ts"

export type User = { id: string, name: string }
/** Whether the user takes requests of guests. */
type Me = User & { guest_requests: boolean }
/** How a user without a sign-in gets one. */
export type Entry = { guests: boolean, sign_in_url: string | null, user: Me | null }
export type Document = { id: string, title: string, owner: User, created_at: string, updated_at: string,
  characters: number }
export type BinnedDocument = Document & { deleted_at: string, purge_at: string }
/** Of a document in the bin. */
export type Deletion = { by: User, at: string, purge_at: string }
export type Role = "writer" | "reviewer"
/** `taken`: `null` while the server cannot tell. */
type SeatView = { taken: boolean | null, user?: User | null, since?: string | null, waiting?: number }
export type Turn = { role: Role, since: string, by: User }
export type Link = { id: string, document_id: string, title: string, writer: User, reviewer: User | null,
  invite?: { token: string, url: string } | null, seats?: Record<Role, SeatView>, seen?: number,
  reviews?: { open: number, unread: number, total: number }, turn?: Turn | null,
  reviewer_since?: string | null, invited_at?: string, attempts?: Attempt[] }
/** A user with a valid invite whom the link refused. */
type Attempt = { user: User, at: string }
/** A link as a visitor with its invite sees it. */
export type Preview = { title: string, writer: { name: string }, free: boolean, yours: boolean }
/** A code for another device. */
export type Transfer = { code: string, url: string, expires_at: string }
export type AnchorState = "exact" | "edited" | "moved" | "orphaned"
/** `relative`: positions of Yjs. */
export type Anchor = { state: AnchorState, start: number, end: number, quote: string, prefix: string,
  suffix: string, relative?: { start: string, end: string } }
export type Reply = { id: string, author: User, body: string, created_at: string, edited_at?: string | null }
type Status = "open" | "accepted" | "rejected" | "resolved"
/** A place of a suggestion; a gap has an empty quote. */
export type Part = { anchor: Anchor, text: string }
export type Review = { id: string, share_link_id: string, author: User, anchor: Anchor | null, body: string,
  suggestion: string | null, parts: Part[], origin: "form" | "typed" | "api", outcome: "withdrawn" | "fulfilled" | null, status: Status, version: number, replies: Reply[],
  decision?: { id: string, by: User, at: string, undo_until: string } | null,
  change?: number, changed_by?: string | null, created_at: string, updated_at: string }
export type Verdict = "accept" | "reject"
export type DecisionMade = { id: string | null, decision: Verdict, done: string[],
  skipped: { id: string, reason: string }[], undo_until: string | null }
type VersionKind = "pause" | "seat" | "decision" | "named" | "restore"
export type Version = { id: string, number: number, kind: VersionKind, label: string | null, authors: User[],
  restored_from: number | null, characters: number, created_at: string }
export type Segment = { op: "equal" | "insert" | "delete", text: string }
type Difference = { from: string, to: string, segments: Segment[] }
export type HeldSeat = { lock_key: string, share_link_id: string, title?: string | null, role: Role, session_id: string | null,
  user: User | null, node: string | null, since: string | null, fence: number | null,
  ttl_ms: number | null, last_seen: string | null,
  state: "claiming" | "held" | "uncertain" | "away" | "ended" }
export type SeatDetails = HeldSeat & { why: string, told_by: "this-server" | "its-server" | "redis", as_of: string,
  last_heard: string | null, last_active: string | null, last_edit: string | null,
  last_renewal: string | null, trusted_until: string | null, kept_until: string | null,
  grace_until: string | null, idle_release_at: string | null, waiting: number,
  line: { position: number, user: User, since: string, node: string }[] }
type HeldLock = { class: string, name: string, lock_key: string, node: string | null,
  age_ms: number | null, ttl_ms: number | null, waiting: number, user: User | null }
export type LockClass = { class: string, held: number, waiting: number, oldest_age_ms: number | null }
export type LockAlarm = { class: string, alarm: "failures" | "wait" | "hold", since: string, measured: number,
  limit: number }
export type LockList = { classes: LockClass[], locks: HeldLock[], alarms: LockAlarm[], node: string,
  next_cursor: string | null }

/** The server rejected the request, or did not reply (`status` 0, name `offline`). */
export class Problem extends Error {
  declare status: number
  declare kind: string
  declare detail: string
  declare deleted: Deletion | null
  declare id: string
  declare state: string
  declare field: string
  declare encoding: string
  declare retryAfter: number

  /**
   * @param detail for people, in English
   * @param deleted the document is in the bin
   */
  constructor(status: number, name: string, detail: string = "", deleted: Deletion | null = null) {
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

/** `keepalive`: the request outlives the page. */
type Sent = { body?: unknown, version?: number, bearer?: string, signal?: AbortSignal, keepalive?: boolean,
  read?: (response: Response) => void }

/** @returns the JSON of the answer, `null` when it has none */
export async function call(method: string, path: string, { body, version, bearer, signal, keepalive = false, read }: Sent = {}): Promise<any> {
  const headers = new Headers({ accept: "application/json" })
  if (body !== undefined) headers.set("content-type", "application/json")
  if (version !== undefined) headers.set("if-match", `"${version}"`)
  if (bearer !== undefined) headers.set("authorization", `Bearer ${bearer}`)
  const init = { method, headers, keepalive, signal: signal ?? null, credentials: "same-origin" as const }
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

/** The problem that an answer carries. @param json the body, `null` if it is none */
export function problemIn(status: number, json: any) {
  const name = String(json?.type ?? "").replace(/^.*\/problems\//, "")
  const problem = new Problem(status, name || "unknown", String(json?.detail ?? json?.title ?? ""), json?.deleted ?? null)
  return Object.assign(problem, { encoding: String(json?.encoding ?? "") })
}

/** The rows of every page of a list. @param rows their name in the answer */
export async function all(path: string, rows: string) {
  const found = []
  for (let cursor = ""; ; ) {
    const page = await call("GET", path + (cursor && `${path.includes("?") ? "&" : "?"}cursor=${encode(cursor)}`))
    found.push(...page[rows])
    if (!page.next_cursor) return found
    cursor = page.next_cursor
  }
}

/** @returns `null`: the server does not have it */
export async function ifThere<T>(answer: Promise<T>): Promise<T | null> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof Problem && error.status === 404) return null
    throw error
  }
}

const encode = (id: string) => encodeURIComponent(id)

/** How a user without a sign-in gets one here, and who has one. */
export const entry = (): Promise<Entry> => call("GET", "/api/auth")

/** @returns `null`: no user is signed in */
export const me = async (): Promise<Me | null> => (await entry()).user

/** Signs out: the browser forgets the cookie. */
export const signOut = (): Promise<void> => call("POST", "/api/auth/leave")

/** A guest corrects the name. */
export const renameGuest = async (name: string): Promise<User> => (await call("PATCH", "/api/me", { body: { name } })).user

/** @param takes whether guests may send requests */
export const setGuestRequests = (takes: boolean): Promise<Me> => call("PATCH", "/api/me", { body: { guest_requests: takes } })

/** A code that signs this guest in on another device. */
export const createCode = (): Promise<Transfer> => call("POST", "/api/me/transfer")

/** Signs in by a code from another device. */
export const enterByCode = async (code: string): Promise<User> => (await call("POST", "/api/auth/transfer", { body: { code } })).user

export const signInAsGuest = async (name: string): Promise<User> => (await call("POST", "/api/auth/guest", { body: { name } })).user

export const documents = async (): Promise<Document[]> => (await call("GET", "/api/documents?limit=100")).documents ?? []

export const document = (id: string): Promise<Document> => call("GET", `/api/documents/${encode(id)}`)

/** The text as the server has it. */
export async function text(id: string): Promise<string> {
  const headers = { accept: "text/plain, application/json" }
  const response = await fetch(`/api/documents/${encode(id)}/text`, { headers, credentials: "same-origin" }).catch(() => {
    throw new Problem(0, "offline")
  })
  if (!response.ok) throw new Problem(response.status, "unknown")
  return response.text()
}

export const createDocument = (title: string, text: string): Promise<Document> =>
  call("POST", "/api/documents", { body: { title, text } })

export const renameDocument = (id: string, title: string): Promise<Document> =>
  call("PATCH", `/api/documents/${encode(id)}`, { body: { title } })

/** The settings of the sections, with their version. */
export async function sections(document: string): Promise<{ sections: (Omit<Setting, "at"> & { at: number | null })[], version: number }> {
  let version = 0
  const read = ({ headers }: Response) => void (version = Number(headers.get("etag")?.replaceAll('"', "")))
  const { sections } = await call("GET", `/api/documents/${encode(document)}/sections`, { read })
  return { sections, version }
}

/** @param version the one that they replace */
export const setSections = (document: string, sections: unknown[], version: number) =>
  call("PUT", `/api/documents/${encode(document)}/sections`, { body: { sections }, version })

export const deleteDocument = (id: string): Promise<void> => call("DELETE", `/api/documents/${encode(id)}`)

/** The bin. */
export const bin = (): Promise<{ documents: BinnedDocument[], retention_seconds: number }> => call("GET", "/api/documents?deleted=true&limit=100")

/** Takes a document out of the bin. */
export const restoreDocument = (id: string): Promise<Document> => call("POST", `/api/documents/${encode(id)}/restore`)

/** Deletes a document of the bin for ever. */
export const purgeDocument = (id: string): Promise<void> => call("DELETE", `/api/documents/${encode(id)}?permanent=true`)

const versionsAt = (document: string, rest: string = "") => `/api/documents/${encode(document)}/versions${rest}`

/** @returns newest first */
export const versions = (
  document: string,
  { cursor }: { cursor?: string | null } = {},
): Promise<{ versions: Version[], next_cursor: string | null }> =>
  call("GET", versionsAt(document, `?limit=100${cursor ? `&cursor=${encode(cursor)}` : ""}`))

export const nameVersion = (document: string, label: string): Promise<Version> => call("POST", versionsAt(document), { body: { label } })

export const version = (document: string, id: string, signal?: AbortSignal): Promise<Version & { text: string }> =>
  call("GET", versionsAt(document, `/${encode(id)}`), { signal })

/** @param against another version, or `current` */
export const difference = (document: string, id: string, against: string, signal?: AbortSignal): Promise<Difference> =>
  call("GET", versionsAt(document, `/${encode(id)}/diff?against=${encode(against)}`), { signal })

export const restore = (document: string, id: string): Promise<Version> => call("POST", versionsAt(document, `/${encode(id)}/restore`))

export const shareLink = (document: string): Promise<Link> => call("POST", `/api/documents/${encode(document)}/share-link`)

export const links = async (): Promise<Link[]> => (await call("GET", "/api/share-links")).share_links ?? []

export const link = (id: string): Promise<Link> => call("GET", `/api/share-links/${encode(id)}`)

export const join = (id: string, invite: string): Promise<Link> =>
  call("POST", `/api/share-links/${encode(id)}/join`, { body: { invite } })

/**
 * A link as a visitor with its invite sees it, signed in or not.
 *
 * @returns `null`: the invite is wrong or void
 */
export const checkInvite = (id: string, invite: string): Promise<Preview | null> =>
  ifThere(call("POST", `/api/share-links/${encode(id)}/invite/check`, { body: { invite } }))

/** Makes a new invite; every older one is void. */
export const renewInvite = (id: string): Promise<Link> => call("POST", `/api/share-links/${encode(id)}/invite`)

export const removeReviewer = (id: string): Promise<void> => call("DELETE", `/api/share-links/${encode(id)}/reviewer`)

/** Makes a refused user the reviewer. */
export const letIn = (id: string, user: string): Promise<Link> => call("PUT", `/api/share-links/${encode(id)}/reviewer`, { body: { user_id: user } })

const reviewsAt = (link: string, rest: string = "") => `/api/share-links/${encode(link)}/reviews${rest}`

export const reviews = (link: string): Promise<Review[]> => all(reviewsAt(link), "reviews")

export const review = (link: string, id: string): Promise<Review> => call("GET", reviewsAt(link, `/${encode(id)}`))

/** @param review `anchor` `null`: on the whole text */
export const createReview = (
  link: string,
  review: { anchor: { start: number, end: number, quote: string } | null, body: string, suggestion?: string },
): Promise<Review> => call("POST", reviewsAt(link), { body: review })

/** @param review as it was shown: a change since is refused */
export const editReview = (link: string, review: Review, changes: { body?: string, suggestion?: string | null }): Promise<Review> =>
  call("PATCH", reviewsAt(link, `/${encode(review.id)}`), { body: changes, version: review.version })

export const deleteReview = (link: string, review: Review): Promise<void> =>
  call("DELETE", reviewsAt(link, `/${encode(review.id)}`), { version: review.version })

export const decide = (link: string, review: Review, decision: "accept" | "reject" | "resolve" | "reopen"): Promise<Review> =>
  call("POST", reviewsAt(link, `/${encode(review.id)}/${decision}`), { version: review.version })

/**
 * Accepts or rejects suggestions at once.
 *
 * @param reviews as they are shown
 * @param moved the guessed places of the only one, which the user has seen
 */
export const decideMany = (link: string, decision: Verdict, reviews: Review[], moved: string[] = []): Promise<DecisionMade> => {
  const body = { decision, reviews: reviews.map(({ id, version }) => ({ id, version, ...(0 < moved.length ? { moved } : {}) })) }
  return call("POST", `/api/share-links/${encode(link)}/decisions`, { body })
}

export const undoDecision = (link: string, id: string): Promise<{ undone: string[] }> =>
  call("POST", `/api/share-links/${encode(link)}/decisions/${encode(id)}/undo`, { body: {} })

export const reply = (link: string, review: Review, body: string): Promise<Review | Reply> =>
  call("POST", reviewsAt(link, `/${encode(review.id)}/replies`), { body: { body } })

const replyAt = (review: Review, { id }: Reply) => `/${encode(review.id)}/replies/${encode(id)}`

export const editReply = (link: string, review: Review, reply: Reply, body: string): Promise<Review> =>
  call("PATCH", reviewsAt(link, replyAt(review, reply)), { body: { body } })

export const deleteReply = (link: string, review: Review, reply: Reply): Promise<Review> => call("DELETE", reviewsAt(link, replyAt(review, reply)))

/** All changes up to this one are seen. */
export const setSeen = (link: string, change: number, { keepalive = false }: { keepalive?: boolean } = {}) =>
  call("PUT", `/api/share-links/${encode(link)}/seen`, { body: { change }, keepalive })

/** Hands the text over. */
export const handOver = (link: string, to: Role): Promise<{ turn: Turn }> => call("POST", `/api/share-links/${encode(link)}/turn`, { body: { to } })

export const heldSeats = (
  bearer: string,
  signal: AbortSignal,
  cursor: string = "",
): Promise<{ sessions: HeldSeat[], nodes: { id: string, name: string | null, sessions: number }[], next_cursor: string | null }> =>
  call("GET", `/api/admin/sessions${cursor && `?cursor=${encode(cursor)}`}`, { bearer, signal })

/** Why a session holds its seat. */
export const seatDetails = (bearer: string, session: string): Promise<SeatDetails> =>
  call("GET", `/api/admin/sessions/${encode(session)}`, { bearer })

/** Held locks by class: of the class `of`, or of all. */
export const heldLocks = (bearer: string, { of, limit, signal }: { of?: string, limit: number, signal?: AbortSignal }): Promise<LockList> =>
  call("GET", `/api/admin/locks?limit=${limit}${of === undefined ? "" : `&class=${encode(of)}`}`, { bearer, signal })

export const revokeLink = (bearer: string, link: string): Promise<void> => call("DELETE", `/api/admin/share-links/${encode(link)}`, { bearer })

export const evictSession = (bearer: string, session: string): Promise<void> =>
  call("DELETE", `/api/admin/sessions/${encode(session)}`, { bearer })
