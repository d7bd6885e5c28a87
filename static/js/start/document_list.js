// @ts-check
/** One's documents and what waits for one's review, with who is there now. Owns the two lists. */

import { showToast } from "../lib/announce.js"
import * as api from "../lib/api.js"
import { confirm } from "../lib/confirm.js"
import { button, byId, el, icon } from "../lib/dom.js"
import { errorText } from "../lib/error_text.js"
import { i18n, number, t, tCount, when } from "../lib/i18n.js"
import { orphanedDrafts, draftsOfClosedPages, orphaned } from "../unsaved/orphaned_drafts.js"
import { Bin } from "./bin.js"
import { byTurn, whose } from "./turns.js"

/** The interval of polling the holders, in ms. */
const POLL_EVERY = 10_000

export class DocumentList {
  /** @type {api.Document[]} */
  #documents = []
  /** @type {api.Link[]} */
  #links = []
  /** @type {api.User | null} */
  #me = null
  #timer = 0
  #failed = false
  /** The user's unsaved edits in this browser's journal. @type {import("../unsaved/drafts.js").Draft[]} */
  #unsaved = []
  #stopped = new AbortController()
  #bin = new Bin(() => this.#poll())

  /** @param {api.User} me */
  start(me) {
    const { signal } = this.#stopped
    this.#me = me
    i18n.addEventListener("change", () => this.#draw(), { signal })
    document.addEventListener("visibilitychange", () => document.hidden || this.#poll(), { signal })
    this.#timer = window.setInterval(() => document.hidden || this.#poll(), POLL_EVERY)
    this.#poll().then(() => this.#readDrafts(me))
  }

  /** @param {api.User} me */
  async #readDrafts(me) {
    const { drafts, drop } = await draftsOfClosedPages(me.id)
    this.#unsaved = drafts
    this.#draw()
    const gone = await orphaned(drafts, this.#documents.map(({ id }) => id))
    byId("orphaned").hidden = gone.length === 0
    orphanedDrafts(byId("orphaned-drafts"), drop).show(gone)
  }

  stop() {
    this.#stopped.abort()
    window.clearInterval(this.#timer)
  }

  /** Reads the lists now. */
  refresh() {
    return this.#poll()
  }

  async #poll() {
    try {
      const [documents, links] = await Promise.all([api.documents(), api.links(), this.#bin.read()])
      this.#documents = documents
      this.#links = links
      this.#failed = false
      this.#draw()
    } catch (error) {
      if (!this.#failed) showToast(t("start.failed", { why: errorText(error) }))
      this.#failed = true
    }
  }

  #draw() {
    const documents = byTurn(this.#documents, (document) => whose(this.#linkOf(document), "writer"))
    fill(byId("mine"), documents.map((document) => this.#document(document)), t("start.mine.none"))
    this.#bin.draw()
    const links = this.#links.filter(({ reviewer }) => reviewer?.id === this.#me?.id)
    for (const [list, turn] of /** @type {const} */ ([["waiting", "mine"], ["reviewed", "theirs"]])) {
      const rows = links.filter((link) => whose(link, "reviewer") === turn).map((link) => this.#review(link))
      fill(byId(list), rows, t("start.waiting.none"))
      byId(list).closest("section")?.toggleAttribute("hidden", rows.length === 0)
    }
  }

  /** @param {api.Document} document */
  #linkOf(document) {
    return this.#links.find(({ document_id: id }) => id === document.id)
  }

  /** @param {api.Document} document */
  #document(document) {
    const link = this.#linkOf(document)
    const title = document.title || t("start.untitled")
    const facts = [
      t("start.characters", { count: number(document.characters) }),
      t("start.changed", { when: when(document.updated_at) }),
      link?.reviewer ? t("start.with", { name: link.reviewer.name }) : t("start.no-reviewer"),
      ...openFacts(link),
    ]
    const remove = button(t("start.delete"), { class: "button button-quiet", label: `${t("start.delete")}: ${title}` })
    remove.addEventListener("click", () => this.#delete(document))
    const [href, marks] = [`/d/${document.id}`, marksOf(link, "writer")]
    const shown = row({ key: document.id, href, title, marks, facts, here: present(link), action: remove })
    if (this.#unsaved.some((draft) => draft.document === document.id)) shown.append(unsavedLine(href, title))
    return shown
  }

  /** @param {api.Link} link */
  #review(link) {
    const title = link.title || t("start.untitled")
    const facts = [t("start.by", { name: link.writer.name }), ...openFacts(link)]
    return row({ key: link.id, href: `/s/${link.id}`, title, marks: marksOf(link, "reviewer"), facts, here: present(link), action: null })
  }

  /** Moves it into the bin; without a bin it asks before. @param {api.Document} document */
  async #delete(document) {
    const title = document.title || t("start.untitled")
    if (!this.#bin.hasRetention && !(await confirm(t("start.delete.sure", { title }), t("start.delete.yes")))) return
    try {
      await api.deleteDocument(document.id)
      const undo = { text: t("bin.undo"), act: () => void this.#bin.restore(document) }
      if (this.#bin.hasRetention) showToast(t("bin.moved", { title }), undo)
    } catch (error) {
      showToast(errorText(error))
    }
    await this.#poll()
  }
}

/** The unsaved edits of a document: opening it puts them back. @param {string} href @param {string} title */
function unsavedLine(href, title) {
  const go = el("a", { class: "button", href, "aria-label": `${t("start.unsaved.go")}: ${title}`, text: t("start.unsaved.go") })
  return el("p", { class: "row-unsaved" }, icon("alert"), el("span", { text: t("start.unsaved.line") }), go)
}

/** @param {api.Link | undefined} link */
function openFacts(link) {
  const open = link?.reviews?.open ?? 0
  return 0 < open ? [tCount("start.open", open)] : []
}

/** The turn and what is new, beside a title. @param {api.Link | undefined} link @param {api.Role} role */
function marksOf(link, role) {
  const unread = link?.reviews?.unread ?? 0
  const marks = 0 < unread ? [el("span", { class: "mark mark-new", text: t("start.unread", { count: number(unread) }) })] : []
  const peer = role === "writer" ? link?.reviewer : link?.writer
  if (!link?.turn || !peer) return marks
  if (whose(link, role) === "mine") return [el("span", { class: "mark mark-turn", text: t("start.turn") }), ...marks]
  return [el("span", { class: "mark", text: t("start.turn.theirs", { name: peer.name }) }), ...marks]
}

/** @param {api.Link | undefined} link */
function present(link) {
  const seats = Object.entries(link?.seats ?? {}).filter(([, seat]) => seat.taken)
  return seats.map(([role, seat]) => ({ role, name: seat.user?.name ?? t(`role.${/** @type {api.Role} */ (role)}`) }))
}

/**
 * @param {{ key: string, href: string, title: string, marks: HTMLElement[], facts: string[],
 *   here: { role: string, name: string }[], action: HTMLElement | null }} options
 */
function row({ key, href, title, marks, facts, here, action }) {
  const names = here.map(({ name }) => name).join(", ")
  const presence = el("p", { class: "row-here", "data-here": String(0 < here.length) })
  for (const { role } of here) presence.append(el("span", { class: "dot", "data-role": role }))
  presence.append(0 < here.length ? t("start.here", { names }) : t("start.none-here"))
  return el(
    "li",
    { class: "row", "data-key": key },
    el("div", { class: "row-text" }, el("a", { href, text: title }), ...marks, el("p", { class: "quiet", text: facts.join(" · ") })),
    presence,
    action,
  )
}

/**
 * Draws the list anew, and puts the focus back where it was in it.
 *
 * @param {HTMLElement} list
 * @param {HTMLElement[]} rows
 * @param {string} none
 */
function fill(list, rows, none) {
  const focused = document.activeElement
  const key = focused instanceof HTMLElement && list.contains(focused) ? focused.closest("li")?.dataset.key : undefined
  const tag = focused?.tagName ?? ""
  const at = [...list.children].findIndex((row) => row.contains(focused))
  list.replaceChildren(...(rows.length === 0 ? [el("li", { class: "quiet", text: none })] : rows))
  const again = rows.find((row) => row.dataset.key === key)?.querySelector(tag || "a")
  if (key === undefined) return
  // The row may be gone: the focus goes on in the row that follows, or in the heading.
  const next = again ?? rows[Math.min(at, rows.length - 1)]?.querySelector(tag || "a") ?? heading(list)
  if (next instanceof HTMLElement) next.focus()
}

/** The heading of a list, which takes the focus when the list is empty. @param {HTMLElement} list */
function heading(list) {
  const title = list.closest("section")?.querySelector("h2")
  title?.setAttribute("tabindex", "-1")
  return title
}
