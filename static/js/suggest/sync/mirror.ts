/**
 * The reviewer's binding of the editor to the shared text: the editor follows it, and no edit goes the other way.
 *
 * - **M1** The text of the editor is the view of its overlay in each state (`view_state.ts`).
 * - **M2** The model lacks the edits of a running composition, and these alone. So nothing of a composition is sent.
 * - **M3** A change that touches the line of a composition waits for its end and a moment more, and so does each change
 *   after it: base, overlay and view stay together at the older state. A composition that lasts is not waited for.
 */

import type { Extension } from "@codemirror/state"
import type { ViewUpdate } from "@codemirror/view"
import { AtRest } from "../../desk/at_rest.ts"
import { base } from "../../desk/base_text.ts"
import { differenceOf } from "../../desk/difference.ts"
import type { Binding } from "../../desk/shared_editing.ts"
import { now } from "../../lib/server_clock.ts"
import { ChangeSet, EditorView, history, keymap, redo, Transaction, undo, type Y } from "../../lib/vendor.ts"
import { Overlay } from "../model/overlay.ts"
import type { Suggesting } from "./suggesting.ts"
import { baseUnder, overlaid, overlayOf } from "./view_state.ts"

type YText = Y.Text

/** The editor needs a moment to read the result of a composition, in ms. */
const COMPOSED_PAUSE = 60
/** The longest wait for the end of a composition, in ms. */
const COMPOSING_MAX = 5_000

/** The undo history of the reviewer: own edits alone. */
const keys = [
  { key: "Mod-z", run: undo, preventDefault: true },
  { key: "Mod-y", run: redo, preventDefault: true },
  { key: "Mod-Shift-z", run: redo, preventDefault: true },
]

/**
 * Fires `own` after an edit of the reviewer that the model has, `moved` after each change of the base or of the view
 * by the page.
 */
export class Mirror extends EventTarget implements Binding {
  declare text: YText
  declare base
  declare extensions
  steps = { undo: 0, redo: 0 }
  /** The model of the own suggestions, from `begin` on. */
  model: Suggesting | null = null
  /** The suggestions in the text at this moment. */
  #ids: Set<string> | null = null
  #view: EditorView | null = null
  /** Whether the base is a copy of the server's text in place of the shared one. */
  isServed = false
  /** Changes of the base that wait for the end of a composition. */
  #queued: ChangeSet | null = null
  /** The edits of the running composition, over the view of the model. */
  #composing: ChangeSet | null = null
  /** Whether these are only the deletion of a selection so far (`composing.ts`). */
  #replaces = false
  /** Calls that wait for its end. */
  #waiting: (() => void)[] = []
  #timer = 0
  /** When the last composition ended, in ms. */
  #composedAt = 0
  /** Since when anything waits, in ms. */
  #waitsSince = 0
  #rest: AtRest | null = null

