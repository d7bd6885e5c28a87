/**
 * The desk: makes its parts, in the order of their dependencies. Each part takes those that it needs; a function that a part
 * takes is called after the last one is made.
 */

import { History } from "../history/history.ts"
import { copiedAt, InviteButton } from "../identity/invite.ts"
import { ReviewerDialog } from "../identity/reviewer_dialog.ts"
import { SelfMenu } from "../identity/self_menu.ts"
import { showToast } from "../lib/announce.ts"
import type { User } from "../lib/api.ts"
import { byId, copy, download, el } from "../lib/dom.ts"
import { showFailures } from "../lib/failures.ts"
import { i18n, t, type Sentence } from "../lib/i18n.ts"
import { takeInTab } from "../lib/preferences.ts"
import { Y } from "../lib/vendor.ts"
import { ReviewActions } from "../reviews/actions.ts"
import { ReviewCard } from "../reviews/card.ts"
import { DecideAll } from "../reviews/decide_all.ts"
import { decidingParts } from "../reviews/deciding.ts"
import { Decisions } from "../reviews/decisions.ts"
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
import { Store } from "../store.ts"
import { RecoveredDrafts } from "../unsaved/recovered_drafts.ts"
import { SaveWatch } from "../unsaved/save_watch.ts"
import { BackButton } from "./back_button.ts"
import { Banner } from "./banner.ts"
import { fileName } from "./document_size.ts"
import { Editor } from "./editor.ts"
import { ExportDialog } from "./export_dialog.ts"
import { Menu } from "./menu.ts"
import { Navigation } from "./navigation.ts"
import { PageEvents } from "./page_events.ts"
import { Presence } from "./presence.ts"
import { Printing } from "./printing.ts"
import { ServedText } from "./served_text.ts"
import { ServerEvents } from "./server_events.ts"
import { SharedEditing } from "./shared_editing.ts"
import { chordOf, Shortcuts } from "./shortcuts.ts"
import { TextCountsBar } from "./text_counts_bar.ts"
import { TextOut } from "./text_out.ts"
import { Title } from "./title.ts"

interface Part {
  start: (signal: AbortSignal) => void
  stop?: () => void
}

/** The module that only a reviewer's page loads. */
type Reviewing = typeof import("../suggest/reviewer_page.ts")

export class DeskPage {
  declare parts: readonly Part[]
  #stopped = new AbortController()

