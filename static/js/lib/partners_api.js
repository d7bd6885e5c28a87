// @ts-check
/** The calls about people: addresses, review requests and partners. A part of `api.js`. */

import { all, call } from "./api.js"

/**
 * @typedef {import("./api.js").User} User
 * @typedef {import("./api.js").Role} Role
 * @typedef {{ handle: string | null, link: { token: string, url: string } }} Address how other users reach one
 * @typedef {"pending" | "accepted" | "declined" | "withdrawn" | "expired"} RequestState
 * @typedef {{ id: string, from: User, to: User, as: Role, message: string | null, document_id: string | null,
 *   title: string | null, state: RequestState, created_at: string, decided_at: string | null,
 *   expires_at: string }} ReviewRequest `as`: the role of its sender
 * @typedef {{ request: ReviewRequest, partner: User, share_link_id: string | null,
 *   share_link: "joined" | "reviewer-exists" | "document-gone" | null }} Accepted
 * @typedef {{ user: User, since: string }} Partner
 */

/** @returns {Promise<Address>} */
export const address = () => call("GET", "/api/me/address")

/** Chooses a handle; `null` gives it up. @param {string | null} handle @returns {Promise<Address>} */
export const setHandle = (handle) => call("PUT", "/api/me/address", { body: { handle } })

/** Makes a new personal link; the old one is unknown. @returns {Promise<Address>} */
export const renewPersonalLink = () => call("POST", "/api/me/address/renew")

/** The user with this address. @param {string} to `@handle` or the token of a personal link @returns {Promise<User>} */
export const findUser = async (to) => (await call("POST", "/api/people/find", { body: { to } })).user

/** @param {{ to: string, as: Role, message?: string, document_id?: string }} request @returns {Promise<ReviewRequest>} */
export const sendRequest = (request) => call("POST", "/api/review-requests", { body: request })

/** @param {string} id @param {string} [rest] */
const requestAt = (id, rest = "") => `/api/review-requests/${encodeURIComponent(id)}${rest}`

/** @param {string} id @returns {Promise<ReviewRequest>} */
export const request = (id) => call("GET", requestAt(id))

/** All pending requests, sent and received, newest first. @returns {Promise<ReviewRequest[]>} */
export const pendingRequests = () => all("/api/review-requests?state=pending&limit=100", "requests")

/** @param {string} id @returns {Promise<Accepted>} */
export const acceptRequest = (id) => call("POST", requestAt(id, "/accept"))

/** @param {string} id @returns {Promise<ReviewRequest>} */
export const declineRequest = (id) => call("POST", requestAt(id, "/decline"))

/** @returns {Promise<{ declined: number }>} */
export const declineAllRequests = () => call("POST", requestAt("decline-all"))

/** @param {string} id @returns {Promise<ReviewRequest>} */
export const withdrawRequest = (id) => call("POST", requestAt(id, "/withdraw"))

/** @returns {Promise<Partner[]>} */
export const partners = () => all("/api/partners?limit=100", "partners")

/** @param {string} user @returns {Promise<void>} */
export const removePartner = (user) => call("DELETE", `/api/partners/${encodeURIComponent(user)}`)
