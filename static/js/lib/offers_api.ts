/** The calls about review offers and the claims of their places. A part of `api.ts`. */

import { all, call, type User } from "./api.ts"

type OfferState = "open" | "sold-out" | "closed"
export type Offer = { id: string, owner: User, title: string, message: string | null, capacity: number, remaining: number,
  state: OfferState, created_at: string, closed_at: string | null, url: string }
export type Claim = { id: string, offer_id: string, user: User, number: number, state: "claimed" | "accepted",
  message: string | null, created_at: string }
/** An offer with the reader's own claim. */
export type OfferView = Offer & { claim: Claim | null }

const offerAt = (id: string, rest: string = "") => `/api/review-offers/${encodeURIComponent(id)}${rest}`

export const createOffer = (offer: { title: string, capacity: number, message?: string }): Promise<Offer> =>
  call("POST", "/api/review-offers", { body: offer })

/** The reader's own offers, newest first. */
export const ownOffers = (): Promise<Offer[]> => all("/api/review-offers?limit=100", "offers")

export const offer = (id: string): Promise<OfferView> => call("GET", offerAt(id))

export const closeOffer = (id: string): Promise<Offer> => call("POST", offerAt(id, "/close"))

/** All claims of an own offer, in their order. */
export const claims = (id: string): Promise<Claim[]> => all(offerAt(id, "/claims?limit=100"), "claims")

/** Waits for its turn, up to ten seconds. */
export const claimOffer = (id: string, message: string): Promise<Claim> =>
  call("POST", offerAt(id, "/claims"), { body: message === "" ? {} : { message } })

const claimAt = ({ offer_id: offer, id }: Claim, rest = "") => offerAt(offer, `/claims/${encodeURIComponent(id)}${rest}`)

/** Its claimant withdraws it, or the owner of the offer declines it. */
export const endClaim = (claim: Claim): Promise<void> => call("DELETE", claimAt(claim))

/** Makes partners of both. */
export const acceptClaim = (claim: Claim): Promise<{ partner: User, claim: Claim }> => call("POST", claimAt(claim, "/accept"))
