/**
 * One review, drawn as a card.
 *
 * The card is updated in place: a field with typed text (a reply, an edit) is
 * never rebuilt, so neither a composition nor the focus is lost when the review changes.
 */

import { chordOf } from "../desk/shortcuts.ts"
import type { AnchorState, Reply, Review, Role, User } from "../lib/api.ts"
import { button, el, initial, mayMoveFocus, once, onSubmit, pressTwice } from "../lib/dom.ts"
import { number, t, tCount, when } from "../lib/i18n.ts"
import { diffView, partsView } from "./diff_view.ts"
import { formKeys, grow, ReviewForm, type Written } from "./form.ts"
import { sayParts } from "./part_text.ts"
import { fitsForm, isSuggestion } from "./parts.ts"
import { Replies, type ReplyActions } from "./replies.ts"
import { actName, subjectOf } from "./subject.ts"
import { isSummary, quoteOf } from "./summary.ts"

export type Decision = "accept" | "reject" | "resolve" | "reopen"

/** All that a card draws beside its review. */
export interface CardContext {
  state: AnchorState
  texts: string[] | null // the text in place of each changed quote of a suggestion, for the writer
  active: boolean
  unread: boolean // whether the other user changed it since it was seen
  role: Role
  seated: boolean
  me: string
  writer: string // the name of the writer
  undoable: number // the reviews of its decision, while that can be taken back
  roleOf: (author: User) => Role
}

export type Actions = ReplyActions & CardActions

/** Each answers why it did not work, or `null`. */
interface CardActions {
  decide: (review: Review, decision: Decision) => Promise<string | null>
  putIn: (review: Review) => Promise<string | null> // puts the words of a suggestion into its changed passage
  showPassage: (review: Review) => void // shows the guessed place of a passage
  takeBack: (review: Review) => Promise<string | null>
  reply: (review: Review, body: string) => Promise<string | null>
  edit: (review: Review, written: Partial<Written>) => Promise<string | null>
  remove: (review: Review) => Promise<string | null>
  mayComeBack: (review: Review) => boolean // whether its removal can be undone
  choose: (review: Review) => void
  copyWords: (review: Review) => Promise<void> // of a suggestion
  suggestHere: (review: Review) => Promise<string | null> // puts the words of a suggestion in at the caret
}

export class ReviewCard {
  declare review: Review
  declare context: CardContext
  declare actions: Actions
  declare replies: Replies
  declare field
  declare replying
  declare send
  declare element
  #content = el("div", { class: "card-content", role: "comment" })
  #form = el("div")
  #actions = el("div", { class: "actions" })
  #note = el("p", { class: "form-error", role: "alert" })
  #editing: ReviewForm | null = null
  #drawn = ""
  isNear = false
  /** Detached from the card while it is far from the window. */
  #parts: HTMLElement[]
  /** Whether a reply is the one whose request failed: it may have arrived. */
  #isUnanswered: (reply: Reply) => boolean = () => false

  constructor(review: Review, context: CardContext, actions: Actions) {
    this.review = review
    this.context = context
    this.actions = actions
    // The mark of the passage in the text leads to it.
    this.#content.id = `comment-${review.id}`
    this.replies = new Replies(actions)
    this.field = el("textarea", { rows: "1", class: "reply-field" })
    this.field.value = actions.written.read(`reply:${review.id}`)
    this.replying = el("form", { class: "reply" }, this.field)
    this.send = button("", { type: "submit" })
    this.replying.append(this.send)
    this.#parts = [this.#content, this.#form, this.replies.element, this.replying, this.#note, this.#actions]
    this.element = el("li", { class: "card", tabindex: "0", "data-card": review.id })
    this.element.classList.toggle("by-writer", context.roleOf(review.author) === "writer")
    this.#listen()
    this.#draw()
  }

