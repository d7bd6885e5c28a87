// @ts-check
/**
 * The desk: makes its parts and connects their events.
 *
 * `server_events.js` applies the events of the server, `policy.js` holds the rules of a change of phase.
 */

import { History } from "../history/history.js"
import { announce, showToast } from "../lib/announce.js"
import { button, byId, copy, download, el, icon } from "../lib/dom.js"
import { t, tCount, words } from "../lib/i18n.js"
import { Y } from "../lib/vendor.js"
import { ReviewActions } from "../reviews/actions.js"
import { reviewsAt } from "../reviews/highlights.js"
import { Margin } from "../reviews/margin.js"
import { Reviews } from "../reviews/reviews.js"
import { SelectionBar } from "../reviews/selection_bar.js"
import { Connection } from "../seat/connection.js"
import { SeatAlert } from "../seat/seat_alert.js"
import { SeatBadges } from "../seat/seat_badges.js"
import { Store } from "../store.js"
import { RecoveredDrafts } from "../unsaved/recovered_drafts.js"
import { SaveWatch } from "../unsaved/save_watch.js"
import { Banner } from "./banner.js"
import { fileName } from "./document_size.js"
import { Editor } from "./editor.js"
import { Menu } from "./menu.js"
import { divide, lossOf, mayType, regained, stateAfter } from "./policy.js"
import { Presence } from "./presence.js"
import { ServerEvents } from "./server_events.js"
import { Shortcuts } from "./shortcuts.js"
import { SignOut } from "./sign_out.js"
import { TextCountsBar } from "./text_counts_bar.js"
import { Title } from "./title.js"

/** The banner stays silent this long while the page moves to another server, in ms. */
const QUIET = 2_000

export class DeskPage {
  #stopped = new AbortController()
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
    this.kept = new RecoveredDrafts(byId("kept"), {
      drop: (draft) => this.watch.journal.drop(draft),
      mayPutBack: (draft) => this.store.seated && this.watch.mayPutBack(draft),
      putBack: (draft) => {
        this.watch.putBack(draft)
        announce(t("kept.done"))
        this.editor.focus()
      },
    })
    this.reviews = new Reviews(this.editor, link.id, me.id)
    this.acts = new ReviewActions(this.editor, this.reviews)
    this.margin = new Margin(this.editor, this.reviews, this.store, this.acts)
    this.acts.margin = this.margin
    this.presence = new Presence(this.editor.view, text, this.connection.awareness, {
      name: me.name,
      role,
      nameOf: (other) => this.store.state.chairs[other].user?.name ?? t(`role.${other}`),
    })
    this.events = new ServerEvents(this, role, link.id)
    this.history = new History(this.store, this.editor, link.document_id)
    this.selection = new SelectionBar(
      this.editor,
      () => role === "reviewer" && this.store.seated,
      (options) => this.acts.begin(options),
    )
    this.keys = new Shortcuts(this.#commands())
    this.parts = [
      this.watch,
      this.kept,
      this.reviews,
      this.margin,
      this.presence,
      new Title(this.store),
      new SeatAlert(this.store),
      new SeatBadges(this.store),
      new Banner(this.store, this.#ways()),
      new TextCountsBar(this.editor, link.document_id),
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
    this.connection.addEventListener("attempt", () => this.store.change({ retryAt: this.connection.retryAt }), { signal })
    this.watch.addEventListener("change", () => this.store.change({ saving: this.watch.state }), { signal })
    this.presence.addEventListener("change", () => this.#peer(), { signal })
    this.editor.addEventListener("select", (event) => this.#selected(/** @type {CustomEvent} */ (event).detail), { signal })
    this.editor.addEventListener("press", (event) => this.#pressed(/** @type {CustomEvent} */ (event).detail), { signal })
    this.reviews.addEventListener("came", (event) => {
      const { author, anchor } = /** @type {CustomEvent<import("../lib/api.js").Review>} */ (event).detail
      announce(t("review.new", { name: author.name, quote: anchor.quote.slice(0, 60) }))
    }, { signal })
    words.addEventListener("change", () => {
      this.editor.speak()
      this.margin.speak()
      this.#invite()
    }, { signal })
    for (const sign of ["keydown", "pointerdown", "wheel"]) {
      window.addEventListener(sign, () => this.#stir(), { signal, passive: true })
    }
    byId("invite").addEventListener("click", () => this.#copyInvite(), { signal })
    this.store.addEventListener("change", () => this.#invite(), { signal })
    this.events.start()
    for (const part of this.parts) part.start()
    this.#invite()
    if (this.role === "writer") this.#applyDrafts()
  }

  stop() {
    this.#stopped.abort()
    this.events.stop()
    window.clearTimeout(this.#quiet)
    for (const part of this.parts.toReversed()) part.stop()
    this.editor.stop()
  }

  #phase() {
    const before = this.store.state
    this.store.change(stateAfter(before, this.connection))
    const { phase, why, quiet, wasSeated } = this.store.state
    window.clearTimeout(this.#quiet)
    if (quiet) this.#quiet = window.setTimeout(() => this.store.change({ quiet: false }), QUIET)
    // Before the first sync the text is unknown, so nothing may call it empty.
    document.body.dataset.read = String(wasSeated)
    if (before.phase === "taken" && phase === "taken") showToast(t("state.taken.still"))
    this.editor.mayType(mayType(this.store.state))
    this.selection.drawSoon()
    if (phase === "lost" && why === "taken_over") this.events.readLinkSoon()
    const loss = lossOf(this.store.state)
    if (loss !== null) this.watch.hold(loss)
    if (this.role === "writer" && ["seated", "taken", "lost"].includes(phase)) this.#applyDrafts()
    if (phase !== "seated") return
    this.watch.release()
    const sentence = regained(before, phase)
    if (sentence) announce(t(sentence))
    this.reviews.read().catch(() => undefined)
    this.events.readLinkSoon()
    this.presence.publish()
  }

  /** Answers the idle warning with a sign of life. */
  #stir() {
    if (this.store.state.idleUntil === null) return
    this.store.change({ idleUntil: null })
    this.presence.stir()
  }

  /** Applies the drafts of closed pages, or offers them to their writer. */
  async #applyDrafts() {
    const drafts = await this.watch.left()
    const { applied, offered } = divide(drafts, this.store.state.phase, (draft) => this.watch.mayPutBack(draft))
    for (const draft of applied) this.watch.putBack(draft)
    const count = applied.reduce((sum, draft) => sum + draft.count, 0)
    if (0 < count) showToast(tCount("state.brought-back", count))
    this.kept.show(offered)
  }

  #peer() {
    const other = this.role === "writer" ? "reviewer" : "writer"
    this.store.changeChair(other, { away: this.presence.other?.away ?? false })
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
    this.acts.decide(review, decision).then((failed) => failed && showToast(failed))
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
    if (await copy(url)) return showToast(t("desk.invite.copied"))
    const field = el("input", { readonly: true, "aria-label": t("desk.invite") })
    field.value = url
    const dialog = byId("invite-dialog", HTMLDialogElement)
    const close = button(t("common.close"), {}, () => dialog.close())
    dialog.replaceChildren(el("p", { text: t("desk.invite.manual") }), field, el("div", { class: "actions" }, close))
    dialog.showModal()
    field.select()
  }
}