  constructor(arrival: Arrival, reviewing: Reviewing | null) {
    const { me, link, role } = arrival
    const doc = new Y.Doc()
    const text = doc.getText("content")
    const store = new Store()
    store.change({ me, role })
    store.applyLink(link)
    store.change({ invitedAt: copiedAt(link) })
    const title = () => store.state.link?.title ?? ""
    const mayReview = () => store.seated
    const connection = new Connection(doc, link.id, role)
    const answers = new AnswerWatch(connection)
    const mirror = reviewing?.reviewerMirror(text) ?? null
    const editor = new Editor(byId("paper"), text, role, mirror ?? new SharedEditing(text))
    const watch = new SaveWatch(doc, text, { user: me.id, document: link.document_id, title })
    const drafts = new RecoveredDrafts(byId("recovered-drafts"), {
      drop: (draft) => watch.journal.drop(draft),
      mayRecover: (draft) => store.seated && watch.mayRecover(draft),
      recover: (draft) => {
        watch.recover(draft)
        showToast(t("recovered.done"))
        editor.focus()
      },
    })
    const reviews = new Reviews(editor, link.id, me.id, link.writer.id, watch)
    const decisions = new Decisions(editor, reviews, store)
    const unread = new Unread(reviews, store)
    const margin: Margin = new Margin(editor, reviews, store, decisions, unread, (review, context) => new ReviewCard(review, context, actions))
    const typed = reviewing && mirror && new reviewing.ReviewerPage(mirror, { store, editor, reviews, margin }, arrival)
    const actions = new ReviewActions(editor, reviews, decisions, margin, store, typed)
    const presence = new Presence(editor.view, text, connection.awareness, {
      name: me.name,
      role,
      nameOf: (other) => store.state.occupancy[other].user?.name ?? t(`role.${other}`),
    })
    const navigation = new Navigation({ store, editor, reviews, margin, actions, presence })
    const turn = new TurnBar(store, role)
    const questions = new Questions(editor, reviews, link.document_id)
    const sections = role === "writer" ? new SectionDialog(editor, questions) : null
    const events = new ServerEvents({ connection, store, watch, reviews, editor, turn, questions }, role, link.id)
    const history = new History(store, editor, link.document_id)
    const selection = new SelectionBar(editor, mayReview, (options) => actions.begin(options))
    const pageEvents = new PageEvents({ store, connection, answers, editor, watch, drafts, reviews, actions, selection, presence, questions, events, typed })
    const out = new TextOut(editor, store)
    const printing = new Printing(editor, reviews, store)
    const exports = new ExportDialog(store, link.id, () => printing.open())
    const invite = new InviteButton(store)
    const reviewer = new ReviewerDialog(store, connection)
    const banner = new Banner(store, {
      claim: () => connection.claim(),
      takeOver: () => connection.claim({ takeover: true }),
      wait: () => connection.wait(),
      leaveQueue: () => connection.leaveQueue(),
      retryNow: () => connection.retryNow(),
      lost: () => (typed ?? watch).lost(),
      unsent: () => actions.written.all,
      discardUnsent: () => {
        actions.written.clear()
        location.reload()
      },
      discard: () => (typed ?? watch).discard().then(() => location.reload()),
      focusText: () => editor.focus(),
      copyText: () => copy(editor.text),
      saveText: () => download(fileName(title(), t("start.untitled")), editor.text),
      stayActive: () => pageEvents.confirmActivity(),
    })
    const deciding = decidingParts(editor, reviews, decisions, margin, actions)
    const keys = new Shortcuts({
      comment: () => navigation.comment(),
      mode: () => typed?.mode.toggle(),
      next: () => navigation.step(1),
      previous: () => navigation.step(-1),
      accept: () => navigation.decide("accept"),
      acceptAll: () => void decisions.decideAll("accept"),
      resolve: () => navigation.decide("resolve"),
      history: () => history.open(),
      find: () => editor.find(),
      print: () => printing.open(),
      text: () => navigation.backToText(),
      ...deciding.commands,
    })
    const renamed = (me: User) => {
      store.change({ me })
      // The others see the new name once the socket carries it.
      connection.renew()
      events.readLinkSoon()
    }
    const self = new SelfMenu(renamed, () => this.stop())
    self.setUser(me)
    const ofWriter = sections ? [entry("identity.reviewer", () => reviewer.open()), entry("desk.invite", () => invite.copy()), sections.entry] : []
    const inText = [entry("history.title", () => history.open(), chordOf("history")), entry("find.title", () => editor.find(), chordOf("find"))]
    const menu = new Menu([
      ["menu.document", ...ofWriter, ...inText, el("a", { href: "/", "data-t": "menu.home" })],
      ["menu.out", ...out.entries, exports.entry, printing.entry],
      ["menu.me", ...self.elements],
    ], [entry("menu.keys", () => keys.help(), "?")])
    const page: Part = {
      start: (signal) => {
        document.body.dataset.role = role
        showFailures(() => out.afterFailure, signal)
        i18n.addEventListener("change", () => {
          editor.retranslate()
          margin.retranslate()
        }, { signal })
        store.addEventListener("change", () => store.state.queuePosition && self.notifications.offer("push.offer.wait"), { signal })
      },
      stop: () => editor.stop(),
    }
    // The drafts and the sentence that earlier pages of this browser left.
    const earlier: Part = {
      start: () => {
        if (role === "writer") void pageEvents.applyDrafts()
        const imported = takeInTab(`galley.imported.${link.document_id}`)
        if (imported !== "") showToast(imported)
      },
    }
    this.parts = [
      page,
      pageEvents,
      navigation,
      events,
      watch,
      drafts,
      reviews,
      unread,
      margin,
      new News(reviews, store, unread, (review) => margin.isDrafting || navigation.show(review)),
      turn,
      presence,
      new Title(store),
      new SeatAlert(store),
      new SeatBadges(store),
      new ServedText(store, editor, reviews, { document: link.document_id, readLink: () => events.readLinkSoon() }),
      new BackButton({ closeSheet: () => margin.closeSheet() }),
      banner,
      new TextCountsBar(editor, link.document_id),
      questions,
      ...(sections ? [sections] : []),
      keys,
      history,
      out,
      exports,
      printing,
      menu,
      ...(role === "writer" ? [reviewer, invite] : []),
      selection,
      decisions,
      ...deciding.parts,
      new DecideAll(decisions, reviews, store),
      ...(typed ? [typed] : []),
      new TypingHint(editor, mayReview, () => actions.begin({ suggests: true }), () => typed?.mode.toggle()),
      answers,
      connection,
      earlier,
    ]
  }

  start() {
    for (const part of this.parts) part.start(this.#stopped.signal)
  }

  stop() {
    this.#stopped.abort()
    for (const part of this.parts.toReversed()) part.stop?.()
  }
}

/** An entry of the menu. */
function entry(words: Sentence, press: () => void, keys: string = "") {
  const pressed = keys === ""
    ? el("button", { type: "button", "data-t": words })
    : el("button", { type: "button" }, el("span", { "data-t": words }), el("kbd", { text: keys }))
  pressed.addEventListener("click", press)
  return pressed
}