  update(review: Review, context: CardContext) {
    const { state, texts, active, unread, role, seated, undoable } = this.context
    const isSame = review === this.review && String(texts) === String(context.texts) && active === context.active && state === context.state && unread === context.unread
    if (isSame && role === context.role && seated === context.seated && undoable === context.undoable) return
    this.review = review
    this.context = context
    if (review.replies.some(this.#isUnanswered)) this.#replied(null)
    this.#draw()
  }

  /** Near the window the card is drawn with all its parts. */
  show(near: boolean) {
    this.isNear = near
    this.#draw()
  }

  /** Draws again even if nothing changed: the language did. */
  retranslate() {
    this.#drawn = ""
    this.#draw()
  }

  #listen() {
    this.element.addEventListener("click", () => this.actions.choose(this.review))
    this.element.addEventListener("focusin", () => this.actions.choose(this.review))
    this.field.addEventListener("input", () => this.#fit())
    formKeys(this.replying, () => false, () => undefined)
    onSubmit(this.replying, this.send, () => this.#reply())
  }

  async #reply() {
    const sent = this.field.value.trim()
    if (sent === "") return
    const before = this.review.replies.map(({ id }) => id)
    const failed = await this.actions.reply(this.review, sent)
    this.#isUnanswered = ({ id, author, body }) =>
      failed !== null && !before.includes(id) && author.id === this.context.me && body === this.field.value.trim()
    this.#replied(this.review.replies.some(this.#isUnanswered) ? null : failed, sent)
  }

  /** Later words than those that were sent stay. */
  #replied(failed: string | null, sent: string = this.field.value.trim()) {
    if (failed === null && sent === this.field.value.trim()) {
      this.#isUnanswered = () => false
      this.field.value = ""
      if (document.activeElement === this.send) this.field.focus()
    }
    this.#note.textContent = failed
    this.#fit()
  }

  #fit() {
    this.actions.written.write(`reply:${this.review.id}`, this.field.value)
    this.#weighButtons()
    grow(this.field)
    this.element.dispatchEvent(new Event("resized", { bubbles: true }))
  }

