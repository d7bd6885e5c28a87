/** Where `admin.html` begins: the held seats of the cluster and why they are held, and locks by class, live. */

import { Menu } from "../desk/menu.ts"
import { showToast } from "../lib/announce.ts"
import * as api from "../lib/api.ts"
import { confirm } from "../lib/confirm.ts"
import { button, byId, el, fillMeter, initial, meter, write } from "../lib/dom.ts"
import { errorText } from "../lib/error_text.ts"
import { showFailures } from "../lib/failures.ts"
import { ago, clock, i18n, number, t, when, type Sentence } from "../lib/i18n.ts"
import { now } from "../lib/server_clock.ts"
import { AuditSection } from "./audit.ts"
import { Explanation } from "./explain.ts"
import { JobsSection, stateSign } from "./jobs.ts"
import { Locks } from "./locks.ts"
import { Plots } from "./plots.ts"
import { WebhooksSection } from "./webhooks.ts"

/** How often the seats are read, in ms. */
const READ_EVERY = 2_000
const TOKEN = "galley.admin-token"

type HeldSeat = api.HeldSeat & { server?: string }

/** The columns: what they are called, what they are sorted by, what they show. */
const columns: readonly {
  name: Sentence
  by: (seat: HeldSeat) => string | number
  text: (seat: HeldSeat) => string
  title?: (seat: HeldSeat) => string
  kind?: "number" | "id" | "document"
  sign?: (seat: HeldSeat) => HTMLElement
}[] = [
  { name: "admin.user", by: nameOf, text: nameOf, sign: (seat) => initial(nameOf(seat), seat.role) },
  { name: "admin.role", by: (seat) => seat.role, text: (seat) => t(`role.${seat.role}`) },
  { name: "admin.document", by: titleOf, text: titleOf, title: (seat) => seat.share_link_id, kind: "document" },
  { name: "admin.state", by: (seat) => seat.state, text: (seat) => t(`admin.state.${seat.state}`), sign: ({ state }) => stateSign(state) },
  { name: "admin.since", by: (seat) => seat.since ?? "", text: ({ since }) => agoOf(since), title: ({ since }) => (since ? when(since) : "") },
  { name: "admin.seen", by: (seat) => seat.last_seen ?? "", text: (seat) => agoOf(seat.last_seen) },
  { name: "admin.ttl", by: (seat) => seat.ttl_ms ?? Infinity, text: ttlOf, kind: "number", sign: ttlSign },
  { name: "admin.node", by: (seat) => seat.server ?? "", text: (seat) => seat.server ?? "", title: (seat) => seat.node ?? "", kind: "id" },
  { name: "admin.fence", by: (seat) => seat.fence ?? 0, text: (seat) => String(seat.fence ?? "–"), kind: "number" },
]

function agoOf(moment: string | null) {
  return moment ? ago(now() - Date.parse(moment)) : "–"
}

/** The longest lease that was seen: the setting of the server, within one renewal. In ms. */
let leaseSeen = 1

/** How much of the lease is left, as a hair. */
function ttlSign({ ttl_ms: ttl }: HeldSeat) {
  const rest = meter()
  leaseSeen = Math.max(leaseSeen, ttl ?? 0)
  fillMeter(rest, (ttl ?? 0) / leaseSeen)
  return rest
}

/** The holder's name; a key that was set by hand has none. */
function nameOf({ user }: HeldSeat) {
  return user?.name ?? "–"
}

/** The title of the document; a link that is gone has none. */
function titleOf({ title }: HeldSeat) {
  return title === null ? "–" : title || t("start.untitled")
}

/** The identity of a held seat: its lock and its session. */
function keyOf({ lock_key: lock, session_id: session }: HeldSeat) {
  return `${lock} ${session ?? ""}`
}

function ttlOf({ ttl_ms: ttl }: HeldSeat) {
  return ttl === null ? "–" : t("admin.seconds", { count: (ttl / 1000).toFixed(1) })
}

/** One seat: its row, and the row with its explanation while that is open. */
class SeatRows {
  declare seat: HeldSeat
  declare page: { token: () => string, end: (seat: HeldSeat) => void, revoke: (seat: HeldSeat) => void }
  declare row
  #cells
  #explanation: Explanation | null = null
  #explainButton = button(t("admin.why"), { class: "button button-quiet" }, () => this.toggle())

