// @ts-check
/** The desk: makes its parts, and carries what one says to the others. */

import * as api from "../lib/api.js"
import { Bell } from "../seat/seat_alert.js"
import { Chairs } from "../seat/seat_badges.js"
import { Connection } from "../seat/connection.js"
import { button, byId, copy, download, el, icon } from "../lib/dom.js"
import { Editor } from "./editor.js"
import { Foot } from "./text_counts_bar.js"
import { ample, fileName, sizeIn } from "./document_size.js"
import { reviewsAt } from "../reviews/highlights.js"
import { History } from "../history/history.js"
import { Kept } from "../unsaved/recovered_drafts.js"
import { Keys } from "./shortcuts.js"
import { Margin } from "../reviews/margin.js"
import { Menu } from "./menu.js"
import { Notices } from "./banner.js"
import { Presence } from "./presence.js"
import { ReviewActs } from "../reviews/actions.js"
import { Reviews } from "../reviews/reviews.js"
import { SaveWatch } from "../unsaved/save_watch.js"
import { say, show } from "../lib/announce.js"
import { SelectionBar } from "../reviews/selection_bar.js"
import { SignOut } from "./sign_out.js"
import { Store } from "../store.js"
import { Title } from "./title.js"
import { Y } from "../lib/vendor.js"
import { t, tCount, words } from "../lib/i18n.js"

/** Several events about who is here are answered with one question to the server, after so many ms. */
const GATHER = 250
/** Nobody says that a line has moved: for as long as one is shown it is asked for so often, in ms. */
const LINE_EVERY = 15_000
/** Moving to another server is nobody's business for so long, in ms. */
const QUIET = 2_000

export class DeskPage {
  #stopped = new AbortController()
  #asking = 0
  #quiet = 0

