/**
 * The reviewer's page: makes its parts and connects them to the desk. The page of a writer does not load them.
 *
 * `model` is pure; `sync` holds the text, the list of reviews, this browser and the server together; `view` draws. `view`
 * imports `sync`, and `sync` imports `model`. The road of a typed letter:
 *
 * 1. CodeMirror applies it, and `sync/view_state.ts` adds it to the overlay of the editor in the same transaction.
 * 2. `sync/mirror.ts` holds it back while a composition runs. It gives the edit to the model and fires `own`.
 * 3. The model (`sync/suggesting.ts`) adds it to its overlay (`model/overlay.ts`), and marks the paragraph as dirty.
 * 4. `view/pieces.ts` draws the changes of the overlay: new words as text, old ones struck behind them.
 * 5. This page writes what the server lacks to this browser (`sync/unsent.ts`), where a later page finds it (`sync/recovery.ts`).
 * 6. `sync/sender.ts` collects a batch 400 ms after the last key, or each second.
 * 7. For that the model cuts the dirty paragraphs (`model/plan.ts`) into parts of whole words, which keep the ids of before.
 * 8. `sync/ledger.ts` makes the batch of what is due, the sender adds positions of Yjs, `sync/suggestions_api.ts` sends it.
 * 9. Answer and event come in either order: the ledger takes the answer, `sync/own_suggestions.ts` the event of the list.
 * 10. An edit of the writer passes the mirror, too. The one that accepts the suggestion ends it (`model/acceptance.ts`).
 */

import type { Editor } from "../desk/editor.ts"
import { mayType } from "../desk/policy.ts"
import { showToast } from "../lib/announce.ts"
import { byId } from "../lib/dom.ts"
import { t } from "../lib/i18n.ts"
import { preference, setPreference } from "../lib/preferences.ts"
import { now } from "../lib/server_clock.ts"
import type { Y } from "../lib/vendor.ts"
import type { Margin } from "../reviews/margin.ts"
import type { Reviews } from "../reviews/reviews.ts"
import type { Arrival } from "../seat/entry.ts"
import type { Store } from "../store.ts"
import { Mirror } from "./sync/mirror.ts"
import { OwnSuggestions } from "./sync/own_suggestions.ts"
import { entering, placedParts, textsOf } from "./sync/recovery.ts"
import { MENDED } from "./sync/refusals.ts"
import { Sender } from "./sync/sender.ts"
import { Unsent, type RetainedSuggestion, type UnsentRow } from "./sync/unsent.ts"
import { ModeSwitch } from "./view/mode_switch.ts"
import { Offered, type Offer } from "./view/offered.ts"
import { originalText } from "./view/original_text.ts"
import { ownPieces } from "./view/pieces.ts"

/** The parts of the desk that it works with. */
interface DeskParts {
  store: Store
  editor: Editor
  reviews: Reviews
  margin: Margin
}

/** After how long a change counts as not saved, in ms. */
const SLOW = 5_000
/** After an edit, in ms: with the time of the write it is in this browser within 250 ms. */
const LOOK_DELAY = 150
/** Between two looks at the clock, in ms. */
const TICK = 1_000
/** The preference of a browser that has shown the first sentence. */
const INTRODUCED = "suggesting.known"

/** The binding of the reviewer's editor, which draws the own suggestions. Fires `press` with one that was pressed, too. */
export function reviewerMirror(text: Y.Text) {
  const mirror: Mirror = new Mirror(text, [
    ownPieces({
      suggestions: () => mirror.model?.suggestions ?? [],
      idAt: (at) => mirror.idAt(at),
      press: (id) => mirror.dispatchEvent(new CustomEvent("press", { detail: id })),
    }),
    originalText,
  ])
  return mirror
}

export class ReviewerPage {
  declare mirror: Mirror
  declare store: Store
  declare editor: Editor
  declare reviews: Reviews
  declare margin: Margin
  declare mode: ModeSwitch
  declare page
  declare own: OwnSuggestions
  declare sender: Sender
  declare unsent: Unsent
  declare offered: Offered
  /** Since when something is unsent, in ms; 0: nothing is. */
  #since = 0
  #tick = 0
  #timer = 0
  /** The seat is lost: what is unsent is offered to its author, and not sent by a later page. */
  #isLost = false
  #hasRecovered = false
  /** Whether the user typed what is unsent. What follows from the writer's edits is the work of the page with the seat. */
  #hasTyped = false

