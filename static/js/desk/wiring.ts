/**
 * The desk: makes its parts and connects their events.
 *
 * `server_events.ts` applies the events of the server, `policy.ts` holds the rules of a change of phase.
 */

import { History } from "../history/history.ts"
import { copiedAt, InviteButton } from "../identity/invite.ts"
import { ReviewerDialog } from "../identity/reviewer_dialog.ts"
import { SelfMenu } from "../identity/self_menu.ts"
import { announce, showToast } from "../lib/announce.ts"
import type { Review, User } from "../lib/api.ts"
import { byId, copy, download, el } from "../lib/dom.ts"
import { showFailures } from "../lib/failures.ts"
import { i18n, t, type Sentence } from "../lib/i18n.ts"
import { takeInTab } from "../lib/preferences.ts"
import { Y } from "../lib/vendor.ts"
import { ReviewActions } from "../reviews/actions.ts"
import { DecideAll } from "../reviews/decide_all.ts"
import { decidingParts } from "../reviews/deciding.ts"
import { Decisions } from "../reviews/decisions.ts"
import { reviewsAt } from "../reviews/highlights.ts"
import { Margin } from "../reviews/margin.ts"
import { News } from "../reviews/news.ts"
import { Reviews } from "../reviews/reviews.ts"
import { SelectionBar } from "../reviews/selection_bar.ts"
import { TypingHint } from "../reviews/typing_hint.ts"
import { Unread } from "../reviews/unread.ts"
import { AnswerWatch } from "../seat/answer_watch.ts"
import { Connection } from "../seat/connection.ts"
import type { Arrival } from "../seat/entry.ts"
import { SeatAlert } from "../seat/seat_alert.ts"
import { SeatBadges } from "../seat/seat_badges.ts"
import { TurnBar } from "../seat/turn.ts"
import { Questions } from "../sections/questions.ts"
import { SectionDialog } from "../sections/section_dialog.ts"
import { Store, peersOf } from "../store.ts"
import { RecoveredDrafts } from "../unsaved/recovered_drafts.ts"
import { SaveWatch } from "../unsaved/save_watch.ts"
import { BackButton } from "./back_button.ts"
import { Banner, lostSentence } from "./banner.ts"
import { fileName } from "./document_size.ts"
import { Editor } from "./editor.ts"
import { ExportDialog } from "./export_dialog.ts"
import { Menu, type Group } from "./menu.ts"
import { ENDED_LINKS, RETURNABLE, divideDrafts, lossOf, mayType, regainedSentence, stateAfter } from "./policy.ts"
import { Presence } from "./presence.ts"
import { Printing } from "./printing.ts"
import { ServedText } from "./served_text.ts"
import { ServerEvents } from "./server_events.ts"
import { SharedEditing } from "./shared_editing.ts"
import { chordOf, Shortcuts, type Commands } from "./shortcuts.ts"
import { TextCountsBar } from "./text_counts_bar.ts"
import { TextOut } from "./text_out.ts"
import { Title } from "./title.ts"

/** The banner stays silent this long while the page moves to another server, in ms. */
const QUIET = 2_000

export class DeskPage {
  declare store: Store; declare role; declare link
  declare connection: Connection; declare answers: AnswerWatch; declare turn: TurnBar; declare typed
  declare editor: Editor; declare presence: Presence; declare events: ServerEvents
  declare out: TextOut; declare exports: ExportDialog; declare printing: Printing
  declare watch: SaveWatch; declare recoveredDrafts: RecoveredDrafts; declare history: History
  declare reviews: Reviews; declare decisions: Decisions; declare actions: ReviewActions
  declare margin: Margin; declare selection: SelectionBar; declare questions: Questions; declare sections: SectionDialog
  declare invite: InviteButton; declare reviewer: ReviewerDialog; declare keys: Shortcuts; declare parts
  #stopped = new AbortController()
  #quiet = 0

