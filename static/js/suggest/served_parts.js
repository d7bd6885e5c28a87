// @ts-check
/** The parts of a suggestion as the server has it, in the base of the page. Pure, tested with `node --test`. */

import { locate, locateGap } from "../reviews/locate.js"

/**
 * @typedef {import("../lib/api.js").Review} Review
 * @typedef {import("../lib/api.js").Anchor} Anchor
 * @typedef {import("./suggesting.js").Part} Part
 */

/**
 * @param {Review} review
 * @param {string} base
 * @returns {Part[] | null} `null`: one of them does not stand, or there is none
 */
export function partsIn(review, base) {
  const parts = review.parts.flatMap(({ anchor, text }) => partIn(anchor, text, base) ?? [])
  return 0 < parts.length && parts.length === review.parts.length ? parts : null
}

/** @param {Anchor} anchor @param {string} text @param {string} base @returns {Part | null} */
function partIn(anchor, text, base) {
  if (anchor.state !== "exact" && anchor.state !== "moved") return null
  const { quote } = anchor
  if (quote === "") {
    const { from } = locateGap(base, anchor)
    return { start: from, end: from, quote, text }
  }
  const { from, to } = locate(base, anchor)
  return base.slice(from, to) === quote ? { start: from, end: to, quote, text } : null
}

/** What became of a suggestion that is closed. @param {Review} review @returns {"accepted" | "rejected" | "withdrawn" | "fulfilled"} */
export function verdictOf({ status, outcome }) {
  if (outcome === "fulfilled" || outcome === "withdrawn") return outcome
  return status === "accepted" ? "accepted" : "rejected"
}
