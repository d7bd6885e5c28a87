/**
 * The actions on reviews: each is sent to the server, its response is applied, and its outcome
 * is announced. Owns the card of a new review.
 */

import { refusalOf } from "../desk/banner.ts"
import type { Editor } from "../desk/editor.ts"
import { announce, showToast } from "../lib/announce.ts"
import * as api from "../lib/api.ts"
import { confirm } from "../lib/confirm.ts"
import { copy, el, mayMoveFocus } from "../lib/dom.ts"
import { reviewErrorText } from "../lib/error_text.ts"
import { t } from "../lib/i18n.ts"
import type { Store } from "../store.ts"
import type { Decision } from "./card.ts"
import type { Decisions } from "./decisions.ts"
import { ReviewForm, type Written } from "./form.ts"
import type { Range } from "./locate.ts"
import type { Margin } from "./margin.ts"
import type { Reviews } from "./reviews.ts"
import { PASSAGE_MAX } from "./selection_bar.ts"
import { nearest, WrittenDrafts } from "./written_drafts.ts"

interface Typed {
  suggestionIn: (selection: Range) => string | null // the suggestion whose words are selected
  isInView: (review: string) => boolean // whether the text contains its words
  remove: (review: string) => Promise<() => Promise<string | null>> // answers what puts it in again, under the id that this answers
  send: () => Promise<void> // sends what was typed
  insert: (words: string) => boolean // puts words in at the caret, if they may be typed
}

/** The text around a guessed place that the question quotes, on each side, in UTF-16 units. */
const AROUND = 40
/** How long the text of both sides may need to meet, after which a review is sent once more, in ms. */
const RETRY_DELAY = 400

export class ReviewActions {
  declare editor: Editor
  declare reviews: Reviews
  declare decisions: Decisions
  declare margin: Margin
  declare store: Store
  declare typed: Typed | null
  declare written: WrittenDrafts
  #draft: ReviewForm | null = null
  /** Whether the new review is on the whole text. */
  #isWhole = false
  /** Whether a review is the new one, whose request failed: it may have arrived. */
  #isUnanswered: (review: api.Review) => boolean = () => false

