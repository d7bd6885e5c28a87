/** One's documents and what waits for one's review, with who is there now. Owns the two lists. */

import { showToast } from "../lib/announce.ts"
import * as api from "../lib/api.ts"
import { confirm } from "../lib/confirm.ts"
import { button, byId, el, icon, initial } from "../lib/dom.ts"
import { errorText, toastError } from "../lib/error_text.ts"
import { i18n, number, t, tCount, when } from "../lib/i18n.ts"
import type { Draft } from "../unsaved/drafts.ts"
import { orphanedDrafts, draftsOfClosedPages, orphaned } from "../unsaved/orphaned_drafts.ts"
import { Bin } from "./bin.ts"
import { fillRows } from "./person_rows.ts"
import { byTurn, whose } from "./turns.ts"

/** The interval of polling the holders, in ms. */
const POLL_EVERY = 10_000

export class DocumentList {
  #documents: api.Document[] = []
  #links: api.Link[] = []
  #me: api.User | null = null
  /** The reads so far, and the one that the lists show. */
  #reads = 0
  #shown = 0
  #failed = false
  /** The user's unsaved edits in this browser's journal. */
  #unsaved: Draft[] = []
  #bin = new Bin(() => this.refresh())

  start(me: api.User) {
    this.#me = me
    i18n.addEventListener("change", () => this.#draw())
    document.addEventListener("visibilitychange", () => document.hidden || this.refresh())
    window.setInterval(() => document.hidden || this.refresh(), POLL_EVERY)
    this.refresh().then(() => this.#readDrafts(me))
  }

  async #readDrafts(me: api.User) {
    const { drafts, drop } = await draftsOfClosedPages(me.id)
    this.#unsaved = drafts
    this.#draw()
    const gone = await orphaned(drafts, this.#documents.map(({ id }) => id))
    byId("orphaned").hidden = gone.length === 0
    orphanedDrafts(byId("orphaned-drafts"), drop).show(gone)
  }

  /** Reads the lists now. */
  async refresh() {
    const read = ++this.#reads
    try {
      const [documents, links, bin] = await Promise.all([api.documents(), api.links(), api.bin()])
      // An answer that a later one overtook is old.
      if (read < this.#shown) return
      this.#shown = read
      this.#bin.take(bin)
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
    const paste = button(t("start.paste"), {}, () => byId("way-paste").click())
    const none = el("li", { class: "none" }, el("p", { text: t("start.mine.none") }), paste)
    fill(byId("mine"), documents.map((document) => this.#document(document)), none)
    this.#bin.draw()
    const links = this.#links.filter(({ reviewer }) => reviewer?.id === this.#me?.id)
    for (const [list, turn] of [["waiting", "mine"], ["reviewed", "theirs"]] as const) {
      const rows = links.filter((link) => whose(link, "reviewer") === turn).map((link) => this.#review(link))
      fill(byId(list), rows)
      byId(list).closest("section")?.toggleAttribute("hidden", rows.length === 0)
    }
  }

  #linkOf(document: api.Document) {
    return this.#links.find(({ document_id: id }) => id === document.id)
  }

  #document(document: api.Document) {
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
    remove.dataset.act = "delete"
    const [href, marks] = [`/d/${document.id}`, marksOf(link, "writer")]
    const shown = row({ key: document.id, href, title, marks, facts, here: present(link), action: remove })
    if (this.#unsaved.some((draft) => draft.document === document.id)) shown.append(unsavedLine(href, title))
    return shown
  }

  #review(link: api.Link) {
    const title = link.title || t("start.untitled")
    const facts = [t("start.by", { name: link.writer.name }), ...openFacts(link)]
    return row({ key: link.id, href: `/s/${link.id}`, title, marks: marksOf(link, "reviewer"), facts, here: present(link), action: null })
  }

  /** Moves it into the bin; without a bin it asks before. */
  async #delete(document: api.Document) {
    const title = document.title || t("start.untitled")
    if (!this.#bin.hasRetention && !(await confirm(t("start.delete.sure", { title }), t("start.delete.yes")))) return
    const undo = { text: t("bin.undo"), act: () => void this.#bin.restore(document) }
    const done = () => void (this.#bin.hasRetention && showToast(t("bin.moved", { title }), undo))
    await api.deleteDocument(document.id).then(done, toastError)
    await this.refresh()
  }
}

/** The unsaved edits of a document: opening it puts them back. */
function unsavedLine(href: string, title: string) {
  const go = el("a", { class: "button", href, "aria-label": `${t("start.unsaved.go")}: ${title}`, text: t("start.unsaved.go") })
  return el("p", { class: "row-unsaved" }, icon("alert"), el("span", { text: t("start.unsaved.line") }), go)
}

function openFacts(link: api.Link | undefined) {
  const open = link?.reviews?.open ?? 0
  return 0 < open ? [tCount("start.open", open)] : []
}

/** The turn and what is new, beside a title. */
function marksOf(link: api.Link | undefined, role: api.Role) {
  const unread = link?.reviews?.unread ?? 0
  const by = role === "writer" ? "reviewer" : "writer"
  const marks = 0 < unread ? [el("span", { class: "mark mark-new", "data-role": by, text: t("start.unread", { count: number(unread) }) })] : []
  const peer = role === "writer" ? link?.reviewer : link?.writer
  if (!link?.turn || !peer) return marks
  if (whose(link, role) === "mine") return [el("span", { class: "mark mark-turn", "data-role": role, text: t("start.turn") }), ...marks]
  return [el("span", { class: "mark", text: t("start.turn.theirs", { name: peer.name }) }), ...marks]
}

/** The holders of the seats; `null` while the server cannot tell. */
function present(link: api.Link | undefined) {
  const seats = Object.entries(link?.seats ?? {})
  if (seats.some(([, seat]) => seat.taken === null)) return null
  return seats.filter(([, seat]) => seat.taken).map(([of, seat]) => {
    const role = of as api.Role
    return { role, name: seat.user?.name ?? t(`role.${role}`) }
  })
}

type Shown = { key: string, href: string, title: string, marks: HTMLElement[], facts: string[],
  here: { role: api.Role, name: string }[] | null, action: HTMLElement | null }

function row({ key, href, title, marks, facts, here, action }: Shown) {
  const some = here ?? []
  const names = some.map(({ name }) => name).join(", ")
  const presence = el("p", { class: here?.length === 0 ? "row-here hidden" : "row-here" })
  for (const { role, name } of some) presence.append(initial(name, role))
  const words = here === null ? t("seat.unknown") : 0 < some.length ? t("start.here", { names }) : t("start.none-here")
  presence.append(words)
  return el(
    "li",
    { class: "row", "data-key": key },
    el("div", { class: "row-text" }, el("a", { href, "data-act": "open", text: title }), ...marks, el("p", { class: "quiet", text: facts.join(" · ") })),
    presence,
    action,
  )
}

/** @param none the row of an empty list */
function fill(list: HTMLElement, rows: HTMLElement[], none?: HTMLElement) {
  if (rows.length === 0) delete heading(list).dataset.count
  else heading(list).dataset.count = number(rows.length)
  fillRows(list, rows.length === 0 && none ? [none] : rows, heading(list))
}

/** The heading of a list, which takes the focus when the list is empty. */
function heading(list: HTMLElement) {
  const title = byId(`${list.id}-title`)
  title.tabIndex = -1
  return title
}