  /** While the reply has text, its button is the strong one and the decisions step back. */
  #weighButtons() {
    const isWritten = this.field.value.trim() !== ""
    this.send.hidden = !isWritten
    this.send.classList.toggle("button-strong", isWritten)
    this.element.dataset.replying = String(isWritten)
  }

  #draw() {
    const { review, context } = this
    const { dataset } = this.element
    dataset.active = String(context.active)
    dataset.status = review.status
    dataset.state = context.state
    dataset.kind = isSummary(review) ? "summary" : "passage"
    dataset.unread = String(context.unread)
    dataset.near = String(this.isNear)
    this.element.setAttribute("aria-current", String(context.active))
    this.element.setAttribute("aria-label", subjectOf(review))
    const hadFocus = this.element.contains(document.activeElement)
    if (!this.isNear && !context.active && !hadFocus) return this.#drawWords()
    if (this.#content.nextSibling === null) this.element.replaceChildren(...this.#parts)
    this.#editing?.quoteChanged()
    const drawn = JSON.stringify([review, context.state, context.texts, context.undoable, context.seated, context.role, context.unread])
    const focused = this.#actions.contains(document.activeElement) ? document.activeElement?.getAttribute("aria-label") : ""
    if (drawn !== this.#drawn) {
      this.#drawn = drawn
      this.#content.replaceChildren(...this.#said())
      this.replies.update(review, context)
      if (!this.#editing) this.#drawActions()
      this.field.setAttribute("aria-label", actName(t("review.reply"), review))
      this.send.setAttribute("aria-label", actName(t("review.send"), review))
      this.field.placeholder = t("review.reply.hint")
      this.send.lastElementChild?.replaceChildren(t("review.send"))
    }
    const mayReply = context.seated && review.status === "open"
    // Typed text stays, even if the page cannot send it now.
    this.replying.hidden = this.field.value === "" && !(mayReply && context.active && !this.#editing)
    this.#weighButtons()
    const lost = hadFocus && !this.element.contains(document.activeElement)
    if (lost) (this.#actionNamed(focused ?? "") ?? this.element).focus({ preventScroll: true })
  }

  /** Far from the window: what it says, in as many lines. */
  #drawWords() {
    const { body, parts } = this.review
    const drawn = JSON.stringify([parts.map(({ text }) => text), body, this.context.unread])
    if (drawn === this.#drawn) return
    this.#drawn = drawn
    const suggested = parts.length === 0 ? "" : sayParts(parts)
    const words = [suggested, body].filter((text) => text !== "").map((text) => el("p", { class: "body", text }))
    this.#content.replaceChildren(this.#unreadMark() ?? "", ...words)
    this.element.replaceChildren(this.#content)
  }

  #unreadMark() {
    return this.context.unread ? el("span", { class: "unread", role: "img", "aria-label": t("unread.mark") }) : null
  }

  /** The button that replaces one of the same name. */
  #actionNamed(name: string) {
    return [...this.#actions.querySelectorAll("button")].find((action) => action.getAttribute("aria-label") === name)
  }

  #said() {
    const { review, context } = this
    const quote = quoteOf(review)
    const suggests = isSuggestion(review)
    const header = el(
      "header",
      {},
      initial(review.author.name, context.roleOf(review.author)),
      this.#unreadMark(),
      isSummary(review) ? el("span", { class: "kind", text: t("review.summary") }) : null,
      el("span", { class: "who", text: review.author.name }),
      el("time", { datetime: review.created_at, text: when(review.created_at) }),
    )
    if (review.status !== "open") {
      header.append(el("span", { class: "status", text: t(`review.status.${review.outcome ?? review.status}`) }))
    }
    const parts: HTMLElement[] = [header]
    const open = review.status === "open"
    const changed = open && context.state !== "exact"
    if (changed) {
      parts.push(el("p", { class: "card-state", text: this.#changedText() }), ...(context.state === "moved" ? [this.#showButton()] : []))
    }
    const shown = (changed && context.state !== "moved") || !open
    const short = quote.length <= 240 ? quote : `${quote.slice(0, 239)}…`
    // The diff of a suggestion shows the passage; a screen reader reads the whole of it first.
    const style = suggests ? "hidden" : shown ? "quote" : "quote quote-beside"
    if (quote !== "") parts.push(el("blockquote", { class: style, text: short }))
    if (context.texts) parts.push(...review.parts.map(({ text }, at) => diffView(context.texts?.[at] ?? "", text)))
    else if (suggests && !(this.#editing && fitsForm(review))) parts.push(...partsView(review.parts))
    if (review.body !== "" && !this.#editing) parts.push(el("p", { class: "body", text: review.body }))
    const facts = [
      ...(1 < review.parts.length ? [t("review.parts", { count: number(review.parts.length) })] : []),
      ...(0 < review.replies.length ? [tCount("review.replies", review.replies.length)] : []),
    ]
    if (0 < facts.length) parts.push(el("span", { class: "card-facts", text: facts.join(" · ") }))
    return parts
  }

  #showButton() {
    const words = t("review.moved.show")
    return button(words, { class: "button button-quiet", label: actName(words, this.review) }, (event) => {
      event.stopPropagation()
      this.actions.choose(this.review)
      this.actions.showPassage(this.review)
    })
  }

  #changedText() {
    const { state, texts, writer } = this.context
    if (texts) return t("review.edited.now")
    if (this.#isOwnSuggestion && state === "edited") return t("suggesting.edited", { writer })
    if (this.#isOwnSuggestion && state === "orphaned") return t("suggesting.orphaned")
    return t(state === "edited" ? "review.edited" : state === "moved" ? "review.moved" : "review.orphaned")
  }

  get #isOwnSuggestion() {
    const { role, me } = this.context
    return role === "reviewer" && this.review.author.id === me && isSuggestion(this.review)
  }

  #drawActions() {
    const buttons = this.context.seated ? [...this.#decisions(), ...this.#ownButtons()] : []
    this.#actions.replaceChildren(...buttons)
    this.#actions.hidden = buttons.length === 0
  }

  /** At most two decisions: those of the writer. */
  #decisions() {
    const { review, context } = this
    if (context.role !== "writer") return []
    if (review.status !== "open") return this.#waysBack()
    if (!isSuggestion(review)) return [this.#decisionButton("resolve")]
    const isFound = context.state === "exact" || context.state === "moved"
    const first = this.#decisionButton(isFound ? "accept" : context.texts ? "put-in" : "resolve")
    return [first, this.#decisionButton("reject", "button button-quiet")]
  }

  /** Of a decision about many, one rejected review can also be reopened by itself. */
  #waysBack() {
    const { review, context } = this
    const ways = review.status === "accepted" || context.undoable === 1 ? [] : [this.#decisionButton("reopen")]
    return 0 < context.undoable ? [...ways, this.#decisionButton("take-back")] : ways
  }

  #ownButtons() {
    const { review, context } = this
    if (review.status !== "open" || review.author.id !== context.me) return []
    const style = "button button-quiet"
    const edits = t(fitsForm(review) ? "review.edit" : review.body === "" ? "review.reason" : "review.reason.edit")
    return [
      ...(this.#isOwnSuggestion && (context.state === "orphaned" || context.state === "edited") ? this.#ownWords() : []),
      button(edits, { class: style, icon: "pen", label: actName(edits, review) }, () => this.edit()),
      button(t("review.delete"), { class: style, label: actName(t("review.delete"), review) }, (event) => this.#remove(event)),
    ]
  }

  /** The author's actions on words that the text does not have, since the writer changed or deleted their passage. */
  #ownWords() {
    const [copies, here] = [t("common.copy"), t("suggesting.here")]
    return [
      button(here, { class: "button", label: actName(here, this.review) }, async () => {
        this.#note.textContent = await this.actions.suggestHere(this.review)
      }),
      button(copies, { class: "button button-quiet", label: actName(copies, this.review) }, () => void this.actions.copyWords(this.review)),
    ]
  }

  #decisionButton(decision: Decision | "take-back" | "put-in", style = "button") {
    const isBack = decision === "take-back"
    const count = this.context.undoable
    const back = () => (1 < count ? t("decision.take-back.all", { count: number(count) }) : t("decision.take-back"))
    const words = isBack ? back() : t(`review.${decision}`)
    const sign: { icon?: "check" } = ["accept", "resolve", "put-in"].includes(decision) ? { icon: "check" } : {}
    const pressed = button(words, { class: style, label: actName(words, this.review), ...sign }, (event) => {
      event.stopPropagation()
      once(pressed, async () => {
        const { actions, review } = this
        const act = () => (isBack ? actions.takeBack(review) : decision === "put-in" ? actions.putIn(review) : actions.decide(review, decision))
        this.#note.textContent = await act()
      })
    })
    pressed.dataset.decision = decision
    const keys = decision === "reject" ? chordOf("rejectNext") : decision === "accept" || decision === "resolve" ? chordOf(decision) : ""
    if (keys !== "") pressed.dataset.keys = keys
    return pressed
  }

  edit() {
    const done = () => {
      this.#editing = null
      this.#form.replaceChildren()
      this.retranslate()
      if (mayMoveFocus(this.element)) this.element.focus()
    }
    // The text of a suggestion that was typed is changed in the text; the form has its remark.
    const isWhole = fitsForm(this.review)
    const form = new ReviewForm({
      quote: () => quoteOf(this.review) || sayParts(this.review.parts),
      maySuggest: this.context.role === "reviewer" && !isSummary(this.review) && isWhole,
      label: t(isSummary(this.review) ? "review.summary" : "review.body"),
      written: { body: this.review.body, suggestion: isWhole ? this.review.suggestion : null },
      send: t("review.save"),
      cancel: done,
      submit: async (written, isUnchanged) => {
        const failed = await this.actions.edit(this.review, isWhole ? written : { body: written.body })
        if (failed === null && this.#editing === form && isUnchanged()) done()
        return failed
      },
    })
    this.#editing = form
    this.#form.replaceChildren(form.element)
    this.#actions.replaceChildren()
    this.retranslate()
    form.focus()
  }

  #remove(event: Event) {
    event.stopPropagation()
    const words = t("review.delete.sure")
    const remove = async () => {
      this.#note.textContent = await this.actions.remove(this.review)
    }
    if (this.actions.mayComeBack(this.review)) return void remove()
    pressTwice(event.currentTarget as HTMLButtonElement, { words, label: actName(words, this.review) }, remove)
  }
}
