/** The calls about people: addresses, review requests and partners. A part of `api.ts`. */

import { all, call, type Schemas } from "./api.ts"

/** How other users reach one. */
export type Address = Schemas["Address"]
/** `as`: the role of its sender. */
export type ReviewRequest = Schemas["ReviewRequest"]
export type Partner = Schemas["PartnerList"]["partners"][number]

export const address = () => call("GET", "/api/me/address")

/** Chooses a handle; `null` gives it up. */
export const setHandle = (handle: string | null) => call("PUT", "/api/me/address", { body: { handle } })

/** Makes a new personal link; the old one is unknown. */
export const renewPersonalLink = () => call("POST", "/api/me/address/renew")

/** The user with this address. @param to `@handle` or the token of a personal link */
export const findUser = async (to: string) => (await call("POST", "/api/people/find", { body: { to } })).user

export const sendRequest = (request: Schemas["NewReviewRequest"]) => call("POST", "/api/review-requests", { body: request })

export const request = (id: string) => call("GET", "/api/review-requests/{id}", { path: { id } })

/** All pending requests, sent and received, newest first. */
export const pendingRequests = () => all("/api/review-requests", "requests", { query: { state: "pending", limit: 100 } })

export const acceptRequest = (id: string) => call("POST", "/api/review-requests/{id}/accept", { path: { id } })

export const declineRequest = (id: string) => call("POST", "/api/review-requests/{id}/decline", { path: { id } })

export const declineAllRequests = () => call("POST", "/api/review-requests/decline-all")

export const withdrawRequest = (id: string) => call("POST", "/api/review-requests/{id}/withdraw", { path: { id } })

export const partners = () => all("/api/partners", "partners", { query: { limit: 100 } })

export const removePartner = (user: string) => call("DELETE", "/api/partners/{user_id}", { path: { user_id: user } })