  /** @param drawing of the own suggestions */
  constructor(text: YText, drawing: Extension = []) {
    super()
    this.text = text
    this.base = baseUnder({
      toShared: (at, side = 0) => this.#queued?.mapPos(at, side < 0 ? -1 : 1) ?? at,
      fromShared: (at) => this.#queued?.invertedDesc.mapPos(at, 1) ?? at,
      isInView: (review) => this.isInView(review),
    })
    this.extensions = [
      base.of(this.base),
      overlayOf,
      history({ newGroupDelay: 600 }),
      keymap.of(keys),
      EditorView.updateListener.of((update) => this.#updated(update)),
      EditorView.domEventObservers({ compositionend: () => this.composed() }),
      drawing,
    ]
  }

  attach(view: EditorView, mended: () => void = () => {}) {
    this.#view = view
    this.#rest = new AtRest(() => this.#mend(), mended)
    this.text.observe(this.#observe)
  }

  stop() {
    this.text.unobserve(this.#observe)
    this.#rest?.stop()
    window.clearTimeout(this.#timer)
  }

  endStep() {}

  /** Makes an edit one step of the undo history. @returns undoes it, if it is still the last */
  asOneStep(act: () => void): () => void {
    act()
    const { doc } = this.view.state
    return () => void (doc === this.view.state.doc && undo(this.view))
  }

  isRemote(change: Transaction) {
    return change.annotation(overlaid) !== undefined
  }

  get view() {
    return this.#view as EditorView
  }

  get overlay() {
    return this.view.state.field(overlayOf)
  }

  /** Whether a change of the base waits for the end of a composition. */
  get isBehind() {
    return this.#queued !== null
  }

  /** Whether the text contains the words of a suggestion. */
  isInView(review: string) {
    if (this.#ids === null) {
      // Asked for each of many reviews, one after the other.
      queueMicrotask(() => (this.#ids = null))
      this.#ids = new Set(this.model?.suggestions.map(({ id }) => id))
    }
    return this.#ids.has(review)
  }

  /** The suggestion at a position of the editor. */
  idAt(at: number) {
    return this.model?.at(at)?.id ?? null
  }

  /** Takes the model of the own suggestions: before that nothing can be typed. @param model over the base of now */
  begin(model: Suggesting) {
    this.model = model
    this.#ids = null
    this.#show(model.overlay.changes, model.overlay, null)
  }

  /** The text as the server has it becomes the base. */
  showServed(served: string) {
    this.isServed = true
    this.#rebase(served)
  }

  endServed() {
    if (!this.isServed) return
    this.isServed = false
    this.#rebase(this.text.toString())
  }

  #rebase(next: string) {
    const { base: now } = this.overlay
    const before = this.#queued ? this.#queued.apply(now) : now
    const changes = differenceOf(before.toString(), next)
    if (changes) this.#receive(ChangeSet.of(changes, before.length, "\n"))
  }

  #observe = (event: Y.YTextEvent) => {
    const length = this.#queued?.newLength ?? this.overlay.base.length
    const changes = this.isServed ? null : changesOf(event.delta, length)
    this.isServed = false
    // The first change after a copy is the difference from it.
    if (changes?.newLength === this.text.length) this.#receive(changes)
    else this.#rebase(this.text.toString())
  }

  /** @param changes of the base */
  #receive(changes: ChangeSet) {
    this.#queued = this.#queued ? this.#queued.compose(changes) : changes
    if (!this.#waits) this.#flush()
  }

  /** Whether a composition runs, or has just ended. */
  get #composes() {
    return this.view.compositionStarted || now() < this.#composedAt + COMPOSED_PAUSE
  }

  /** Something waits already, or the change would touch the line of a composition. */
  get #waits() {
    if (!this.#composes) return false
    if (0 < this.#waitsSince) return true
    const { state } = this.view
    const edit = this.#queued && this.#edit(this.#queued)
    const line = state.doc.lineAt(state.selection.main.head)
    if (!edit?.touchesRange(line.from, line.to)) return false
    this.#wait()
    return true
  }

  /** The change of the editor's text that would follow from a change of the base. */
  #edit(changes: ChangeSet) {
    if (!this.model) return changes
    const edit = this.model.viewEdit(changes)
    return this.#composing ? edit.map(this.#composing, true) : edit
  }

  #flush() {
    const changes = this.#queued
    if (!changes) return
    this.#queued = null
    const { model } = this
    if (!model) {
      return this.#show(changes, Overlay.plain(changes.apply(this.overlay.base)), changes)
    }
    const written = model.written(changes)
    const edit = this.#composing ? written.map(this.#composing, true) : written
    if (this.#composing) this.#composing = this.#composing.map(written)
    this.#show(edit, this.#composing ? model.overlay.own(this.#composing) : model.overlay, changes)
  }

  /** @param edit of the editor's text @param changes of the base */
  #show(edit: ChangeSet, overlay: Overlay, changes: ChangeSet | null) {
    this.view.dispatch({
      changes: edit,
      annotations: [overlaid.of({ overlay, changes }), Transaction.addToHistory.of(false)],
    })
    this.dispatchEvent(new Event("moved"))
  }

  /** At rest the base is the shared text, and the view of the model that of the editor. */
  #mend() {
    if (this.isServed) return false
    if (this.#queued || this.#composing || this.#composes || 0 < this.#waitsSince) return null
    const { base: now, view } = (this.model ?? this).overlay
    const shared = this.text.toString()
    const typed = this.model && differenceOf(view.toString(), this.view.state.doc.toString())
    if (!typed && now.toString() === shared) return false
    if (typed) this.model?.own(ChangeSet.of(typed, view.length, "\n"))
    this.refresh()
    this.#rebase(shared)
    if (typed) this.dispatchEvent(new Event("own"))
    return true
  }

  /**
   * Changes the model, and the view with it, outside of a composition: the change may come later.
   *
   * @param change answers the edits of the view, one after the other
   */
  change(change: (model: Suggesting) => ChangeSet[]) {
    this.whenCalm(() => {
      const { model } = this
      if (!model) return
      const edits = change(model).filter((edit) => !edit.empty)
      this.#ids = null
      if (edits.length === 0) return this.refresh()
      this.#show(edits.reduce((all, edit) => all.compose(edit)), model.overlay, null)
    })
  }

  /** The suggestions changed, though no letter did. */
  refresh() {
    if (!this.model || this.#composing) return
    this.view.dispatch({ annotations: overlaid.of({ overlay: this.model.overlay, changes: null }) })
  }

  /** Edits the view as the reviewer does, but for the undo history. */
  recover(edit: (overlay: Overlay) => ChangeSet | null) {
    this.whenCalm(() => {
      const changes = this.model && edit(this.model.overlay)
      if (changes && !changes.empty) this.view.dispatch({ changes, annotations: Transaction.addToHistory.of(false) })
    })
  }

  /** Acts now, or after the end of a running composition. */
  whenCalm(act: () => void) {
    if (!this.#composes && this.#waitsSince === 0) {
      this.#endComposing()
      return act()
    }
    this.#waiting.push(act)
    this.#wait()
  }

  #wait() {
    if (0 < this.#waitsSince) return
    this.#waitsSince = now()
    this.#finishSoon(this.view.compositionStarted ? COMPOSING_MAX : COMPOSED_PAUSE)
  }

  /** A composition has ended. */
  composed() {
    this.#composedAt = now()
    this.#finishSoon(COMPOSED_PAUSE)
  }

  /** @param after in ms */
  #finishSoon(after: number) {
    window.clearTimeout(this.#timer)
    this.#timer = window.setTimeout(() => this.#finish(), after)
  }

  /** The composition has ended, or lasts too long. */
  #finish() {
    const hasTime = this.#waitsSince === 0 ? Number.POSITIVE_INFINITY : this.#waitsSince + COMPOSING_MAX - now()
    if (this.view.compositionStarted && 0 < hasTime) {
      if (0 < this.#waitsSince) this.#finishSoon(hasTime)
      return
    }
    window.clearTimeout(this.#timer)
    this.#waitsSince = 0
    this.#endComposing()
    this.#flush()
    for (const act of this.#waiting.splice(0)) act()
  }

  /** The model takes the edits of a composition. */
  #endComposing() {
    const edit = this.#composing
    this.#composing = null
    if (!edit || !this.model) return
    this.model.own(edit)
    this.dispatchEvent(new Event("own"))
  }

  #updated({ transactions }: ViewUpdate) {
    const isBehind = !this.isServed && !this.#queued && this.overlay.base.length !== this.text.length
    if (transactions.some(({ docChanged }) => docChanged)) this.#rest?.changed(isBehind)
    for (const transaction of transactions) {
      if (!transaction.docChanged || this.isRemote(transaction)) continue
      // A syllable that is taken back is no typing, and still of the composition.
      const replaces = transaction.isUserEvent("delete.compose")
      const begins = replaces || (transaction.isUserEvent("input.type.compose.start") && !this.#replaces)
      const composes = replaces || this.view.compositionStarted || transaction.isUserEvent("input.type.compose")
      if (!composes || begins) this.#endComposing()
      this.#replaces = replaces
      this.#composing = this.#composing ? this.#composing.compose(transaction.changes) : transaction.changes
      if (!composes) this.#endComposing()
    }
  }
}

/** @param length of the text before */
function changesOf(delta: Y.YTextEvent["delta"], length: number) {
  const changes = []
  let at = 0
  for (const { insert, delete: removed = 0, retain = 0 } of delta) {
    if (typeof insert === "string") changes.push({ from: at, to: at, insert })
    else if (0 < removed) changes.push({ from: at, to: at + removed })
    at += removed + retain
  }
  return at <= length ? ChangeSet.of(changes, length, "\n") : null
}
