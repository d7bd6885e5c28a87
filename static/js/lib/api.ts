/**
 * The server's REST side, one function a call.
 *
 * A failure is a `Problem` with the name the server gave it (`/problems/<name>` without the path),
 * so that callers say a sentence about what happened and not about a number.
 */

import type { Setting } from "../sections/sections.ts"
import type { components, paths } from "./openapi.d.ts"
import { measureBy } from "./server_clock.ts"

export type Schemas = components["schemas"]
export type User = Schemas["User"]
export type Entry = Schemas["Entry"]
export type Document = Schemas["Document"]
export type BinnedDocument = Document & Required<Pick<Document, "deleted_at" | "purge_at">>
/** Of a document in the bin, in a problem. */
export type Deletion = { by: User, at: string, purge_at: string }
export type Role = Schemas["Role"]
export type Turn = Schemas["Turn"]
/** Some answers have the invite, and others the seats. */
export type Link = Omit<Schemas["ShareLink"], "reviews" | "seats" | "seen" | "turn"> & Partial<Schemas["ShareLink"]> & { invite?: Schemas["ShareLinkWithInvite"]["invite"] | null }
export type Preview = Schemas["InvitePreview"]
export type Transfer = Schemas["TransferCode"]
export type Anchor = Schemas["Anchor"]
export type AnchorState = Anchor["state"]
export type Reply = Schemas["Reply"]
export type Part = Schemas["Part"]
export type Review = Schemas["Review"]
export type DecisionMade = Schemas["DecisionMade"]
export type Verdict = DecisionMade["decision"]
export type Version = Schemas["Version"]
export type Segment = Schemas["Difference"]["segments"][number]
export type HeldSeat = Schemas["HeldSeat"]
export type SeatDetails = Schemas["SessionDetails"]
export type LockList = Schemas["LockList"]
export type LockClass = LockList["classes"][number]
export type LockAlarm = LockList["alarms"][number]

type Method = "DELETE" | "GET" | "PATCH" | "POST" | "PUT"
/** The addresses that have a method. */
type AddressOf<M extends Method> = { [A in keyof paths]: paths[A] extends { [m in Lowercase<M>]: unknown } ? A : never }[keyof paths]
type Operation<M extends Method, A extends keyof paths> = paths[A] extends { [m in Lowercase<M>]: infer O } ? O : never
type Content<T> = T extends { content: { "application/json": infer J } } ? J : null
type Answer<O> = O extends { responses: infer R } ? { [S in keyof R]: Content<R[S]> }[keyof R] : never
/** `keepalive`: the request outlives the page. */
type Options = { version?: number, bearer?: string, signal?: AbortSignal | undefined, keepalive?: boolean, read?: (response: Response) => void }
/** All that the operation takes: names in the address, the query, the body. */
type Given<O> = Options &
  (O extends { parameters: { path: infer T } } ? { path: T } : { path?: undefined }) &
  (O extends { parameters: { query?: infer T extends object } } ? { query?: T } : { query?: undefined }) &
  (O extends { requestBody: { content: { "application/json": infer T } } } ? { body: T } : O extends { requestBody?: { content: { "application/json": infer T } } } ? { body?: T } : { body?: undefined })
/** The same of any operation. */
type Loose = Options & { path?: Record<string, string>, query?: Query, body?: unknown }
type Query = Record<string, string | number | boolean | undefined>
/** Optional if the operation needs nothing. */
type Rest<T> = {} extends T ? [given?: T] : [given: T]

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
    /** The encoding that an imported text looks like. */
    this.encoding = ""
    /** When to try again, in ms; 0: the server does not know. */
    this.retryAfter = 0
  }
}

/** @returns the JSON of the answer, `null` when it has none */
export async function call<M extends Method, A extends AddressOf<M>>(
  method: M,
  address: A,
  ...[given]: Rest<Given<Operation<M, A>>>
): Promise<Answer<Operation<M, A>>> {
  const { path, query, body, version, bearer, signal, keepalive = false, read } = (given ?? {}) as Loose
  const headers = new Headers({ accept: "application/json" })
  if (body !== undefined) headers.set("content-type", "application/json")
  if (version !== undefined) headers.set("if-match", `"${version}"`)
  if (bearer !== undefined) headers.set("authorization", `Bearer ${bearer}`)
  const init = { method, headers, keepalive, signal: signal ?? null, credentials: "same-origin" as const }
  const payload = body === undefined ? {} : { body: JSON.stringify(body) }
  const sent = performance.now()
  let response
  try {
    response = await fetch(addressOf(address, path, query), { ...init, ...payload })
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

/** The address with its names filled in. A name or a query without a value is left out. */
function addressOf(address: string, path: Record<string, string> = {}, query: Query = {}) {
  const filled = address.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(path[name] ?? ""))
  const pairs = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : `${name}=${encodeURIComponent(value)}`))
  return pairs.length === 0 ? filled : `${filled}?${pairs.join("&")}`
}

