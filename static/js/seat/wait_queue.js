// @ts-check
/**
 * The wait queue of a held seat: the length of a wait, and its sentences.
 *
 * One wait on the server is short. The page claims again when it ends, for an hour in all: by then
 * the user has left, and the next waiter is not delayed.
 *
 * Draws nothing, tested with `node --test`.
 */

import { clock, lasting, number, t, when } from "../lib/i18n.js"

/**
 * @typedef {import("../store.js").Holder} Holder
 * @typedef {import("../store.js").QueuePosition} Place
 * @typedef {import("../lib/api.js").Role} Role
 */

/** The longest wait that a server takes, in s. */
const WAIT_MAX = 300
/** The longest wait without a further action of the user, in ms. */
export const PATIENCE = 60 * 60_000

/**
 * The `wait` of the next claim, in seconds: 0 when the time is over.
 *
 * @param {number} since when the waiting began, in ms
 * @param {number} now in ms
 * @returns {number} whole seconds
 */
export function secondsToAsk(since, now) {
  return Math.max(Math.min(Math.ceil((since + PATIENCE - now) / 1_000), WAIT_MAX), 0)
}

/**
 * The holder in an event of the server.
 *
 * @param {any} said `{ name, since, you }`
 * @param {Holder | null} [before] the known holder: not each event has `you`
 * @returns {Holder}
 */
export function holderOf(said, before = null) {
  const name = String(said?.name ?? "")
  // A close frame may have had no room for the whole name.
  const own = said?.you ?? (before?.own === true && name.startsWith(before.name))
  return { name, since: typeof said?.since === "string" ? said.since : null, own: own === true }
}

/**
 * The queue position in an event of the server: 1 is next.
 *
 * @param {unknown} said
 * @returns {number | null} `null` if that is no position
 */
export function positionOf(said) {
  return typeof said === "number" && Number.isInteger(said) && 1 <= said ? said : null
}

/** The holder and the time of the grant, as a sentence. @param {Holder | null} holder @param {Role | null} role */
function holderSentence(holder, role) {
  if (!holder?.name || !holder.since) return t("state.taken.somebody")
  const values = { name: holder.name, time: when(holder.since) }
  return t(role === "writer" ? "state.taken.writer" : "state.taken.reviewer", values)
}

/**
 * The sentence of a held seat.
 *
 * @param {Holder | null} holder
 * @param {Role | null} role
 * @param {{ inVain: boolean }} options whether a wait for it has timed out
 */
export function takenSentence(holder, role, { inVain }) {
  const vain = inVain ? `${t("state.taken.vain", { long: lasting(PATIENCE) })} ` : ""
  if (holder?.own) return `${vain}${t("state.taken.own")}`
  return `${vain}${holderSentence(holder, role)} ${t("state.taken.choose")}`
}

/**
 * The sentence of a waiter.
 *
 * @param {Place} place
 * @param {Holder | null} holder
 * @param {Role | null} role
 */
export function waitingSentence({ position, away }, holder, role) {
  if (away) return t("state.waiting.away")
  if (position === null) return t("state.waiting.asking")
  if (1 < position) {
    const sentence = t("state.waiting.later", { position: number(position) })
    return holder?.own ? sentence : `${sentence} ${holderSentence(holder, role)}`
  }
  if (holder?.own) return t("state.waiting.own")
  if (!holder?.name) return t("state.waiting.next.somebody")
  return `${holderSentence(holder, role)} ${t("state.waiting.next", { name: holder.name })}`
}

/** How long one has waited so far. @param {number} since in ms @param {number} now in ms */
export function waitedSentence(since, now) {
  const time = clock(new Date(since))
  if (now - since < 60_000) return t("state.waiting.since", { time })
  return t("state.waiting.long", { time, long: lasting(now - since) })
}