  /** @param typed the reviewer's suggestions in the text, on the reviewer's page */
  constructor(editor: Editor, reviews: Reviews, decisions: Decisions, margin: Margin, store: Store, typed: Typed | null) {
    this.editor = editor
    this.reviews = reviews
    this.decisions = decisions
    this.margin = margin
    this.store = store
    this.typed = typed
    this.written = new WrittenDrafts(reviews.link)
    editor.addEventListener("edit", () => this.#draft?.quoteChanged())
    reviews.addEventListener("change", () => this.#recognize())
  }

  /** Opens the card of a new review, on what is selected. */
  begin({ suggests }: { suggests: boolean }) {
    const { selection } = this.editor
    const isEmpty = selection.from === selection.to
    if (this.#draft && (this.#draft.isTouched || isEmpty)) return this.#draft.focus()
    if (isEmpty) return
    const own = this.typed?.suggestionIn(selection)
    if (own) return void this.#remark(own)
    const range = this.editor.inBase(selection)
    if (PASSAGE_MAX < range.to - range.from) return void showToast(t("review.too-long"))
    if (range.from < range.to) this.#open(range, suggests && this.editor.role === "reviewer")
  }

  /** Words that are only suggested have no passage: a comment on them is the remark of the suggestion. */
  async #remark(id: string) {
    await this.typed?.send()
    this.margin.edit(id)
  }

  /** Opens the card of a new review on the whole text. */
  beginSummary() {
    if (this.#draft && (this.#draft.isTouched || this.#isWhole)) return this.#draft.focus()
    this.#open(null, false)
  }

  /** @param range of the base; `null`: the whole text */
  #open(range: Range | null, suggests: boolean) {
    const { role } = this.editor
    this.#isWhole = range === null
    this.editor.setPending(range)
    this.#draft = new ReviewForm({
      quote: () => this.#quote(),
      suggests,
      maySuggest: role === "reviewer" && !this.#isWhole,
      label: t(this.#isWhole ? "review.summary" : "review.body"),
      hint: t(this.#isWhole ? `review.summary.hint.${role}` : `review.body.hint.${role}`),
      send: t("review.send"),
      submit: (written, isUnchanged) => this.#create(written, isUnchanged),
      cancel: () => this.end(),
    })
    this.#draft.element.addEventListener("input", () => this.#store())
    this.margin.showDraft(this.#draft.element)
    this.#draft.focus()
  }

  /** Opens the form of a new review again that a reload or a crash of the tab interrupted. */
  restore(written = this.written.newReview) {
    if (!written || this.#draft) return
    const range = written.whole ? null : nearest(this.editor.baseTree.toString(), written)
    if (!written.whole && !range) return
    if (range) this.editor.select(this.editor.inView(range))
    this.#open(range, written.suggests)
    const draft = this.#draft as ReviewForm | null
    draft?.fill(written)
    this.#store()
  }

  #store() {
    const draft = this.#draft
    const from = this.editor.marked.pending?.from ?? 0
    const whole = this.#isWhole
    this.written.newReview = draft?.isTouched ? { quote: this.#quote(), from, whole, ...draft.content } : null
  }

  /** The connection is back: what was not sent for want of it waits for one press, and is never sent by itself. */
  ready() {
    const failures = [t("review.offline"), t("review.silent"), t("review.seat")]
    for (const note of document.querySelectorAll("#margin .form-error")) {
      if (failures.includes(note.textContent ?? "")) note.replaceChildren(el("span", { class: "quiet", text: t("review.ready") }))
    }
  }

  /** Puts the card of a new review away. What was written in it can be taken back. */
  end() {
    const written = this.#draft?.isTouched ? this.written.newReview : null
    if (written) showToast(t("review.discarded"), { text: t("common.undo"), act: () => this.restore(written) })
    this.written.newReview = null
    this.#draft = null
    this.editor.setPending(null)
    this.margin.showDraft(null)
    this.editor.focus()
  }

  decide = async (review: api.Review, decision: Decision) => {
    const isGuess = decision === "accept" && this.reviews.hasMoved(review)
    if (isGuess && !(await this.#isThere(review))) return null
    return this.#attempt(async () => {
      // The event of the server may come before the answer, and takes the review from the open ones.
      const order = this.reviews.open.map(({ id }) => id)
      const [tab, before] = [this.margin.tabs.shown, this.margin.active]
      const decide = async () => {
        const decided = await (isGuess ? this.#acceptThere(review) : api.decide(this.reviews.link, review, decision))
        this.reviews.apply(decided)
        const isTab = [tab, "open"].includes(this.margin.tabs.shown)
        const isCard = [before, review.id, null].includes(this.margin.active)
        // Where the user went on to another tab or card, both stay.
        if (isTab && isCard) {
          // One after the other, without looking for the next.
          if (decided.status !== "open") this.margin.activate(this.#nextOf(order, review.id))
          else this.margin.follow(review.id)
        }
        this.#announceDecision(decided)
        return decided.decision?.id
      }
      await (["accept", "reject"].includes(decision) ? this.decisions.during(decide) : decide())
    })
  }

  /** Shows the guessed place of a passage. */
  showPassage = ({ id }: api.Review) => {
    const spot = this.reviews.passageOf(id)
    this.margin.closeSheet()
    if (spot) this.editor.show(spot)
  }

  /** Shows the guessed place of a passage, and asks. */
  #isThere(review: api.Review) {
    this.showPassage(review)
    const { from, to } = this.reviews.passageOf(review.id) ?? { from: 0, to: 0 }
    const around = this.editor.textIn({ from: Math.max(from - AROUND, 0), to: Math.min(to + AROUND, this.editor.length) })
    return confirm(t("review.moved.sure", { around: around.replaceAll("\n", " ").trim() }), t("review.moved.accept"), { danger: false })
  }

  /** Accepts a suggestion at the guessed places that the user has seen. */
  async #acceptThere(review: api.Review) {
    const { link } = this.reviews
    const moved = review.parts.flatMap(({ anchor: { state, relative } }) => (state === "moved" && relative ? [relative.start] : []))
    const { skipped } = await api.decideMany(link, "accept", [review], moved)
    if (skipped[0]) throw new api.Problem(409, skipped[0].reason)
    return api.review(link, review.id)
  }

  /** The open review after this one, or else before it. */
  #nextOf(order: string[], id: string) {
    const open = new Set(this.reviews.open.map((review) => review.id))
    const at = order.indexOf(id)
    const isOpen = (other: string) => other !== id && open.has(other)
    return order.slice(at + 1).find(isOpen) ?? order.slice(0, Math.max(at, 0)).findLast(isOpen) ?? null
  }

  #announceDecision({ id, status, decision }: api.Review) {
    if (status === "resolved") showToast(t("review.announce.resolved"), { text: t("common.undo"), act: () => this.#reopen(id) })
    else if (status === "open") showToast(t("review.announce.open"))
    else this.decisions.made(t(`decision.${status}`), decision?.id)
  }

  async #reopen(id: string) {
    const review = this.reviews.get(id)
    const failed = review && (await this.decide(review, "reopen"))
    if (failed) showToast(failed)
  }

  takeBack = (review: api.Review) => this.decisions.takeBackOf(review)

  reply = (review: api.Review, body: string) =>
    this.#attempt(async () => {
      const { link } = this.reviews
      // The reply may be about words that are on their way.
      await this.typed?.send()
      this.#sent((await api.reply(link, review, body)).review)
    })

  editReply = (review: api.Review, reply: api.Reply, body: string) =>
    this.#attempt(async () => this.#sent(await api.editReply(this.reviews.link, review, reply, body)))

  removeReply = (review: api.Review, reply: api.Reply) =>
    this.#attempt(async () => {
      this.reviews.apply(await api.deleteReply(this.reviews.link, review, reply))
      showToast(t("reply.deleted"))
    })

  edit = (review: api.Review, written: Partial<Written>) =>
    this.#attempt(async () => this.#sent(await api.editReview(this.reviews.link, review, written)))

  /** @param review with the words that were sent */
  #sent(review: api.Review) {
    this.reviews.apply(review)
    announce(t("review.sent"))
  }

  remove = (review: api.Review) =>
    this.#attempt(async () => {
      if (this.typed?.isInView(review.id)) return this.#takeOut(review)
      await api.deleteReview(this.reviews.link, review)
      showToast(t("review.announce.deleted"))
      this.reviews.drop(review.id)
    })

  /** Whether the removal of a review can be undone: the words of others would be lost. */
  mayComeBack = ({ id, replies }: api.Review) => replies.length === 0 && this.typed?.isInView(id) === true

  /** The text has its quotes again. */
  async #takeOut(review: api.Review) {
    const putBack = await this.typed?.remove(review.id)
    const undo = async () => {
      const id = await putBack?.()
      if (!id) showToast(t("decision.conflict"))
      else if (review.body !== "") await this.#attempt(async () => this.#sent(await api.editReview(this.reviews.link, await api.review(this.reviews.link, id), { body: review.body })))
    }
    showToast(t("review.announce.deleted"), review.replies.length === 0 ? { text: t("common.undo"), act: () => void undo() } : undefined)
  }

  /** Puts the words of a suggestion into its passage, which the writer has edited since, and resolves it. */
  putIn = (review: api.Review) =>
    this.#attempt(async () => {
      const changes = this.reviews.spotsOf(review.id).map(({ from, to, text }) => ({ from, to, insert: text ?? "" }))
      const { view, binding } = this.editor
      const before = view.state.doc
      const takeBack = binding.asOneStep(() => view.dispatch({ changes, userEvent: "input.replace" }))
      if (view.state.doc === before) return void showToast(t("state.full"))
      this.reviews.apply(await api.decide(this.reviews.link, review, "resolve"))
      const undo = () => {
        takeBack()
        void this.#reopen(review.id)
      }
      showToast(t("review.put-in.done"), { text: t("common.undo"), act: undo })
    })

  copyWords = async ({ parts }: api.Review) => {
    if (await copy(wordsOf(parts))) announce(t("common.copied"))
  }

  /** The words become a suggestion at the caret, and the one without a passage ends. */
  suggestHere = async (review: api.Review) => {
    if (!this.typed?.insert(wordsOf(review.parts))) return t("suggesting.reading")
    return this.remove(review)
  }

  choose = (review: api.Review) => {
    this.margin.activate(review.id)
  }

  #quote() {
    const { pending } = this.editor.marked
    return pending ? this.editor.baseTextIn(pending) : ""
  }

  async #create(written: Written, isUnchanged: () => boolean): Promise<string | null> {
    const draft = this.#draft
    const before = new Set(this.reviews.all.map(({ id }) => id))
    const failed = await this.#attempt(async () => {
      const made = await this.#send(written).catch(async (error) => {
        if (!(error instanceof api.Problem) || error.kind !== "anchor-mismatch") throw error
        await new Promise((resolve) => window.setTimeout(resolve, RETRY_DELAY))
        // Another form has another passage.
        if (draft !== this.#draft) throw error
        return this.#send(written)
      })
      // Later words stay, and so does a form that was opened since.
      if (draft === this.#draft && isUnchanged()) this.#created(made)
      else this.#sent(made)
    })
    if (failed === null) return null
    this.#isUnanswered = ({ id, author, body, suggestion }) => {
      const now = this.#draft?.written
      return !before.has(id) && author.id === this.reviews.me && body === now?.body && suggestion === now?.suggestion
    }
    this.#recognize()
    return this.#draft ? failed : null
  }

  /** The new review arrived without its answer: it is not sent twice. */
  #recognize() {
    const made = this.#draft && this.reviews.all.find(this.#isUnanswered)
    if (made) this.#created(made)
  }

  #created(made: api.Review) {
    const hasFocus = mayMoveFocus(this.#draft?.element)
    this.#isUnanswered = () => false
    this.#draft = null
    this.written.newReview = null
    this.editor.setPending(null)
    this.#sent(made)
    this.margin.showDraft(null)
    this.margin.activate(made.id)
    if (hasFocus) this.margin.focusCard(made.id)
  }

  #send({ body, suggestion }: Written) {
    const { from, to } = this.editor.marked.pending ?? { from: 0, to: 0 }
    const anchor = this.#isWhole ? null : { start: from, end: to, quote: this.#quote() }
    const words = suggestion === null ? { body } : { body, suggestion }
    return api.createReview(this.reviews.link, { anchor, ...words })
  }

  /** @returns why it did not work */
  async #attempt(act: () => Promise<void>): Promise<string | null> {
    const { state } = this.store
    // A request to a silent server would hang, and the words stay a draft.
    const refusal = refusalOf(state) || (state.silentSince !== null && t("review.silent"))
    if (refusal) return refusal
    try {
      await act()
      return null
    } catch (error) {
      // A concurrent request changed it: the next press acts on the current state.
      const stale = error instanceof api.Problem && [404, 409, 412].includes(error.status)
      if (stale) this.reviews.read().catch(() => undefined)
      return reviewErrorText(error)
    }
  }
}

/** The new words of a suggestion. */
const wordsOf = (parts: readonly api.Part[]) => parts.map(({ text }) => text).filter((text) => text !== "").join("\n")