/** The problem that an answer carries. @param json the body, `null` if it is none */
export function problemIn(status: number, json: any) {
  const name = String(json?.type ?? "").replace(/^.*\/problems\//, "")
  const problem = new Problem(status, name || "unknown", String(json?.detail ?? json?.title ?? ""), json?.deleted ?? null)
  return Object.assign(problem, { encoding: String(json?.encoding ?? "") })
}

/** The addresses of lists that are read page by page. */
type ListAddress = { [A in AddressOf<"GET">]: Answer<Operation<"GET", A>> extends { next_cursor: string | null } ? A : never }[AddressOf<"GET">]
type Page<A extends ListAddress> = Answer<Operation<"GET", A>>

/** The rows of every page of a list. @param rows their name in the answer */
export async function all<A extends ListAddress, R extends keyof Page<A>>(address: A, rows: R, given: Given<Operation<"GET", A>>): Promise<Page<A>[R]> {
  const found: unknown[] = []
  for (let cursor: string | undefined; ; ) {
    const page: any = await call("GET", address, ...([{ ...given, query: { ...given.query, cursor } }] as any))
    found.push(...page[rows])
    if (!page.next_cursor) return found as Page<A>[R]
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

/** How a user without a sign-in gets one here, and who has one. */
export const entry = () => call("GET", "/api/auth")

/** @returns `null`: no user is signed in */
export const me = async () => (await entry()).user

/** Signs out: the token ends, and the browser forgets the cookie. */
export const signOut = () => call("POST", "/api/auth/leave")

/** Ends the sign-ins of every device. */
export const signOutEverywhere = () => call("DELETE", "/api/me/sessions")

/** A guest corrects the name. */
export async function renameGuest(corrected: string): Promise<User> {
  const { id, name } = await call("PATCH", "/api/me", { body: { name: corrected } })
  return { id, name }
}

/** @param takes whether guests may send requests */
export const setGuestRequests = (takes: boolean) => call("PATCH", "/api/me", { body: { guest_requests: takes } })

/** A code that signs this guest in on another device. */
export const createCode = () => call("POST", "/api/me/transfer")

/** Signs in by a code from another device. */
export const enterByCode = async (code: string) => (await call("POST", "/api/auth/transfer", { body: { code } })).user

export const signInAsGuest = async (name: string) => (await call("POST", "/api/auth/guest", { body: { name } })).user

export const documents = async () => (await call("GET", "/api/documents", { query: { limit: 100 } })).documents

export const document = (id: string) => call("GET", "/api/documents/{id}", { path: { id } })

/** The text as the server has it. */
export async function text(id: string): Promise<string> {
  const headers = { accept: "text/plain, application/json" }
  const response = await fetch(addressOf("/api/documents/{id}/text", { id }), { headers, credentials: "same-origin" }).catch(() => {
    throw new Problem(0, "offline")
  })
  if (!response.ok) throw new Problem(response.status, "unknown")
  return response.text()
}

export const createDocument = (title: string, text: string) => call("POST", "/api/documents", { body: { title, text } })

export const renameDocument = (id: string, title: string) => call("PATCH", "/api/documents/{id}", { path: { id }, body: { title } })

/** The settings of the sections, with their version. */
export async function sections(id: string) {
  let version = 0
  const read = ({ headers }: Response) => void (version = Number(headers.get("etag")?.replaceAll('"', "")))
  const { sections } = await call("GET", "/api/documents/{id}/sections", { path: { id }, read })
  return { sections: sections as (Omit<Setting, "at"> & { at: number | null })[], version }
}

/** @param version the one that they replace */
export const setSections = (id: string, sections: Schemas["NewSections"]["sections"], version: number) =>
  call("PUT", "/api/documents/{id}/sections", { path: { id }, body: { sections }, version })

export const deleteDocument = (id: string) => call("DELETE", "/api/documents/{id}", { path: { id } })

/** The bin. */
export const bin = () => call("GET", "/api/documents", { query: { deleted: true, limit: 100 } }) as Promise<{ documents: BinnedDocument[], retention_seconds: number }>

/** Takes a document out of the bin. */
export const restoreDocument = (id: string) => call("POST", "/api/documents/{id}/restore", { path: { id } })

/** Deletes a document of the bin for ever. */
export const purgeDocument = (id: string) => call("DELETE", "/api/documents/{id}", { path: { id }, query: { permanent: true } })

/** @returns newest first */
export const versions = (id: string, { cursor }: { cursor?: string | null } = {}) =>
  call("GET", "/api/documents/{id}/versions", { path: { id }, query: { limit: 100, cursor: cursor ?? undefined } })

export const nameVersion = (id: string, label: string) => call("POST", "/api/documents/{id}/versions", { path: { id }, body: { label } })

export const version = (id: string, vid: string, signal?: AbortSignal) =>
  call("GET", "/api/documents/{id}/versions/{vid}", { path: { id, vid }, signal })

/** @param against another version, or `current` */
export const difference = (id: string, vid: string, against: string, signal?: AbortSignal) =>
  call("GET", "/api/documents/{id}/versions/{vid}/diff", { path: { id, vid }, query: { against }, signal })

export const restore = (id: string, vid: string) => call("POST", "/api/documents/{id}/versions/{vid}/restore", { path: { id, vid } })

export const shareLink = (id: string) => call("POST", "/api/documents/{id}/share-link", { path: { id } })

export const links = async (): Promise<Link[]> => (await call("GET", "/api/share-links")).share_links

export const link = (id: string) => call("GET", "/api/share-links/{id}", { path: { id } })

export const join = (id: string, invite: string) => call("POST", "/api/share-links/{id}/join", { path: { id }, body: { invite } })

/**
 * A link as a visitor with its invite sees it, signed in or not.
 *
 * @returns `null`: the invite is wrong or void
 */
export const checkInvite = (id: string, invite: string) =>
  ifThere(call("POST", "/api/share-links/{id}/invite/check", { path: { id }, body: { invite } }))

/** Makes a new invite; every older one is void. */
export const renewInvite = (id: string) => call("POST", "/api/share-links/{id}/invite", { path: { id } })

export const removeReviewer = (id: string) => call("DELETE", "/api/share-links/{id}/reviewer", { path: { id } })

/** Makes a refused user the reviewer. */
export const letIn = (id: string, user: string) => call("PUT", "/api/share-links/{id}/reviewer", { path: { id }, body: { user_id: user } })

export const reviews = (id: string) => all("/api/share-links/{id}/reviews", "reviews", { path: { id } })

export const review = (id: string, rid: string) => call("GET", "/api/share-links/{id}/reviews/{rid}", { path: { id, rid } })

/** @param review `anchor` `null`: on the whole text */
export const createReview = (id: string, review: Schemas["NewReview"]) => call("POST", "/api/share-links/{id}/reviews", { path: { id }, body: review })

/** @param review as it was shown: a change since is refused */
export const editReview = (id: string, { id: rid, version }: Review, changes: Schemas["ReviewChanges"]) =>
  call("PATCH", "/api/share-links/{id}/reviews/{rid}", { path: { id, rid }, body: changes, version })

export const deleteReview = (id: string, { id: rid, version }: Review) =>
  call("DELETE", "/api/share-links/{id}/reviews/{rid}", { path: { id, rid }, version })

export const decide = (id: string, { id: rid, version }: Review, decision: "accept" | "reject" | "resolve" | "reopen") =>
  call("POST", `/api/share-links/{id}/reviews/{rid}/${decision}`, { path: { id, rid }, version })

/**
 * Accepts or rejects suggestions at once.
 *
 * @param reviews as they are shown
 * @param moved the guessed places of the only one, which the user has seen
 */
export const decideMany = (link: string, decision: Verdict, reviews: Review[], moved: string[] = []) => {
  const body = { decision, reviews: reviews.map(({ id, version }) => ({ id, version, ...(0 < moved.length ? { moved } : {}) })) }
  return call("POST", "/api/share-links/{id}/decisions", { path: { id: link }, body })
}

export const undoDecision = (id: string, did: string) =>
  call("POST", "/api/share-links/{id}/decisions/{did}/undo", { path: { id, did } })

export const reply = (id: string, { id: rid }: Review, body: string) =>
  call("POST", "/api/share-links/{id}/reviews/{rid}/replies", { path: { id, rid }, body: { body } })

export const editReply = (id: string, { id: rid }: Review, { id: reply }: Reply, body: string) =>
  call("PATCH", "/api/share-links/{id}/reviews/{rid}/replies/{reply}", { path: { id, rid, reply }, body: { body } })

export const deleteReply = (id: string, { id: rid }: Review, { id: reply }: Reply) =>
  call("DELETE", "/api/share-links/{id}/reviews/{rid}/replies/{reply}", { path: { id, rid, reply } })

/** All changes up to this one are seen. */
export const setSeen = (id: string, change: number, { keepalive = false }: { keepalive?: boolean } = {}) =>
  call("PUT", "/api/share-links/{id}/seen", { path: { id }, body: { change }, keepalive })

/** Hands the text over. */
export const handOver = (id: string, to: Role) => call("POST", "/api/share-links/{id}/turn", { path: { id }, body: { to } })

export const heldSeats = (bearer: string, signal: AbortSignal, cursor?: string) =>
  call("GET", "/api/admin/sessions", { query: { cursor }, bearer, signal })

/** Why a session holds its seat. */
export const seatDetails = (bearer: string, id: string) => call("GET", "/api/admin/sessions/{session_id}", { path: { session_id: id }, bearer })

/** Held locks by class: of the class `of`, or of all. */
export const heldLocks = (bearer: string, { of, limit, signal }: { of?: string, limit: number, signal?: AbortSignal }) =>
  call("GET", "/api/admin/locks", { query: { limit, class: of }, bearer, signal })

export const revokeLink = (bearer: string, id: string) => call("DELETE", "/api/admin/share-links/{id}", { path: { id }, bearer })

export const evictSession = (bearer: string, id: string) => call("DELETE", "/api/admin/sessions/{session_id}", { path: { session_id: id }, bearer })
