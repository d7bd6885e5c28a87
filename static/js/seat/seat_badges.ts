/** The two seats: the holder, whose turn it is, or that the seat is free. Owns one element. */

import { announce } from "../lib/announce.ts"
import { byId, drawWith, el, initial, isDrawn } from "../lib/dom.ts"
import { t, tCount, when } from "../lib/i18n.ts"
import { knowsPeer } from "../desk/policy.ts"
import type { Role } from "../lib/api.ts"
import { roles, type SeatOccupancy, type Store } from "../store.ts"

export class SeatBadges {
  declare store: Store
  declare element
  #before: Record<Role, SeatOccupancy> | null = null

  constructor(store: Store) {
    this.store = store
    this.element = byId("seat-badges")
  }

  start(signal: AbortSignal) {
    drawWith([this.store], () => this.#draw(), signal)
  }

  #draw() {
    const { occupancy, role: mine, phase, quiet, invitedAt, me, link } = this.store.state
    this.#announce(occupancy)
    if (isDrawn(this, occupancy, mine, phase, quiet, invitedAt, me, link?.turn, knowsPeer(this.store.state))) return
    this.element.replaceChildren(...roles.map((role) => this.#badge(role, occupancy[role])))
  }

  #badge(role: Role, seat: SeatOccupancy) {
    const own = role === this.store.state.role
    const state = own ? this.#ownState() : this.#peerState(seat)
    const here = state === "here" || state === "away"
    const { invitedAt, me, link, phase } = this.store.state
    const user = own ? me : seat.user
    const name = user?.name ?? t(here ? "seat.unnamed" : "seat.empty")
    const since = here && seat.since ? t("seat.since", { time: when(seat.since) }) : ""
    const isTurn = state === "here" && link?.turn?.role === role
    const detail = own && !here && phase === "lost" ? t("seat.left") : {
      reconnecting: t("seat.reconnecting"),
      opening: t("saved.opening"),
      unknown: t("seat.unknown"),
      here: isTurn && t("seat.turn"),
      away: t("seat.away"),
      absent: t("seat.empty"),
      empty: invitedAt ? t("seat.invited", { when: when(invitedAt) }) : t("seat.unassigned"),
    }[state]
    const label = el("span", { class: "seat-badge-name", text: name })
    if (own) label.append(el("span", { class: "quiet", text: ` (${t("seat.you")})` }))
    const lines = el(
      "span",
      { class: "seat-badge-text" },
      label,
      el(
        "span",
        { class: "seat-badge-detail" },
        el("span", { text: t(`role.${role}`) }),
        el("span", { class: "seat-badge-state", text: detail ? ` · ${detail}` : "" }),
        el("span", { text: here && 0 < seat.waiting ? ` · ${tCount("seat.waiting", seat.waiting)}` : "" }),
        el("span", { class: "hidden", text: since && ` · ${since}` }),
      ),
    )
    const attributes = { class: "seat-badge", "data-role": role, "data-state": state, "data-turn": String(isTurn), title: since }
    return el("li", attributes, initial(user ? name : "", role), lines)
  }

  /** Of the own seat: another tab of the same user may hold it. */
  #ownState() {
    const { phase, reason, quiet, wasSeated, queuePosition, occupancy, role } = this.store.state
    if (phase === "opening" && !wasSeated) return "opening"
    if (phase === "opening" || (phase === "offline" && !quiet) || queuePosition?.away) return "reconnecting"
    if (phase !== "lost" || reason === "taken_over") return "here"
    return role && occupancy[role].user ? "absent" : "empty"
  }

  /** Of the other seat: unknown while no event and no reply of the server arrives. */
  #peerState(seat: SeatOccupancy) {
    if (!seat.user && !seat.here) return "empty"
    if (seat.here === null || !knowsPeer(this.store.state)) return "unknown"
    if (!seat.here) return "absent"
    return seat.away ? "away" : "here"
  }

  /** A seat that changes hands is said once. */
  #announce(occupancy: Record<Role, SeatOccupancy>) {
    const before = this.#before
    this.#before = occupancy
    if (!before) return
    for (const role of roles) {
      const [then, now] = [before[role], occupancy[role]]
      if (role === this.store.state.role || then.here === now.here) continue
      if (then.here === null || now.here === null) continue
      const user = now.user ?? then.user
      if (!user) continue
      const name = user.name
      announce(t(now.here ? "seat.granted" : "seat.released", { name, role: t(`role.${role}`) }))
    }
  }
}
