// @ts-check
/** The two seats: holder and time of the grant, or that the seat is free. Owns one element. */

import { announce } from "../lib/announce.js"
import { byId, el, svg } from "../lib/dom.js"
import { t, tCount, when, words } from "../lib/i18n.js"

/**
 * @typedef {import("../lib/api.js").Role} Role
 * @typedef {import("../store.js").SeatOccupancy} Chair
 */

/** @type {readonly Role[]} */
const roles = ["writer", "reviewer"]
const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" })

export class SeatBadges {
  #stopped = new AbortController()
  #drawn = ""
  /** @type {Record<Role, Chair> | null} */
  #before = null

  /** @param {import("../store.js").Store} store */
  constructor(store) {
    this.store = store
    this.element = byId("chairs")
  }

  start() {
    const { signal } = this.#stopped
    this.store.addEventListener("change", () => this.#draw(), { signal })
    words.addEventListener("change", () => this.#draw(), { signal })
    this.#draw()
  }

  stop() {
    this.#stopped.abort()
  }

  #draw() {
    const { chairs, role: mine, phase } = this.store.state
    this.#announce(chairs)
    const drawn = JSON.stringify([chairs, mine, phase, words.language])
    if (drawn === this.#drawn) return
    this.#drawn = drawn
    this.element.replaceChildren(...roles.map((role) => this.#chair(role, chairs[role])))
  }

  /** @param {Role} role @param {Chair} chair */
  #chair(role, chair) {
    const { role: mine, phase, why } = this.store.state
    const own = role === mine
    // The same user holds the seat in the other tab.
    const sits = ["seated", "uncertain", "taken", "waiting"].includes(phase) || why === "taken_over"
    const here = own ? sits : chair.here
    const state = here ? (chair.away && !own ? "away" : "here") : chair.user ? "absent" : "empty"
    const name = chair.user?.name ?? t(here ? "chair.somebody" : "chair.empty")
    const since = here && chair.since ? when(chair.since) : ""
    const detail = {
      here: since && t("chair.since", { time: since }),
      away: t("chair.away"),
      absent: t("chair.empty"),
      empty: t("chair.nobody"),
    }[state]
    const initial = el("span", { class: "initial", "aria-hidden": "true" })
    if (chair.user) initial.textContent = initialOf(name)
    else initial.append(seatDrawing())
    const who = el("span", { class: "chair-name", text: name })
    if (own) who.append(el("span", { class: "quiet", text: ` (${t("chair.you")})` }))
    const lines = el(
      "span",
      { class: "chair-lines" },
      who,
      el(
        "span",
        { class: "chair-detail" },
        el("span", { text: t(`role.${role}`) }),
        el("span", { class: state === "here" ? "chair-long" : "", text: detail && ` · ${detail}` }),
        el("span", { class: "chair-short", "aria-hidden": "true", text: since && ` · ${since}` }),
        el("span", { text: here && 0 < chair.waiting ? ` · ${tCount("chair.waiting", chair.waiting)}` : "" }),
      ),
    )
    return el("li", { class: "chair", "data-role": role, "data-state": state }, initial, lines)
  }

  /** A seat that changes hands is said once. @param {Record<Role, Chair>} chairs */
  #announce(chairs) {
    const before = this.#before
    this.#before = chairs
    if (!before) return
    for (const role of roles) {
      const [then, now] = [before[role], chairs[role]]
      if (role === this.store.state.role || then.here === now.here) continue
      const user = now.user ?? then.user
      if (!user) continue
      const name = user.name
      announce(t(now.here ? "chair.sat" : "chair.left", { name, role: t(`role.${role}`) }))
    }
  }
}

/** The first letter of a name, as a reader sees letters. @param {string} name */
export function initialOf(name) {
  const [first] = graphemes.segment(name.trim())
  return (first?.segment ?? "?").toLocaleUpperCase()
}

function seatDrawing() {
  const path = svg("path", { d: "M5 2.5v6h6v-6M5 8.5v5M11 8.5v5M4 8.5h8" })
  return svg("svg", { class: "icon", viewBox: "0 0 16 16" }, path)
}
