/**
 * The state of the desk. One object, changed in one place, announced by one event.
 *
 * Components draw from it and never from each other. Imports nothing that touches the DOM, so it is
 * tested with `node --test`.
 */

import { ample, type Size } from "./desk/document_size.ts"
import type { Deletion, Link, Role, User } from "./lib/api.ts"
import type { Refusal } from "./suggest/sync/refusals.ts"
import type { Retained } from "./unsaved/journal.ts"

export type Phase = "opening" | "seated" | "uncertain" | "offline" | "taken" | "waiting" | "lost"
/** `here`: `null` while the server cannot tell; `waiting`: the number of waiters. */
export type SeatOccupancy = { user: User | null, since: string | null, here: boolean | null, away: boolean, waiting: number }
export type Holder = { name: string, since: string | null, own: boolean }
/** Position in the wait queue: 1 is next, `null` not known yet; since when, by `performance.now()`; whether the connection is lost meanwhile. */
export type QueuePosition = { position: number | null, since: number, away: boolean }
/** Whether the server cannot store: its storage is away, or has no space left, "limit" when it keeps no more in memory either; or why it refuses a suggestion. */
export type Refusing = "no" | "away" | "full" | "limit" | Refusal
export type Saving = { count: number, characters: number, since: Date | null, savedAt: Date | null, slow: boolean,
  refusing: Refusing, retained: Retained }

export interface Desk {
  me: User | null
  role: Role | null
  link: Link | null
  phase: Phase
  wasSeated: boolean // whether the text has been here once, so that it can be read
  idleUntil: number | null // when the idle timeout releases the seat, in ms of the server's clock
  draining: boolean // the server announced its drain
  quiet: boolean // it has just closed, and no notice is shown yet
  retryAt: number | null // when the next attempt to connect is made, by `performance.now()`; `null`: one is being made
  holder: Holder | null // holder of the seat, when `phase` is `taken` or `waiting`
  queuePosition: QueuePosition | null // position in the wait queue, when `phase` is `waiting`
  waitTimedOut: boolean // whether the last wait ended without a seat
  grantUnseen: boolean // whether the wait ended with a seat, and the tab was hidden since
  servedAt: Date | null // when the text on the page was read from the server, without a seat
  silentSince: number | null // since when the server does not answer over its open connection, in ms
  reason: string // why the seat was lost: the end of a `state.lost.*`
  deletion: Deletion | null // of the document, once the page has read it
  occupancy: Record<Role, SeatOccupancy>
  saving: Saving
  unread: number // the number of reviews with changes of the other user that were not seen
  invitedAt: string | null // when this browser copied the invite in force
  damaged: boolean // the document cannot be read to its end, nor changed
  mode: "suggesting" | "reading" // whether a reviewer types in the text
  mayEdit: boolean // whether the own suggestions are in the reviewer's text, so that it may be typed in
  size: Size // how near the document is to what it may take
}

export const roles: readonly Role[] = ["writer", "reviewer"]

/** The roles of the other seats of a link. */
export const peersOf = (role: Role | null) => roles.filter((other) => other !== role)

const vacant: SeatOccupancy = Object.freeze({ user: null, since: null, here: false, away: false, waiting: 0 })

const initial: Desk = {
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
  #state: Readonly<Desk> = initialState

  get state(): Readonly<Desk> {
    return this.#state
  }

  change(patch: Partial<Desk>) {
    if (has(this.#state, patch)) return
    this.#state = Object.freeze({ ...this.#state, ...patch })
    this.dispatchEvent(new CustomEvent("change", { detail: patch }))
  }

  changeOccupancy(role: Role, patch: Partial<SeatOccupancy>) {
    const occupancy = this.#state.occupancy
    const seat = occupancy[role]
    if (!has(seat, patch)) this.change({ occupancy: { ...occupancy, [role]: { ...seat, ...patch } } })
  }

  /** Applies the server's state of the link: title, users, holders of the seats. */
  applyLink(link: Link) {
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

/** Whether a change changes nothing. */
const has = <T extends object>(whole: T, patch: Partial<T>) =>
  Object.entries(patch).every(([key, value]) => whole[key as keyof T] === value)

/** @param owner owner of the seat, whether held or not */
function occupancyOf(owner: User | null, link: Link, role: Role, before: SeatOccupancy): SeatOccupancy {
  const seat = link.seats?.[role]
  return {
    user: seat?.user ?? owner,
    since: seat?.since ?? null,
    here: seat ? seat.taken : false,
    away: (seat?.taken ?? false) && before.away,
    waiting: seat?.waiting ?? 0,
  }
}