  /** @param ReviewerPage what a reviewer's page has more */
  constructor(arrival: Arrival, ReviewerPage: typeof import("../suggest/reviewer_page.ts").ReviewerPage | null) {
    const { me, link, role } = arrival
    const doc = new Y.Doc()
    const text = doc.getText("content")
    this.store = new Store()
    this.store.change({ me, role })
    this.store.applyLink(link)
    this.store.change({ invitedAt: copiedAt(link) })
    this.role = role
    this.link = link
    this.connection = new Connection(doc, link.id, role)
    this.answers = new AnswerWatch(this.connection)
    this.typed = ReviewerPage && new ReviewerPage(text, this.store, arrival)
    this.editor = new Editor(byId("paper"), text, role, this.typed?.mirror ?? new SharedEditing(text))
    this.watch = new SaveWatch(doc, text, {
      user: me.id,
      document: link.document_id,
      title: () => this.store.state.link?.title ?? "",
    })
    this.recoveredDrafts = new RecoveredDrafts(byId("recovered-drafts"), {
      drop: (draft) => this.watch.journal.drop(draft),
      mayRecover: (draft) => this.store.seated && this.watch.mayRecover(draft),
      recover: (draft) => {
        this.watch.recover(draft)
        showToast(t("recovered.done"))
        this.editor.focus()
      },
    })
    this.reviews = new Reviews(this.editor, link.id, me.id, link.writer.id, this.watch)
    this.decisions = new Decisions(this.editor, this.reviews, this.store)
    this.actions = new ReviewActions(this.editor, this.reviews, this.decisions)
    const unread = new Unread(this.reviews, this.store)
    this.margin = new Margin(this.editor, this.reviews, this.store, this.actions, unread)
    this.actions.margin = this.margin
    this.typed?.join(this)
    this.actions.isSilent = () => this.store.state.silentSince !== null
    this.actions.refusal = () => (this.store.state.phase === "lost" && !RETURNABLE.includes(this.store.state.reason) ? lostSentence(this.store.state) : "")
    this.presence = new Presence(this.editor.view, text, this.connection.awareness, {
      name: me.name,
      role,
      nameOf: (other) => this.store.state.occupancy[other].user?.name ?? t(`role.${other}`),
    })
    const news = new News(this.reviews, this.store, unread, (review) => this.actions.isDrafting || this.#show(review))
    this.turn = new TurnBar(this.store, role)
    this.questions = new Questions(this.editor, this.reviews, link.document_id)
    this.sections = new SectionDialog(this.editor, this.questions)
    this.events = new ServerEvents(this, role, link.id)
    this.history = new History(this.store, this.editor, link.document_id)
    const mayReview = () => this.store.seated
    this.selection = new SelectionBar(this.editor, mayReview, (options) => this.actions.begin(options))
    this.out = new TextOut(this.editor, this.store)
    this.exports = new ExportDialog(this.store, link.id, () => this.printing.open())
    this.printing = new Printing(this.editor, this.reviews, this.store)
    this.invite = new InviteButton(this.store)
    this.reviewer = new ReviewerDialog(this.store, this.connection)
    const deciding = decidingParts(this.editor, this.reviews, this.decisions, this.actions)
    this.keys = new Shortcuts({ ...this.#commands(), ...deciding.commands })
    this.parts = [
      this.events,
      this.watch,
      this.recoveredDrafts,
      this.reviews,
      unread,
      this.margin,
      news,
      this.turn,
      this.presence,
      new Title(this.store),
      new SeatAlert(this.store),
      new SeatBadges(this.store),
      new ServedText(this.store, this.editor, this.reviews, {
        document: link.document_id,
        readLink: () => this.events.readLinkSoon(),
      }),
      new BackButton({ closeSheet: () => this.margin.closeSheet() }),
      new Banner(this.store, this.#bannerActions()),
      new TextCountsBar(this.editor, link.document_id),
      this.questions,
      ...(role === "writer" ? [this.sections] : []),
      this.keys,
      this.history,
      this.out,
      this.exports,
      this.printing,
      new Menu(this.#menu(), [this.#entry("menu.keys", () => this.keys.help(), "?")]),
      ...(role === "writer" ? [this.reviewer, this.invite] : []),
      this.selection,
      this.decisions,
      ...deciding.parts,
      new DecideAll(this.decisions, this.reviews, this.store),
      ...(this.typed ? [this.typed] : []),
      new TypingHint(this.editor, mayReview, () => this.actions.begin({ suggests: true }), () => this.typed?.mode.toggle()),
      this.answers,
      this.connection,
    ]
  }

  start() {
    const { signal } = this.#stopped
    document.body.dataset.role = this.role
    showFailures(() => this.out.afterFailure, signal)
    this.connection.addEventListener("phase", () => this.#phase(), { signal })
    this.connection.addEventListener("attempt", () => this.store.change({ retryAt: this.connection.retryAt }), { signal })
    this.connection.addEventListener("set-back", () => showToast(t("state.set-back")), { signal })
    this.answers.addEventListener("change", () => this.store.change({ silentSince: this.answers.since }), { signal })
    const ready = () => this.store.seated && this.store.state.silentSince === null && this.actions.ready()
    this.answers.addEventListener("change", ready, { signal })
    window.addEventListener("online", ready, { signal })
    if (!this.typed) this.watch.addEventListener("change", () => this.store.change({ saving: this.watch.state }), { signal })
    this.presence.addEventListener("change", () => this.#peer(), { signal })
    this.editor.addEventListener("select", (event) => this.#selected((event as CustomEvent).detail), { signal })
    this.editor.addEventListener("press", (event) => this.#pressed((event as CustomEvent).detail), { signal })
    i18n.addEventListener("change", () => {
      this.editor.retranslate()
      this.margin.retranslate()
    }, { signal })
    for (const type of ["keydown", "pointerdown", "wheel"]) {
      window.addEventListener(type, () => this.#confirmActivity(), { signal, passive: true })
    }
    byId("summary-add").addEventListener("click", () => this.actions.beginSummary(), { signal })
    this.store.addEventListener("change", () => (byId("summary-add").hidden = !this.store.seated), { signal })
    for (const part of this.parts) part.start(signal)
    if (this.role === "writer") this.#applyDrafts()
    const imported = takeInTab(`galley.imported.${this.link.document_id}`)
    if (imported !== "") showToast(imported)
  }

  stop() {
    this.#stopped.abort()
    for (const part of this.parts.toReversed()) if ("stop" in part) part.stop()
    this.editor.stop()
  }

  #phase() {
    const before = this.store.state
    this.store.change(stateAfter(before, this.connection))
    const { phase, reason, quiet, wasSeated } = this.store.state
    window.clearTimeout(this.#quiet)
    if (quiet) this.#quiet = window.setTimeout(() => this.store.change({ quiet: false }), QUIET)
    // Before the first sync the text is unknown, so nothing may call it empty.
    document.body.dataset.read = String(wasSeated || this.store.state.servedAt !== null)
    if (phase === "seated") this.editor.endServed()
    if (before.phase === "taken" && phase === "taken") showToast(t("state.taken.still"))
    this.editor.mayType(mayType(this.store.state))
    this.selection.drawSoon()
    if (phase === "lost" && ["taken_over", ...ENDED_LINKS].includes(reason)) this.events.readLinkSoon(0)
    const loss = lossOf(this.store.state)
    if (loss !== null) this.watch.seatLost(loss)
    if (loss !== null) this.typed?.lose()
    if (this.role === "writer" && ["seated", "taken", "lost"].includes(phase)) this.#applyDrafts()
    if (phase !== "seated") return
    this.watch.seatRegained()
    const sentence = regainedSentence(before, phase)
    if (sentence) announce(t(sentence))
    this.actions.ready()
    this.reviews.read().then(() => this.#read(), () => undefined)
    this.questions.read().catch(() => undefined)
    this.events.readLinkSoon()
    this.presence.publish()
  }

  /** The reviews are here, for the first time with this seat. */
  #read() {
    if (!this.store.seated) return
    this.actions.restore()
    // The suggestions are in the text with the next task.
    window.setTimeout(() => this.typed?.ready(), 0)
  }

  /** Answers the idle warning with a sign of life. */
  #confirmActivity() {
    if (this.store.state.idleUntil === null) return
    this.store.change({ idleUntil: null })
    this.presence.publishActivity()
  }

  /** Applies the drafts of closed pages, or offers them to their writer. */
  async #applyDrafts() {
    const drafts = await this.watch.draftsOfClosedPages()
    const { applied, offered } = divideDrafts(drafts, this.store.state.phase, (draft) => this.watch.mayRecover(draft))
    for (const draft of applied) this.watch.recover(draft)
    if (0 < applied.length) showToast(t("state.recovered"))
    this.recoveredDrafts.show(offered)
  }

  #peer() {
    const away = this.presence.other?.away ?? false
    for (const peer of peersOf(this.role)) this.store.changeOccupancy(peer, { away })
  }

  /** @param moved whether the caret moved, and not only the text under it */
  #selected(moved: boolean) {
    if (moved) this.presence.publish()
    else this.presence.publishSoon()
    if (!moved || this.actions.isDrafting || !this.editor.view.hasFocus) return
    const { from, to } = this.editor.selection
    this.margin.activate(from === to ? (reviewsAt(this.editor.view.state, from)[0] ?? null) : null)
  }

  #pressed(review: string) {
    if (this.actions.isDrafting) return
    this.margin.activate(review)
    this.margin.openSheet()
  }

  #bannerActions() {
    return {
      claim: () => this.connection.claim(),
      takeOver: () => this.connection.claim({ takeover: true }),
      wait: () => this.connection.wait(),
      leaveQueue: () => this.connection.leaveQueue(),
      retryNow: () => this.connection.retryNow(),
      lost: () => (this.typed ?? this.watch).lost(),
      unsent: () => this.actions.written.all,
      discardUnsent: () => {
        this.actions.written.clear()
        location.reload()
      },
      discard: () => (this.typed ?? this.watch).discard().then(() => location.reload()),
      focusText: () => this.editor.focus(),
      copyText: () => copy(this.editor.text),
      saveText: () => download(fileName(this.store.state.link?.title ?? "", t("start.untitled")), this.editor.text),
      stayActive: () => this.#confirmActivity(),
    }
  }

  #commands(): Commands {
    return {
      comment: () => this.#comment(),
      mode: () => this.typed?.mode.toggle(),
      next: () => this.#step(1),
      previous: () => this.#step(-1),
      accept: () => this.#decide("accept"),
      acceptAll: () => void this.decisions.decideAll("accept"),
      resolve: () => this.#decide("resolve"),
      history: () => this.history.open(),
      find: () => this.editor.find(),
      print: () => this.printing.open(),
      text: () => this.#backToText(),
    }
  }

  /** On the selection; without one, on the whole text. */
  #comment() {
    if (!this.store.seated) return
    const { from, to } = this.editor.selection
    if (from < to || this.actions.isDrafting) this.actions.begin({ suggests: false })
    else this.actions.beginSummary()
  }

  #step(by: 1 | -1) {
    const order = [...this.reviews.orphans, ...this.reviews.open].map(({ id }) => id)
    if (order.length === 0) return
    const now = order.indexOf(this.margin.active ?? "")
    const next = now === -1 ? this.#nearest(by) : order[(now + by + order.length) % order.length]
    if (next === undefined) return
    this.#show(next)
  }

  /** Leads to a review. */
  #show(review: string) {
    const passage = this.reviews.passageOf(review)
    if (passage) this.editor.show(passage)
    this.margin.activate(review)
    this.margin.focusCard(review)
  }