  constructor(seat: HeldSeat, page: { token: () => string, end: (seat: HeldSeat) => void, revoke: (seat: HeldSeat) => void }) {
    this.seat = seat
    this.page = page
    this.#cells = columns.map(({ kind }, at) => (at === 0 ? el("th", { scope: "row" }) : el("td", { class: kind })))
    const name = nameOf(seat)
    this.#explainButton.setAttribute("aria-label", t("admin.why.whose", { name }))
    this.#explainButton.setAttribute("aria-expanded", "false")
    this.#explainButton.setAttribute("aria-controls", this.id)
    const end = button(t("admin.end"), { class: "button button-quiet", label: `${t("admin.end")}: ${name}` }, () => page.end(this.seat))
    const revoke = button(t("admin.revoke"), { class: "button button-quiet", label: `${t("admin.revoke")}: ${titleOf(seat)}, ${name}` }, () => page.revoke(this.seat))
    // A key without a session has no explanation, and no session to evict.
    const buttons = el("td", { class: "does" }, ...(seat.session_id === null ? [] : [this.#explainButton, end]), revoke)
    this.row = el("tr", { "data-session": seat.session_id ?? "" }, ...this.#cells, buttons)
  }

  get id() {
    return `why-${this.seat.lock_key}`
  }

  get rows(): HTMLElement[] {
    return this.#explanation === null ? [this.row] : [this.row, this.#explanation.row]
  }

  draw(seat: HeldSeat) {
    this.seat = seat
    for (const [at, { text, title = text, sign, kind }] of columns.entries()) {
      const cell = this.#cells[at]
      if (cell === undefined) continue
      if (!sign) write(cell, text(seat))
      else if (cell.textContent !== sign(seat).textContent + text(seat)) cell.replaceChildren(sign(seat), text(seat))
      if (kind === "id" || title !== text) cell.title = title(seat)
    }
  }

  /** Asks again, if it is open. */
  read() {
    this.#explanation?.read(this.page.token())
  }

  toggle() {
    const session = this.seat.session_id
    if (this.#explanation === null && session !== null) {
      this.#explanation = new Explanation(this.id, session, columns.length + 1)
      this.row.after(this.#explanation.row)
      this.read()
    } else {
      this.#explanation?.row.remove()
      this.#explanation = null
    }
    this.#explainButton.setAttribute("aria-expanded", String(this.#explanation !== null))
  }
}

class AdminPage {
  #seats: HeldSeat[] = []
  #rows: Map<string, SeatRows> = new Map()
  #locks = new Locks()
  #jobs = new JobsSection()
  #plots = new Plots()
  #webhooks = new WebhooksSection()
  #audit = new AuditSection()
  #nodes = 0
  /** The seats of all pages, and how many pages are shown. */
  #held = 0
  #pages = 1
  #readAt = new Date()
  #token = sessionStorage.getItem(TOKEN) ?? ""
  #sorted = 4
  #down = true
  /** How often it was read, and which of the answers is shown. */
  #reads = 0
  #shown = 0
  #search = byId("search", HTMLInputElement)

  start() {
    const forget = el("button", { type: "button", "data-t": "admin.token.forget" })
    forget.addEventListener("click", () => this.#forget())
    new Menu([], [forget]).start()
    byId("more").addEventListener("click", () => { this.#pages += 1; void this.#read() })
    this.#webhooks.start()
    this.#audit.start()
    byId("token-form", HTMLFormElement).addEventListener("submit", (event) => {
      event.preventDefault()
      this.#token = byId("token", HTMLInputElement).value.trim()
      this.#read()
    })
    this.#search.addEventListener("input", () => this.#draw())
    i18n.addEventListener("change", () => this.#translate())
    window.setInterval(() => this.#token !== "" && !document.hidden && this.#read(), READ_EVERY)
    this.#translate()
    // Without this script the form would send the token as a part of an address.
    byId("token-form").hidden = false
    if (this.#token !== "") this.#read()
    else byId("token").focus()
  }

  #translate() {
    document.title = `${t("admin.operations")} · Galley`
    this.#heads()
    // Other words everywhere: those that are open are opened again.
    const open = [...this.#rows.values()].filter(({ rows }) => 1 < rows.length).map(({ seat }) => keyOf(seat))
    this.#rows.clear()
    this.#draw()
    for (const key of open) this.#rows.get(key)?.toggle()
    this.#locks.redraw()
    this.#jobs.draw()
    this.#plots.draw()
    this.#webhooks.draw()
    this.#audit.draw()
  }

  #forget(error = "") {
    this.#token = ""
    sessionStorage.removeItem(TOKEN)
    byId("token-error").textContent = error
    byId("token-form").hidden = false
    byId("seats").hidden = byId("total").hidden = true
    this.#jobs.forget()
    this.#plots.forget()
    this.#webhooks.forget()
    this.#audit.forget()
    byId("token").focus()
  }

  async #read() {
    const [token, read] = [this.#token, ++this.#reads]
    // The token is forgotten meanwhile, or a later answer was quicker.
    const isStale = () => token !== this.#token || read < this.#shown
    try {
      const signal = AbortSignal.timeout(READ_EVERY * 3)
      // Of the locks the totals only; each class is read where it is opened.
      const [seats, locks] = await Promise.all([this.#seatsOf(token, signal), api.heldLocks(token, { limit: 1, signal })])
      if (isStale()) return
      this.#shown = read
      const { sessions, nodes } = seats
      this.#held = nodes.reduce((sum, node) => sum + node.sessions, 0)
      sessionStorage.setItem(TOKEN, token)
      this.#seats = sessions.map((seat) => ({ ...seat, server: nodes.find((node) => node.id === seat.node)?.name ?? seat.node ?? "–" }))
      this.#nodes = nodes.length
      this.#readAt = new Date(now())
      if (byId("seats").hidden) {
        byId("token", HTMLInputElement).value = ""
        byId("token-form").hidden = true
        byId("seats").hidden = byId("total").hidden = false
        byId("heading").focus()
      }
      this.#draw()
      for (const rows of this.#rows.values()) rows.read()
      this.#locks.show(locks, token)
      const longer = AbortSignal.timeout(READ_EVERY * 3)
      await Promise.all([this.#plots, this.#jobs, this.#webhooks, this.#audit].map((section) => section.read(token, longer)))
    } catch (error) {
      if (isStale()) return
      const refused = error instanceof api.Problem && [401, 403].includes(error.status)
      if (refused) return this.#forget(t("admin.token.wrong"))
      const sentence = t("admin.failed", { time: clock(this.#readAt, { seconds: true }), why: errorText(error) })
      byId("total").textContent = sentence
      byId("token-error").textContent = sentence
    }
  }

  /** As many pages as are shown. */
  async #seatsOf(token: string, signal: AbortSignal) {
    const all = await api.heldSeats(token, signal)
    for (let page = 1; page < this.#pages && all.next_cursor; page++) {
      const { sessions, next_cursor: next } = await api.heldSeats(token, signal, all.next_cursor)
      all.sessions.push(...sessions)
      all.next_cursor = next
    }
    byId("more").hidden = all.next_cursor === null
    return all
  }

  #heads() {
    const heads = columns.map(({ name, kind }, at) => {
      const head = el("th", { scope: "col", class: kind === "number" ? kind : "" })
      head.append(button(t(name), { class: "sort" }, () => this.#sort(at)))
      return head
    })
    const end = el("th", { scope: "col" }, el("span", { class: "hidden", text: t("admin.what") }))
    byId("columns").replaceChildren(...heads, end)
    this.#mark()
  }

  #sort(at: number) {
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
    const words = this.#search.value.trim().toLowerCase().split(/\s+/u)
    const text = (seat: HeldSeat) => [seat.share_link_id, ...columns.map((column) => column.text(seat))].join(" ").toLowerCase()
    const found = this.#seats.filter((seat) => words.every((word) => text(seat).includes(word)))
    const by = columns[this.#sorted]?.by ?? nameOf
    const order = (a: HeldSeat, b: HeldSeat) => (by(a) < by(b) ? -1 : by(b) < by(a) ? 1 : 0)
    found.sort((a, b) => (this.#down ? order(b, a) : order(a, b)))
    const rows = new Map(found.map((seat) => [keyOf(seat), this.#rowsOf(seat)]))
    for (const key of this.#seats.map(keyOf)) {
      const hidden = this.#rows.get(key)
      if (hidden !== undefined && !rows.has(key)) rows.set(key, hidden)
    }
    this.#rows = rows
    this.#showRows(found.flatMap((seat) => rows.get(keyOf(seat))?.rows ?? []))
    byId("total").textContent = t("admin.total", {
      count: number(Math.max(this.#held, this.#seats.length)),
      nodes: number(this.#nodes),
      time: clock(this.#readAt, { seconds: true }),
    })
    byId("more").textContent = t("admin.more", { count: number(this.#seats.length) })
    byId("none").hidden = found.length !== 0
    byId("none").textContent = t(this.#seats.length === 0 ? "admin.none" : "admin.none.match")
  }

  #rowsOf(seat: HeldSeat) {
    const page = {
      token: () => this.#token,
      end: (ended: HeldSeat) => void this.#evict(ended),
      revoke: (of: HeldSeat) => void this.#revoke(of),
    }
    const rows = this.#rows.get(keyOf(seat)) ?? new SeatRows(seat, page)
    rows.draw(seat)
    return rows
  }

  /** Puts the rows there, in that order, and leaves them alone if they are. */
  #showRows(rows: HTMLElement[]) {
    const body = byId("rows")
    const there = [...body.children]
    if (there.length === rows.length && rows.every((row, at) => row === there[at])) return
    const focused = document.activeElement
    const hadFocus = focused instanceof HTMLElement && body.contains(focused)
    const [at, which] = buttonPosition(focused)
    body.replaceChildren(...rows)
    if (!hadFocus) return
    // A row that is moved loses the focus. One that goes hands it on to the one that takes its place.
    if (body.contains(focused)) focused.focus()
    else (buttonAt(at, which) ?? this.#search).focus()
  }

  async #evict(seat: HeldSeat) {
    const session = seat.session_id
    if (session === null) return
    const name = nameOf(seat)
    const question = t("admin.end.sure", { name, role: t(`role.${seat.role}`) })
    if (!(await this.#confirmed(seat, question, t("admin.end.yes")))) return
    await this.#act(() => api.evictSession(this.#token, session), t("admin.ended", { name }), t("admin.gone"))
  }

  async #revoke(seat: HeldSeat) {
    const title = titleOf(seat)
    if (!(await this.#confirmed(seat, t("admin.revoke.sure", { title }), t("admin.revoke.yes")))) return
    await this.#act(() => api.revokeLink(this.#token, seat.share_link_id), t("admin.revoked", { title }), t("admin.revoke.gone"))
  }

  async #confirmed(seat: HeldSeat, question: string, yes: string) {
    const confirmed = await confirm(question, yes)
    // It has gone by itself meanwhile, and so has the button that the focus would return to.
    if (!this.#rows.has(keyOf(seat))) this.#search.focus()
    return confirmed
  }

  async #act(act: () => Promise<unknown>, done: string, gone: string) {
    try {
      await act()
      showToast(done)
    } catch (error) {
      const isGone = error instanceof api.Problem && error.status === 404
      showToast(isGone ? gone : errorText(error))
    }
    if (this.#token !== "") await this.#read()
  }
}

/** The rows of seats, without those that say why. */
function seatRows() {
  return [...byId("rows").querySelectorAll(":scope > tr:not(.panel)")]
}

/** In which row an element is, and which of its buttons it is. */
function buttonPosition(element: Element | null) {
  const row = seatRows().findIndex((row) => row.contains(element))
  const which = [...(seatRows()[row]?.querySelectorAll("button") ?? [])].findIndex((press) => press === element)
  return [row, which] as const
}

/** That button of that row, or of the last where there are no more so many. */
function buttonAt(row: number, which: number) {
  const rows = seatRows()
  return (rows[row] ?? rows.at(-1))?.querySelectorAll("button")[which]
}

await i18n.start({
  en: async () => (await import("../lib/i18n/admin_en.ts")).adminEn,
  ko: async () => (await import("../lib/i18n/admin_ko.ts")).adminKo,
})
showFailures()
new AdminPage().start()
