// @ts-check
/**
 * The state of the desk. One object, changed in one place, announced by one event.
 *
 * Components draw from it and never from each other. Imports nothing that touches the DOM, so it is
 * tested with `node --test`.
 */

import { ample } from "./desk/document_size.ts"

/**
 * @typedef {import("./lib/api.js").User} User
 * @typedef {import("./lib/api.js").Role} Role
 * @typedef {import("./lib/api.js").Link} Link
 *
 * @typedef {"opening" | "seated" | "uncertain" | "offline" | "taken" | "waiting" | "lost"} Phase
 * @typedef {{ user: User | null, since: string | null, here: boolean | null, away: boolean, waiting: number }} SeatOccupancy
 *   `here`: `null` while the server cannot tell; `waiting`: the number of waiters
 * @typedef {{ name: string, since: string | null, own: boolean }} Holder
 * @typedef {{ position: number | null, since: number, away: boolean }} QueuePosition position in the wait queue: 1
 *   is next, `null` not known yet; since when, by `performance.now()`; whether the connection is lost meanwhile
 * @typedef {"no" | "away" | "full" | "limit" | import("./suggest/refusals.ts").Refusal} Refusing whether the server cannot
 *   store: its storage is away, or has no space left, "limit" when it keeps no more in memory either; or why it refuses a
 *   suggestion
 * @typedef {{ count: number, characters: number, since: Date | null, savedAt: Date | null, slow: boolean,
 *   refusing: Refusing, retained: import("./unsaved/journal.ts").Retained }} Saving
 *
 * @typedef {object} Desk
 * @property {User | null} me
 * @property {Role | null} role
 * @property {Link | null} link
 * @property {Phase} phase
 * @property {boolean} wasSeated whether the text has been here once, so that it can be read
 * @property {number | null} idleUntil when the idle timeout releases the seat, in ms of the server's clock
 * @property {boolean} draining the server announced its drain
 * @property {boolean} quiet it has just closed, and no notice is shown yet
 * @property {number | null} retryAt when the next attempt to connect is made, by `performance.now()`;
 *   `null`: one is being made
 * @property {Holder | null} holder holder of the seat, when `phase` is `taken` or `waiting`
 * @property {QueuePosition | null} queuePosition position in the wait queue, when `phase` is `waiting`
 * @property {boolean} waitTimedOut whether the last wait ended without a seat
 * @property {boolean} grantUnseen whether the wait ended with a seat, and the tab was hidden since
 * @property {Date | null} servedAt when the text on the page was read from the server, without a seat
 * @property {number | null} silentSince since when the server does not answer over its open connection, in ms
 * @property {string} reason why the seat was lost: the end of a `state.lost.*`
 * @property {import("./lib/api.js").Deletion | null} deletion of the document, once the page has read it
 * @property {Record<Role, SeatOccupancy>} occupancy
 * @property {Saving} saving
 * @property {number} unread the number of reviews with changes of the other user that were not seen
 * @property {string | null} invitedAt when this browser copied the invite in force
 * @property {boolean} damaged the document cannot be read to its end, nor changed
 * @property {"suggesting" | "reading"} mode whether a reviewer types in the text
 * @property {boolean} mayEdit whether the own suggestions are in the reviewer's text, so that it may be typed in
 * @property {import("./desk/document_size.ts").Size} size how near the document is to what it may take
 */

/** @type {readonly Role[]} */
export const roles = ["writer", "reviewer"]

/** The roles of the other seats of a link. @param {Role | null} role */
export const peersOf = (role) => roles.filter((other) => other !== role)

/** @type {SeatOccupancy} */
const vacant = Object.freeze({ user: null, since: null, here: false, away: false, waiting: 0 })

/** @type {Desk} */
const initial = {
  me: null,
  role: null,
  link: null,
  phase: "opening",
  wasSeated: false,
  idleUntil: null,
  draining: false,
  quiet: false,
  retryAt: null,
  holder: null,
  queuePosition: null,
  waitTimedOut: false,
  grantUnseen: false,
  servedAt: null,
  silentSince: null,
  reason: "",
  deletion: null,
  occupancy: { writer: vacant, reviewer: vacant },
  saving: { count: 0, characters: 0, since: null, savedAt: null, slow: false, refusing: "no", retained: "yes" },
  unread: 0,
  invitedAt: null,
  damaged: false,
  mode: "reading",
  mayEdit: false,
  size: ample,
}
const initialState = Object.freeze(initial)

/** Holds the state and fires `change` after each step; `detail` is what was changed. */
export class Store extends EventTarget {
  /** @type {Readonly<Desk>} */
  #state = initialState

  /** @returns {Readonly<Desk>} */
  get state() {
    return this.#state
  }

  /** @param {Partial<Desk>} patch */
  change(patch) {
    if (has(this.#state, patch)) return
    this.#state = Object.freeze({ ...this.#state, ...patch })
    this.dispatchEvent(new CustomEvent("change", { detail: patch }))
  }

  /** @param {Role} role @param {Partial<SeatOccupancy>} patch */
  changeOccupancy(role, patch) {
    const occupancy = this.#state.occupancy
    const seat = occupancy[role]
    if (!has(seat, patch)) this.change({ occupancy: { ...occupancy, [role]: { ...seat, ...patch } } })
  }

  /** Applies the server's state of the link: title, users, holders of the seats. @param {Link} link */
  applyLink(link) {
    const { occupancy } = this.#state
    this.change({
      link,
      occupancy: {
        writer: occupancyOf(link.writer, link, "writer", occupancy.writer),
        reviewer: occupancyOf(link.reviewer, link, "reviewer", occupancy.reviewer),
      },
    })
  }

  /** Whether the user may act in its role now. */
  get seated() {
    return this.#state.phase === "seated"
  }
}

/** Whether a change changes nothing. @template {object} T @param {T} whole @param {Partial<T>} patch */
const has = (whole, patch) =>
  Object.entries(patch).every(([key, value]) => whole[/** @type {keyof T} */ (key)] === value)

/**
 * @param {User | null} owner owner of the seat, whether held or not
 * @param {Link} link
 * @param {Role} role
 * @param {SeatOccupancy} before
 * @returns {SeatOccupancy}
 */
function occupancyOf(owner, link, role, before) {
  const seat = link.seats?.[role]
  return {
    user: seat?.user ?? owner,
    since: seat?.since ?? null,
    here: seat ? seat.taken : false,
    away: (seat?.taken ?? false) && before.away,
    waiting: seat?.waiting ?? 0,
  }
}