  /** @param mirror the binding of the desk's editor */
  constructor(mirror: Mirror, { store, editor, reviews, margin }: DeskParts, { me, link }: Arrival) {
    this.mirror = mirror
    this.store = store
    this.editor = editor
    this.reviews = reviews
    this.margin = margin
    this.mode = new ModeSwitch(store)
    const client = mirror.text.doc?.clientID ?? 0
    this.page = { user: me.id, document: link.document_id, link: link.id, client, title: () => store.state.link?.title ?? "" }
    this.own = new OwnSuggestions(mirror, reviews, () => this.sender.isSending)
    this.sender = new Sender(mirror, this.own, { link: link.id, maySend: () => store.seated })
    this.unsent = new Unsent(this.page)
    this.offered = new Offered(byId("recovered-drafts"), {
      enter: (row) => void this.#enter([row]),
      drop: (row) => this.unsent.drop(row),
    })
  }

  start(signal: AbortSignal) {
    const { own, sender, editor } = this
    own.start(signal)
    sender.start(signal)
    this.mode.start(signal)
    this.offered.start(signal)
    own.addEventListener("change", () => this.store.change({ mayEdit: own.model !== null }), { signal })
    own.addEventListener("change", () => this.#activate(), { signal })
    for (const source of [own, sender]) source.addEventListener("change", () => this.#lookSoon(), { signal })
    this.mirror.addEventListener("own", () => this.#typed(), { signal })
    this.mirror.addEventListener("press", (event) => editor.dispatchEvent(new CustomEvent("press", { detail: (event as CustomEvent).detail })), { signal })
    this.store.addEventListener("change", () => editor.mayType(mayType(this.store.state)), { signal })
    editor.view.contentDOM.addEventListener("focus", () => this.#introduce(), { signal })
    this.#tick = window.setInterval(() => this.#since !== 0 && this.#lookSoon(), TICK)
  }

  stop() {
    window.clearInterval(this.#tick)
    window.clearTimeout(this.#timer)
    this.own.stop()
    this.sender.stop()
    this.unsent.stop()
  }

  /** The page holds the seat, and the list of reviews is read. */
  async ready() {
    this.#isLost = false
    this.sender.ready()
    if (this.#hasRecovered || !this.own.model) return
    this.#hasRecovered = true
    const rows = await this.unsent.ofClosedPages()
    await this.#enter(rows.filter(({ isLost }) => !isLost))
    const lost = rows.filter(({ isLost }) => isLost)
    this.offered.add(lost.map((row) => ({ row, texts: textsOf(row.put), mayEnter: true })))
  }

  /** The seat is lost. */
  lose() {
    this.#isLost = true
    void this.unsent.write(this.#look())
  }

  /** The words that were not saved, for their author to copy. */
  lost() {
    const { put, withdraw } = this.#look()
    const sentences = textsOf(put)
    return { sentences, deletions: sentences.length === 0 ? put.length + withdraw.length : 0 }
  }

  /** Their author discards them. */
  async discard() {
    this.stop()
    await this.unsent.drop({ ...this.page, title: "", at: 0, isLost: false, put: [], withdraw: [] })
  }

  /** Whether the text contains the words of a suggestion. */
  isInView(review: string) {
    return this.mirror.isInView(review)
  }

  /** The suggestion whose new words are selected, if nothing else is. */
  suggestionIn({ from, to }: { from: number, to: number }) {
    const isNew = this.mirror.overlay.pieces({ from, to }).some((piece) => piece.kind === "inserted" && piece.from <= from && to <= piece.to)
    return isNew ? this.mirror.idAt(from) : null
  }

  /** The author takes a suggestion back. */
  async remove(review: string) {
    const { parts = [] } = this.own.model?.suggestions.find(({ id }) => id === review) ?? {}
    const retained = { id: "", version: null, parts: parts.map((part) => this.sender.placed(part)) }
    this.own.remove(review)
    this.#typed()
    await this.sender.send()
    return async () => {
      if (!this.#entered(retained)) return null
      await this.sender.send()
      const placed = placedParts(this.mirror.text, retained)?.[0]
      return this.own.model?.suggestions.find((one) => one.parts.some(({ start, text }) => start === placed?.start && text === placed.text))?.id ?? null
    }
  }

  /** Puts words in at the caret, if they may be typed. */
  insert(words: string) {
    const { view } = this.editor
    if (view.state.readOnly) return false
    view.dispatch(view.state.replaceSelection(words), { scrollIntoView: true, userEvent: "input.paste" })
    view.focus()
    return true
  }

  /** Sends what is unsent before a reply to it. */
  async send() {
    await this.sender.send()
  }

  /** The words that the server has not acknowledged, with positions that later pages find. */
  #look() {
    const model = this.#hasTyped || this.store.seated ? this.own.model : null
    const { put: unsaved, withdraw } = model?.unsaved() ?? { put: [], withdraw: [] }
    const put = unsaved.map(({ id, version, parts }) => ({ id, version, parts: parts.map((part) => this.sender.placed(part)) }))
    return { put, withdraw, isLost: this.#isLost }
  }

  /** The card of the words at the caret becomes the active one once the server has them. */
  #activate() {
    const { editor, margin, reviews } = this
    const { from, to } = editor.selection
    if (margin.active !== null || margin.isDrafting || !editor.view.hasFocus || from !== to) return
    const id = this.mirror.idAt(from)
    if (id && reviews.get(id)) margin.activate(id)
  }

  #typed() {
    this.#hasTyped = true
    this.#lookSoon()
  }

  /** Looks at what is unsent, soon: many keys are one look. */
  #lookSoon() {
    if (this.#timer === 0) this.#timer = window.setTimeout(() => this.#changed(), LOOK_DELAY)
  }

  #changed() {
    this.#timer = 0
    const unsent = this.#look()
    const count = unsent.put.length + unsent.withdraw.length
    this.#hasTyped &&= 0 < count
    if (count === 0) this.#since = 0
    else this.#since = Math.max(this.#since || now(), this.sender.answeredTo ?? 0)
    void this.unsent.write(unsent)
    const { savedAt, refusal } = this.sender
    const since = this.#since === 0 ? null : new Date(this.#since)
    const slow = this.#since !== 0 && SLOW <= now() - this.#since
    const refusing = refusal !== "" && 0 < count && (slow || !MENDED.includes(refusal)) ? refusal : "no"
    const before = this.store.state.saving
    const isSame = count === before.count && since?.getTime() === before.since?.getTime() && savedAt === before.savedAt && slow === before.slow && refusing === before.refusing
    if (!isSame) this.store.change({ saving: { ...before, count, since, savedAt, slow, refusing } })
  }

  /** Puts the suggestions of closed pages into the text. */
  async #enter(rows: UnsentRow[]) {
    const { model } = this.own
    if (!model || rows.length === 0) return
    const left: Offer[] = []
    for (const row of rows) {
      const failed = row.put.filter((retained) => !this.#entered(retained))
      for (const id of row.withdraw) if (model.stateOf(id)) this.own.remove(id)
      // The row of this page has what entered before that of the closed one loses it.
      await this.unsent.write(this.#look())
      const texts = textsOf(failed)
      await this.unsent.drop(row, texts.length === 0 ? [] : failed)
      if (0 < texts.length) left.push({ row: { ...row, put: failed, withdraw: [] }, texts, mayEnter: false })
    }
    void this.sender.send()
    if (left.length < rows.length) showToast(t("suggesting.recovered"))
    this.offered.add(left)
  }

  #entered(retained: RetainedSuggestion) {
    const { model } = this.own
    const parts = placedParts(this.mirror.text, retained)
    if (!parts || !model) return false
    const isSame = ({ id }: { id: string }) => id === retained.id
    const listed = model.suggestions.filter(isSame).flatMap((suggestion) => suggestion.parts)
    const others = model.suggestions.filter((suggestion) => !isSame(suggestion)).flatMap((suggestion) => suggestion.parts)
    let isIn = false
    this.mirror.recover((overlay) => {
      const edit = entering(overlay, parts, listed, others)
      isIn = edit !== null
      return edit
    })
    return isIn
  }

  /** Once in a browser the page says what typing does. */
  #introduce() {
    if (!mayType(this.store.state) || preference(INTRODUCED) !== null) return
    setPreference(INTRODUCED, "yes")
    showToast(t("suggesting.first", { writer: this.store.state.link?.writer.name ?? t("role.writer") }))
  }
}