  /** The review after the caret, or before it; at the end of the text the first again. */
  #nearest(by: 1 | -1) {
    const { open, orphans } = this.reviews
    const caret = this.editor.selection.from
    const from = ({ id }: Review) => this.reviews.passageOf(id)?.from ?? 0
    const after = open.findIndex((review) => caret <= from(review))
    const next = by === 1 ? open[after] : open[(after === -1 ? open.length : after) - 1]
    return (next ?? (by === 1 ? (open[0] ?? orphans[0]) : (open.at(-1) ?? orphans[0])))?.id
  }

  #decide(decision: "accept" | "resolve") {
    const review = this.reviews.get(this.margin.active ?? "")
    if (!review || review.status !== "open" || this.role !== "writer" || !this.store.seated) return
    const shown = this.margin.cardOf(review.id)?.querySelector(`[data-decision=${decision}]`)
    if (shown instanceof HTMLButtonElement) return shown.click()
    if (decision === "accept") return
    this.actions.decide(review, decision).then((failed) => failed && showToast(failed))
  }

  /** From the controls of a card to the card, from there to the text. */
  #backToText() {
    const entered = document.activeElement?.closest(".card[data-card]")
    if (entered instanceof HTMLElement && entered !== document.activeElement) return entered.focus({ preventScroll: true })
    const passage = this.reviews.passageOf(this.margin.active ?? "")
    this.margin.closeSheet()
    const fromCard = document.activeElement?.closest(".card") && !this.actions.isDrafting
    if (passage && fromCard) this.editor.show(passage)
    this.editor.focus()
  }

  #entry(words: Sentence, press: () => void, keys?: string) {
    const entry = keys
      ? el("button", { type: "button" }, el("span", { "data-t": words }), el("kbd", { text: keys }))
      : el("button", { type: "button", "data-t": words })
    entry.addEventListener("click", press)
    return entry
  }

  #menu(): Group[] {
    const self = new SelfMenu((me) => this.#renamed(me), () => this.stop())
    self.setUser(this.store.state.me)
    this.store.addEventListener("change", () => this.store.state.queuePosition && self.notifications.offer("push.offer.wait"))
    const invite = [this.#entry("identity.reviewer", () => this.reviewer.open()), this.#entry("desk.invite", () => this.invite.copy())]
    const history = this.#entry("history.title", () => this.history.open(), chordOf("history"))
    const find = this.#entry("find.title", () => this.editor.find(), chordOf("find"))
    const home = el("a", { href: "/", "data-t": "menu.home" })
    return [
      ["menu.document", ...(this.role === "writer" ? [...invite, this.sections.entry] : []), history, find, home],
      ["menu.out", ...this.out.entries, this.exports.entry, this.printing.entry],
      ["menu.me", ...self.elements],
    ]
  }

  /** The others see the new name once the socket carries it. */
  #renamed(me: User) {
    this.store.change({ me })
    this.connection.renew()
    this.events.readLinkSoon()
  }
}
