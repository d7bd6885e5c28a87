// @ts-check
/** Where `admin.html` begins: the held seats of the cluster, live. */

import * as api from "./api.js"
import { button, byId, el } from "./dom.js"
import { Menu } from "./menu.js"
import { show } from "./say.js"
import { sure } from "./sure.js"
import { why } from "./why.js"
import { clock, number, sayAll, t, when, words } from "./words.js"

/** How often the seats are read, in ms. */
const READ_EVERY = 2_000
const TOKEN = "galley.admin-token"

/** @typedef {api.HeldSeat} HeldSeat */

/**
 * The columns: what they are called, what they are sorted by, what they show.
 *
 * @type {readonly { name: import("./words.js").Sentence, by: (seat: HeldSeat) => string | number,
 *   text: (seat: HeldSeat) => string, number?: boolean, id?: boolean }[]}
 */
const columns = [
  { name: "admin.user", by: (seat) => seat.user.name, text: (seat) => seat.user.name },
  { name: "admin.role", by: (seat) => seat.role, text: (seat) => t(`role.${seat.role}`) },
  { name: "admin.link", by: (seat) => seat.share_link_id, text: (seat) => seat.share_link_id, id: true },
  { name: "admin.state", by: (seat) => seat.state, text: (seat) => seat.state },
  { name: "admin.since", by: (seat) => seat.since, text: (seat) => when(seat.since) },
  { name: "admin.seen", by: (seat) => seat.last_seen ?? "", text: (seat) => (seat.last_seen ? clock(new Date(seat.last_seen), { seconds: true }) : "–") },
  { name: "admin.ttl", by: (seat) => seat.ttl_ms, text: (seat) => `${(seat.ttl_ms / 1000).toFixed(1)} s`, number: true },
  { name: "admin.node", by: (seat) => seat.node, text: (seat) => seat.node, id: true },
  { name: "admin.fence", by: (seat) => seat.fence, text: (seat) => String(seat.fence), number: true },
]

class AdminPage {
  /** @type {HeldSeat[]} */
  #seats = []
  #nodes = 0
  #readAt = new Date()
  #token = sessionStorage.getItem(TOKEN) ?? ""
  #sorted = 4
  #down = true
  #timer = 0
  #search = byId("search", HTMLInputElement)

  start() {
    new Menu().start()
    byId("token-form", HTMLFormElement).addEventListener("submit", (event) => {
      event.preventDefault()
      this.#token = byId("token", HTMLInputElement).value.trim()
      this.#read()
    })
    byId("forget").addEventListener("click", () => this.#forget())
    this.#search.addEventListener("input", () => this.#draw())
    words.addEventListener("change", () => this.#say())
    this.#timer = window.setInterval(() => this.#token !== "" && !document.hidden && this.#read(), READ_EVERY)
    this.#say()
    if (this.#token !== "") this.#read()
    else byId("token").focus()
  }

  stop() {
    window.clearInterval(this.#timer)
  }

  #say() {
    sayAll(document)
    document.title = `${t("admin.title")} · Galley`
    this.#heads()
    this.#draw()
  }

  #forget(error = "") {
    this.#token = ""
    sessionStorage.removeItem(TOKEN)
    byId("token-error").textContent = error
    byId("token-form").hidden = false
    byId("seats").hidden = true
    byId("token").focus()
  }

  async #read() {
    try {
      const { sessions, nodes } = await api.heldSeats(this.#token, AbortSignal.timeout(READ_EVERY * 3))
      sessionStorage.setItem(TOKEN, this.#token)
      this.#seats = sessions
      this.#nodes = nodes.length
      this.#readAt = new Date()
      if (byId("seats").hidden) {
        byId("token", HTMLInputElement).value = ""
        byId("token-form").hidden = true
        byId("seats").hidden = false
        this.#search.focus()
      }
      this.#draw()
    } catch (error) {
      const refused = error instanceof api.Problem && [401, 403].includes(error.status)
      if (refused) return this.#forget(t("admin.token.wrong"))
      const said = t("admin.failed", { time: clock(this.#readAt, { seconds: true }), why: why(error) })
      byId("total").textContent = said
      byId("token-error").textContent = said
    }
  }

  #heads() {
    const heads = columns.map(({ name, number: right }, at) => {
      const head = el("th", { scope: "col", class: right ? "number" : "" })
      head.append(button(t(name), { class: "sort" }, () => this.#sort(at)))
      return head
    })
    const end = el("th", { scope: "col" }, el("span", { class: "hidden", text: t("admin.end") }))
    byId("columns").replaceChildren(...heads, end)
    this.#mark()
  }

  /** @param {number} at */
  #sort(at) {
    this.#down = at === this.#sorted ? !this.#down : false
    this.#sorted = at
    this.#mark()
    this.#draw()
  }

  #mark() {
    for (const [at, head] of [...byId("columns").children].entries()) {
      if (at !== this.#sorted) head.removeAttribute("aria-sort")
      else head.setAttribute("aria-sort", this.#down ? "descending" : "ascending")
    }
  }

  #draw() {
    const wanted = this.#search.value.trim().toLowerCase()
    const text = (/** @type {HeldSeat} */ seat) => columns.map((column) => column.text(seat)).join(" ").toLowerCase()
    const found = this.#seats.filter((seat) => text(seat).includes(wanted))
    const by = columns[this.#sorted]?.by ?? ((seat) => seat.since)
    const order = (/** @type {HeldSeat} */ a, /** @type {HeldSeat} */ b) => (by(a) < by(b) ? -1 : by(b) < by(a) ? 1 : 0)
    found.sort((a, b) => (this.#down ? order(b, a) : order(a, b)))
    const held = document.activeElement?.closest("tr")?.dataset.session
    byId("rows").replaceChildren(...found.map((seat) => this.#row(seat)))
    const again = [...byId("rows").querySelectorAll("tr")].find((row) => row.dataset.session === held)
    if (held !== undefined) again?.querySelector("button")?.focus()
    byId("total").textContent = t("admin.total", {
      count: number(this.#seats.length),
      nodes: number(this.#nodes),
      time: clock(this.#readAt, { seconds: true }),
    })
    byId("none").hidden = found.length !== 0
    byId("none").textContent = t(this.#seats.length === 0 ? "admin.none" : "admin.none.match")
  }

  /** @param {HeldSeat} seat */
  #row(seat) {
    const row = el("tr", { "data-session": seat.session_id })
    for (const [at, { text, number: right, id }] of columns.entries()) {
      const look = { class: right ? "number" : id ? "id" : "", title: id ? text(seat) : undefined }
      const cell = el(at === 0 ? "th" : "td", { ...look, text: text(seat) })
      if (at === 0) cell.setAttribute("scope", "row")
      row.append(cell)
    }
    const end = button(t("admin.end"), { class: "button", label: `${t("admin.end")}: ${seat.user.name}` }, () => this.#end(seat))
    row.append(el("td", {}, end))
    return row
  }

  /** @param {HeldSeat} seat */
  async #end(seat) {
    const { name } = seat.user
    const question = t("admin.end.sure", { name, role: t(`role.${seat.role}`) })
    if (!(await sure(question, t("admin.end.yes")))) return
    try {
      await api.endSession(this.#token, seat.session_id)
      show(t("admin.ended", { name }))
    } catch (error) {
      show(why(error))
    }
    await this.#read()
  }
}

new AdminPage().start()