  /** @param {import("../seat/entry.js").Arrival} arrival */
  constructor({ me, link, role }) {
    const doc = new Y.Doc()
    const text = doc.getText("content")
    this.store = new Store()
    this.store.change({ me, role })
    this.store.linkRead(link)
    this.role = role
    this.link = link
    this.connection = new Connection(doc, link.id, role)
    this.editor = new Editor(byId("paper"), text, role)
    this.watch = new SaveWatch(doc, text, {
      user: me.id,
      document: link.document_id,
      title: () => this.store.state.link?.title ?? "",
    })
    this.kept = new Kept(byId("kept"), {
      drop: (draft) => this.watch.journal.drop(draft),
      mayPutBack: (draft) => this.store.seated && this.watch.mayPutBack(draft),
      putBack: (draft) => {
        this.watch.putBack(draft)
        say(t("kept.done"))
        this.editor.focus()
      },
    })
    this.reviews = new Reviews(this.editor, link.id, me.id)
    this.acts = new ReviewActs(this.editor, this.reviews)
    this.margin = new Margin(this.editor, this.reviews, this.store, this.acts)
    this.acts.margin = this.margin
    this.presence = new Presence(this.editor.view, text, this.connection.awareness, {
      name: me.name,
      role,
      nameOf: (other) => this.store.state.chairs[other].user?.name ?? t(`role.${other}`),
    })
    this.history = new History(this.store, this.editor, link.document_id)
    this.selection = new SelectionBar(
      this.editor,
      () => role === "reviewer" && this.store.seated,
      (options) => this.acts.begin(options),
    )
    this.keys = new Keys(this.#commands())
    this.parts = [
      this.watch,
      this.kept,
      this.reviews,
      this.margin,
      this.presence,
      new Title(this.store),
      new Bell(this.store),
      new Chairs(this.store),
      new Notices(this.store, this.#ways()),
      new Foot(this.editor, link.document_id),
      this.keys,
      this.history,
      new Menu(this.#menu()),
      this.selection,
      this.connection,
    ]
  }

  start() {
    const { signal } = this.#stopped
    document.body.dataset.role = this.role
    this.connection.addEventListener("phase", () => this.#phase(), { signal })
    this.connection.addEventListener("told", (event) => this.#told(/** @type {CustomEvent} */ (event).detail), { signal })
    this.connection.addEventListener("answered", () => this.watch.resent(), { signal })
    this.connection.addEventListener("attempt", () => this.store.change({ retryAt: this.connection.retryAt }), { signal })
    this.watch.addEventListener("change", () => this.store.change({ saving: this.watch.state }), { signal })
    this.presence.addEventListener("change", () => this.#peer(), { signal })
    this.editor.addEventListener("select", (event) => this.#selected(/** @type {CustomEvent} */ (event).detail), { signal })
    this.editor.addEventListener("press", (event) => this.#pressed(/** @type {CustomEvent} */ (event).detail), { signal })
    this.reviews.addEventListener("came", (event) => {
      const { author, anchor } = /** @type {CustomEvent<api.Review>} */ (event).detail
      say(t("review.new", { name: author.name, quote: anchor.quote.slice(0, 60) }))
    }, { signal })
    words.addEventListener("change", () => {
      this.editor.speak()
      this.margin.speak()
      this.#invite()
    }, { signal })
    for (const sign of ["keydown", "pointerdown", "wheel"]) {
      window.addEventListener(sign, () => this.#stir(), { signal, passive: true })
    }
    // The title and who is here may have changed while nobody looked.
    document.addEventListener("visibilitychange", () => document.hidden || this.#askSoon(), { signal })
    byId("invite").addEventListener("click", () => this.#copyInvite(), { signal })
    this.store.addEventListener("change", () => this.#invite(), { signal })
    for (const part of this.parts) part.start()
    this.#invite()
    if (this.role === "writer") this.#bringBack()
  }

  stop() {
    this.#stopped.abort()
    window.clearTimeout(this.#asking)
    window.clearTimeout(this.#quiet)
    for (const part of this.parts.toReversed()) part.stop()
    this.editor.stop()
  }

  #phase() {
    const { phase, holder, place, inVain, why, draining } = this.connection
    const before = this.store.state
    // Who waited is told by the bell.
    const back = before.wasSeated && !["seated", "waiting"].includes(before.phase) && phase === "seated"
    const wasSeated = before.wasSeated || phase === "seated"
    const quiet = phase === "offline" && draining && (before.phase === "seated" || before.quiet)
    // It is said once, and a seat that cannot be confirmed for a moment is still given back.
    const idleUntil = phase === "seated" || phase === "uncertain" ? before.idleUntil : null
    this.store.change({ phase, holder, place, inVain, why, draining, quiet, wasSeated, idleUntil })
    window.clearTimeout(this.#quiet)
    if (quiet) this.#quiet = window.setTimeout(() => this.store.change({ quiet: false }), QUIET)
    // Until then nobody knows what is in the text, and nothing may say that it is empty.
    document.body.dataset.read = String(wasSeated)
    if (before.phase === "taken" && phase === "taken") show(t("state.taken.still"))
    // A writer goes on while the connection is away: only they can write, so nothing can clash.
    const may = this.role === "writer" && this.store.state.wasSeated && !this.store.state.damaged
    this.editor.mayType(may && (phase === "seated" || phase === "offline"))
    this.selection.drawSoon()
    if (phase === "lost" && why === "taken_over") this.#askSoon()
    if (phase === "lost" || (phase === "taken" && wasSeated)) this.watch.hold(phase === "lost" ? why : "taken_over")
    if (this.role === "writer" && ["seated", "taken", "lost"].includes(phase)) this.#bringBack()
    if (phase !== "seated") return
    this.watch.release()
    if (back) say(t(before.phase === "uncertain" ? "state.restored" : "state.back"))
    this.reviews.read().catch(() => undefined)
    this.#askSoon()
    this.presence.publish()
  }

  /** Somebody is here after all. */
  #stir() {
    if (this.store.state.idleUntil === null) return
    this.store.change({ idleUntil: null })
    this.presence.stir()
  }

  /**
   * What pages that are gone could not save is put back; but not without a question what somebody was
   * told is lost, which they may have written anew. What does not fit can only be read.
   */
  async #bringBack() {
    const left = await this.watch.left()
    // Without the seat it can only be read; while that is being asked for, what is plain is not shown.
    const isOpening = this.store.state.phase === "opening"
    if (!this.store.seated) return this.kept.show(left.filter(({ lost }) => !isOpening || lost !== null))
    const plain = left.filter((draft) => draft.lost === null && this.watch.mayPutBack(draft))
    for (const draft of plain) this.watch.putBack(draft)
    const count = plain.reduce((sum, draft) => sum + draft.count, 0)
    if (0 < count) show(tCount("state.brought-back", count))
    this.kept.show(left.filter((draft) => !plain.includes(draft)))
  }

  /** @param {import("../seat/connection.js").Told} told */
  #told(told) {
    switch (told.event) {
      case "document.saved":
        return this.watch.saved(told.state_vector)
      case "review.created":
      case "review.updated":
        return this.reviews.take(told.review)
      case "review.deleted":
        return this.reviews.drop(told.review.id)
      case "peer.joined":
      case "peer.left":
        return this.#came(told.role, told.user, told.event === "peer.joined")
      case "seat.idle":
        return this.store.change({ idleUntil: Date.parse(told.release_at) })
      case "seat.granted":
        // If it is otherwise, that is said next.
        this.store.change({ damaged: false })
        return this.#sized(ample)
      case "document.size":
        return this.#sized(sizeIn(told))
      case "denied":
        this.watch.denied()
        // Of a writer's edit that was not taken, something else says more.
        return told.reason === "not-the-writer" ? show(t("state.denied")) : undefined
      case "server.draining":
        return this.store.change({ draining: true })
      case "problem":
        return this.#problem(told)
      default:
        // A newer server may say more than this page knows.
        return undefined
    }
  }

  /** @param {import("./document_size.js").Size} size */
  #sized(size) {
    this.editor.mayGrow(size.state !== "full")
    this.store.change({ size })
  }

  /** @param {import("../seat/connection.js").Told} told */
  #problem(told) {
    if (told.type === "/problems/not-saved") return this.watch.refused(told.status === 507 ? "full" : "away")
    // Said by `document.size`, which also says when it is over.
    if (told.type === "/problems/document-too-large") return
    if (told.type === "/problems/document-reset") {
      this.connection.stop()
      this.watch.hold("reset")
      this.store.change({ phase: "lost", why: "reset" })
      // Last: while the connection ended the page took it for lost, and a writer goes on then.
      return this.editor.mayType(false)
    }
    if (told.type === "/problems/document-damaged") {
      this.editor.mayType(false)
      return this.store.change({ damaged: true })
    }
    if (told.type === "/problems/unsaved-full") return this.watch.refused("limit")
    show(t("state.problem", { why: String(told.title ?? "") }))
  }

  /** @param {api.Role} role @param {api.User} user @param {boolean} here */
  #came(role, user, here) {
    if (role !== this.role) {
      const since = here ? new Date().toISOString() : null
      this.store.changeChair(role, { user, here, since, away: false })
    }
    this.#askSoon()
  }

  #peer() {
    const other = this.role === "writer" ? "reviewer" : "writer"
    this.store.changeChair(other, { away: this.presence.other?.away ?? false })
  }

  /** Asks the server who sits where since when. */
  #askSoon(after = GATHER) {
    window.clearTimeout(this.#asking)
    this.#asking = window.setTimeout(async () => {
      const link = await api.link(this.link.id).catch(() => null)
      const invite = this.store.state.link?.invite ?? null
      if (link) this.store.linkRead({ ...link, invite })
      const { writer, reviewer } = this.store.state.chairs
      if (0 < writer.waiting + reviewer.waiting && !document.hidden) this.#askSoon(LINE_EVERY)
    }, after)
  }

  /** @param {boolean} moved whether the caret moved, and not only the text under it */
  #selected(moved) {
    if (moved) this.presence.publish()
    else this.presence.publishSoon()
    if (!moved || this.acts.isDrafting || !this.editor.view.hasFocus) return
    const { from, to } = this.editor.selection
    this.margin.activate(from === to ? (reviewsAt(this.editor.marked, from)[0] ?? null) : null)
  }

  /** @param {string} review */
  #pressed(review) {
    if (this.acts.isDrafting) return
    this.margin.activate(review)
    this.margin.openSheet()
  }

  #ways() {
    return {
      again: () => this.connection.again(),
      takeOver: () => this.connection.again({ takeover: true }),
      wait: () => this.connection.wait(),
      leave: () => this.connection.leave(),
      now: () => this.connection.now(),
      lost: () => this.watch.lost(),
      discard: () => this.watch.discard().then(() => location.reload()),
      text: () => this.editor.focus(),
      copyText: () => copy(this.editor.text),
      saveText: () => download(fileName(this.store.state.link?.title ?? "", t("start.untitled")), this.editor.text),
      keep: () => this.#stir(),
    }
  }

  /** @returns {import("./shortcuts.js").Commands} */
  #commands() {
    return {
      comment: () => this.role === "reviewer" && this.store.seated && this.acts.begin({ suggests: false }),
      next: () => this.#step(1),
      previous: () => this.#step(-1),
      accept: () => this.#decide("accept"),
      resolve: () => this.#decide("resolve"),
      history: () => this.history.open(),
      text: () => this.#backToText(),
    }
  }

  /** @param {1 | -1} by */
  #step(by) {
    const order = [...this.reviews.orphans, ...this.reviews.open].map(({ id }) => id)
    if (order.length === 0) return
    const now = order.indexOf(this.margin.active ?? "")
    const next = order[now === -1 ? (by === 1 ? 0 : order.length - 1) : (now + by + order.length) % order.length]
    if (next === undefined) return
    const place = this.reviews.placeOf(next)
    if (place) this.editor.show(place)
    this.margin.activate(next)
    this.margin.focusCard(next)
  }

