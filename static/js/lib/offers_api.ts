/** The calls about review offers and the claims of their places. A part of `api.ts`. */

import { all, call, type Schemas } from "./api.ts"

export type Offer = Schemas["Offer"]
export type Claim = Schemas["OfferClaim"]
/** An offer with the reader's own claim. */
export type OfferView = Awaited<ReturnType<typeof offer>>

export const createOffer = (offer: Schemas["NewOffer"]) => call("POST", "/api/review-offers", { body: offer })

/** The reader's own offers, newest first. */
export const ownOffers = () => all("/api/review-offers", "offers", { query: { limit: 100 } })

export const offer = (id: string) => call("GET", "/api/review-offers/{id}", { path: { id } })

export const closeOffer = (id: string) => call("POST", "/api/review-offers/{id}/close", { path: { id } })

/** All claims of an own offer, in their order. */
export const claims = (id: string) => all("/api/review-offers/{id}/claims", "claims", { path: { id }, query: { limit: 100 } })

/** Waits for its turn, up to ten seconds. */
export const claimOffer = (id: string, message: string) =>
  call("POST", "/api/review-offers/{id}/claims", { path: { id }, body: message === "" ? {} : { message } })

/** Its claimant withdraws it, or the owner of the offer declines it. */
export const endClaim = ({ offer_id: id, id: cid }: Claim) => call("DELETE", "/api/review-offers/{id}/claims/{cid}", { path: { id, cid } })

/** Makes partners of both. */
export const acceptClaim = ({ offer_id: id, id: cid }: Claim) => call("POST", "/api/review-offers/{id}/claims/{cid}/accept", { path: { id, cid } })
