/** The calls about people: addresses, review requests and partners. A part of `api.ts`. */

import { all, call, type Role, type User } from "./api.ts"

/** How other users reach one. */
export type Address = { handle: string | null, link: { token: string, url: string } }
type RequestState = "pending" | "accepted" | "declined" | "withdrawn" | "expired"
/** `as`: the role of its sender. */
export type ReviewRequest = { id: string, from: User, to: User, as: Role, message: string | null, document_id: string | null,
  title: string | null, state: RequestState, created_at: string, decided_at: string | null,
  expires_at: string }
type Accepted = { request: ReviewRequest, partner: User, share_link_id: string | null,
  share_link: "joined" | "reviewer-exists" | "document-gone" | null }
export type Partner = { user: User, since: string }

export const address = (): Promise<Address> => call("GET", "/api/me/address")

/** Chooses a handle; `null` gives it up. */
export const setHandle = (handle: string | null): Promise<Address> => call("PUT", "/api/me/address", { body: { handle } })

/** Makes a new personal link; the old one is unknown. */
export const renewPersonalLink = (): Promise<Address> => call("POST", "/api/me/address/renew")

/** The user with this address. @param to `@handle` or the token of a personal link */
export const findUser = async (to: string): Promise<User> => (await call("POST", "/api/people/find", { body: { to } })).user

export const sendRequest = (request: { to: string, as: Role, message?: string, document_id?: string }): Promise<ReviewRequest> =>
  call("POST", "/api/review-requests", { body: request })

const requestAt = (id: string, rest: string = "") => `/api/review-requests/${encodeURIComponent(id)}${rest}`

export const request = (id: string): Promise<ReviewRequest> => call("GET", requestAt(id))

/** All pending requests, sent and received, newest first. */
export const pendingRequests = (): Promise<ReviewRequest[]> => all("/api/review-requests?state=pending&limit=100", "requests")

export const acceptRequest = (id: string): Promise<Accepted> => call("POST", requestAt(id, "/accept"))

export const declineRequest = (id: string): Promise<ReviewRequest> => call("POST", requestAt(id, "/decline"))

export const declineAllRequests = (): Promise<{ declined: number }> => call("POST", requestAt("decline-all"))

export const withdrawRequest = (id: string): Promise<ReviewRequest> => call("POST", requestAt(id, "/withdraw"))

export const partners = (): Promise<Partner[]> => all("/api/partners?limit=100", "partners")

export const removePartner = (user: string): Promise<void> => call("DELETE", `/api/partners/${encodeURIComponent(user)}`)