  /** @param {"accept" | "resolve"} decision */
  #decide(decision) {
    const review = this.reviews.get(this.margin.active ?? "")
    if (!review || review.status !== "open" || this.role !== "writer" || !this.store.seated) return
    const shown = this.margin.cardOf(review.id)?.querySelector(`[data-decision=${decision}]`)
    if (shown instanceof HTMLButtonElement) return shown.click()
    if (decision === "accept") return
    this.acts.decide(review, decision).then((failed) => failed && show(failed))
  }

  #backToText() {
    const place = this.reviews.placeOf(this.margin.active ?? "")
    this.margin.closeSheet()
    const fromCard = document.activeElement?.closest(".card") && !this.acts.isDrafting
    if (place && fromCard) this.editor.show(place)
    this.editor.focus()
  }

  #menu() {
    const help = el("button", { type: "button" }, el("span", { "data-t": "menu.keys" }), el("kbd", { text: "?" }))
    help.addEventListener("click", () => this.keys.help())
    const home = el("a", { href: "/", "data-t": "menu.home" })
    const history = el("button", { type: "button" }, el("span", { "data-t": "history.title" }), el("kbd", { text: this.keys.chord("history") }))
    history.addEventListener("click", () => this.history.open())
    const leave = new SignOut(() => this.stop())
    leave.of(this.store.state.me)
    if (this.role !== "writer") return [home, history, help, leave.element]
    const invite = el("button", { type: "button", "data-t": "desk.invite" })
    invite.addEventListener("click", () => this.#copyInvite())
    return [home, invite, history, help, leave.element]
  }

  #invite() {
    const { link, chairs } = this.store.state
    const invite = byId("invite")
    invite.hidden = this.role !== "writer" || !link?.invite
    invite.classList.toggle("button-strong", chairs.reviewer.user === null)
    invite.replaceChildren(icon("link"), el("span", { text: t("desk.invite") }))
  }

  async #copyInvite() {
    const url = this.store.state.link?.invite?.url
    if (url === undefined) return
    if (await copy(url)) return show(t("desk.invite.copied"))
    const field = el("input", { readonly: true, "aria-label": t("desk.invite") })
    field.value = url
    const dialog = byId("invite-dialog", HTMLDialogElement)
    const close = button(t("common.close"), {}, () => dialog.close())
    dialog.replaceChildren(el("p", { text: t("desk.invite.manual") }), field, el("div", { class: "actions" }, close))
    dialog.showModal()
    field.select()
  }
}
