// @ts-check
/** The calls about review offers and the claims of their places. A part of `api.js`. */

import { all, call } from "./api.js"

/**
 * @typedef {import("./api.js").User} User
 * @typedef {"open" | "sold-out" | "closed"} OfferState
 * @typedef {{ id: string, owner: User, title: string, message: string | null, capacity: number, remaining: number,
 *   state: OfferState, created_at: string, closed_at: string | null, url: string }} Offer
 * @typedef {{ id: string, offer_id: string, user: User, number: number, state: "claimed" | "accepted",
 *   message: string | null, created_at: string }} Claim
 * @typedef {Offer & { claim: Claim | null }} OfferView an offer with the reader's own claim
 */

/** @param {string} id @param {string} [rest] */
const offerAt = (id, rest = "") => `/api/review-offers/${encodeURIComponent(id)}${rest}`

/** @param {{ title: string, capacity: number, message?: string }} offer @returns {Promise<Offer>} */
export const createOffer = (offer) => call("POST", "/api/review-offers", { body: offer })

/** The reader's own offers, newest first. @returns {Promise<Offer[]>} */
export const ownOffers = () => all("/api/review-offers?limit=100", "offers")

/** @param {string} id @returns {Promise<OfferView>} */
export const offer = (id) => call("GET", offerAt(id))

/** @param {string} id @returns {Promise<Offer>} */
export const closeOffer = (id) => call("POST", offerAt(id, "/close"))

/** All claims of an own offer, in their order. @param {string} id @returns {Promise<Claim[]>} */
export const claims = (id) => all(offerAt(id, "/claims?limit=100"), "claims")

/** Waits for its turn, up to ten seconds. @param {string} id @param {string} message @returns {Promise<Claim>} */
export const claimOffer = (id, message) => call("POST", offerAt(id, "/claims"), { body: message === "" ? {} : { message } })

/** @param {Claim} claim */
const claimAt = ({ offer_id: offer, id }, rest = "") => offerAt(offer, `/claims/${encodeURIComponent(id)}${rest}`)

/** Its claimant withdraws it, or the owner of the offer declines it. @param {Claim} claim @returns {Promise<void>} */
export const endClaim = (claim) => call("DELETE", claimAt(claim))

/** Makes partners of both. @param {Claim} claim @returns {Promise<{ partner: User, claim: Claim }>} */
export const acceptClaim = (claim) => call("POST", claimAt(claim, "/accept"))
