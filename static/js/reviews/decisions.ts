/**
 * Decisions about suggestions that can be taken back: by the toast, by Ctrl Z, and for a day by the card
 * of a decided review. The toast of what was taken back, and the key of the editor's redo, decide again.
 *
 * The server takes a decision back, with its text. The editor's own undo history knows only typing. So each
 * decision has the number of steps of that history at its time, and the key goes to the later one of both.
 */

import type { Editor } from "../desk/editor.ts"
import { showToast } from "../lib/announce.ts"
import * as api from "../lib/api.ts"
import type { DecisionMade, Review, Verdict } from "../lib/api.ts"
import { reviewErrorText } from "../lib/error_text.ts"
import { number, t } from "../lib/i18n.ts"
import { now } from "../lib/server_clock.ts"
import type { Store } from "../store.ts"
import { isSuggestion } from "./parts.ts"
import type { Reviews } from "./reviews.ts"

/** `steps` of the editor that could be redone then. */
type TakenBack = { verdict: Verdict, ids: string[], steps: number }
/** Suggestions left before the request, because their text had changed or moved. */
type Unsent = { text: number, moved: number }
/** A decision; its id is `""` until it is answered. `steps` of the editor that could be undone then. */
type Made = { id: string, steps?: number, answered?: Promise<unknown> }

/** Decisions that Ctrl Z takes back one after the other. */
const UNDOABLE_MAX = 100

export class Decisions {
  declare editor: Editor
  declare reviews: Reviews
  declare store: Store
  /** In the order in which they were sent. */
  #undoable: Made[] = []
  /** Taken back, and nothing was done since, the last one last. */
  #redoable: TakenBack[] = []
  /** The last undo or redo, until it is answered or this user types. */
  #working: Promise<unknown> | null = null
  /** The read after the last undo. */
  #reading: Promise<unknown> | null = null
  /** Hides the notice of the last decision, whose button offers no undo after another way was taken. */
  #hideToast = () => {}
  /** How often this user has typed. */
  #edits = 0
  /** How many reviews each decision has; counted again after a change. */
  #sizes: Map<string, number> | null = null
  #stopped = new AbortController()

  constructor(editor: Editor, reviews: Reviews, store: Store) {
    this.editor = editor
    this.reviews = reviews
    this.store = store
  }

  start() {
    const { signal } = this.#stopped
    this.editor.addEventListener("edit", (event) => this.#edited((event as CustomEvent).detail), { signal })
    this.reviews.addEventListener("change", () => (this.#sizes = null), { signal })
    // Before the editor, whose own undo would take text back.
    window.addEventListener("keydown", (event) => this.#press(event), { signal, capture: true })
  }

  stop() {
    this.#stopped.abort()
  }

  get mayDecide() {
    return this.store.seated && this.store.state.role === "writer"
  }

  /** The open suggestions that a decision about all would reach. */
  suggestions(verdict: Verdict) {
    const { open, orphans } = this.reviews
    const suggestions = [...open, ...orphans].filter(isSuggestion)
    if (verdict === "reject") return suggestions
    // Not by the state of its card, which stays for a moment after its passage has collapsed.
    return suggestions.filter(({ id }) => this.reviews.isWhole(id))
  }

  /** Shows what was decided, with the way back. */
  made(sentence: string, id: string | null | undefined) {
    this.#redoable = []
    if (!id) return void showToast(sentence)
    this.#hideToast = showToast(sentence, { text: t("common.undo"), act: () => this.#takeBack({ id }) })
  }

  /** Ctrl Z waits for the answer of a decision, before which the text may change. @param decide answers its id */
  async during(decide: () => Promise<string | null | undefined>) {
    const deciding = decide()
    const made: Made = { id: "", steps: this.editor.binding.steps.undo }
    this.editor.binding.endStep()
    made.answered = deciding.then((id) => (made.id = id ?? ""), () => undefined)
    this.#undoable = [...this.#undoable, made].slice(-UNDOABLE_MAX)
    await made.answered
    if (made.id === "") this.#undoable = this.#undoable.filter((other) => other !== made)
    await deciding
  }

  /** Accepts or rejects all open suggestions at once. */
  async decideAll(verdict: Verdict) {
    const sent = this.suggestions(verdict)
    if (sent.length === 0 || !this.mayDecide) return
    // The text of the others has changed before, or only a person can say where it is.
    const left = verdict === "accept" ? this.suggestions("reject").filter((review) => !sent.includes(review)) : []
    const moved = left.filter(this.reviews.hasMoved).length
    await this.#decideMany(verdict, sent, { text: left.length - moved, moved })
  }

  async #decideMany(verdict: Verdict, sent: Review[], unsent?: Unsent) {
    const read = () => this.reviews.read().catch(() => undefined)
    try {
      await this.during(async () => {
        const made = await api.decideMany(this.reviews.link, verdict, sent)
        // Its undo finds the reviews of the decision.
        await read()
        this.made(sentenceOf(made, unsent), made.id)
        return made.id
      })
    } catch (error) {
      showToast(reviewErrorText(error))
      await read()
    }
  }

  /** How many reviews share the decision of this one; 0 without a decision that can be taken back. */
  undoableSize({ decision }: Review) {
    if (!decision || Date.parse(decision.undo_until) <= now()) return 0
    this.#sizes ??= this.#countSizes()
    return this.#sizes.get(decision.id) ?? 0
  }

  /** Takes back the decision of a review, with all of its reviews. */
  async takeBackOf(review: Review): Promise<string | null> {
    return review.decision && 0 < this.undoableSize(review) ? this.#undo(review.decision) : t("decision.expired")
  }

  /** Decides again what was taken back. */
  async #redo(undone: TakenBack | undefined) {
    if (undone === undefined) return
    const edits = this.#edits
    const earlier = this.#redoable.filter((other) => other !== undone)
    this.#redoable = []
    this.#hideToast()
    await this.#reading
    const reviews = undone.ids.flatMap((id) => this.reviews.get(id) ?? []).filter(({ status }) => status === "open")
    if (reviews.length === 0) return void showToast(t("decision.none"))
    await this.#decideMany(undone.verdict, reviews)
    if (edits === this.#edits) this.#redoable = earlier
  }

  async #takeBack(made: Made | undefined) {
    const failed = made ? await this.#undo(made) : null
    if (failed !== null) showToast(failed)
  }

  /** @returns why it did not work */
  async #undo(made: Made): Promise<string | null> {
    this.#undoable = this.#undoable.filter(({ id }) => id === "" || id !== made.id)
    const edits = this.#edits
    const failed = await this.#inTurn(async () => {
      await made.answered
      return made.id === "" ? null : this.#send(made, edits)
    })
    await this.#reading
    return failed
  }

  /** One after the other: a second press may come before the first answer. */
  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const working = (this.#working ?? Promise.resolve()).then(work)
    this.#working = working
    const result = await working
    if (this.#working === working) this.#working = null
    return result
  }

  /** @param edits the user's at the press */
  async #send({ id, steps = 0 }: Made, edits: number): Promise<string | null> {
    let failed = null
    this.#hideToast()
    const decided = this.reviews.all.filter(({ decision }) => decision?.id === id)
    const undone: TakenBack = { verdict: decided[0]?.status === "rejected" ? "reject" : "accept", ids: decided.map(({ id }) => id), steps: this.editor.binding.steps.redo }
    try {
      await api.undoDecision(this.reviews.link, id)
      // The user may have typed before the answer.
      if (edits === this.#edits) this.#redoable.push(undone)
      const redo = { text: t(`decision.redo.${undone.verdict}`), act: () => this.#inTurn(() => this.#redo(undone)) }
      this.#hideToast = showToast(t("decision.taken-back"), redo)
    } catch (error) {
      failed = undoErrorText(error)
      // A request that did not get through can be repeated.
      const isRepeatable = error instanceof api.Problem && ![404, 409].includes(error.status)
      if (isRepeatable && edits === this.#edits) this.#undoable.push({ id, steps })
    }
    this.#reading = this.reviews.read().catch(() => undefined)
    return failed
  }

  /** @param isOurs whether it came from this editor and not from the server */
  #edited(isOurs: boolean) {
    if (!isOurs) return
    this.#redoable = []
    this.#edits++
    // From now on the key is for the text.
    this.#working = null
  }

  #press(event: KeyboardEvent) {
    const key = historyKey(event)
    if (key === null || event.isComposing || !this.mayDecide) return
    const target = event.target instanceof HTMLElement ? event.target : document.body
    // A field undoes its own typing, and a dialog has the keyboard for itself.
    if (target.matches("input, textarea, select") || document.querySelector("dialog[open]")) return
    const last = (key === "undo" ? this.#undoable : this.#redoable).at(-1)
    const steps = this.editor.binding.steps[key]
    // The editor has a later step, or the only one.
    if (last ? (last.steps ?? 0) < steps : !this.#working || 0 < steps) return
    event.preventDefault()
    event.stopImmediatePropagation()
    if (event.repeat) return
    if (key === "redo") void this.#inTurn(() => this.#redo(this.#redoable.at(-1)))
    else void this.#takeBack(this.#undoable.pop())
  }

  #countSizes() {
    const sizes = new Map()
    for (const { decision } of this.reviews.all) {
      if (decision) sizes.set(decision.id, (sizes.get(decision.id) ?? 0) + 1)
    }
    return sizes
  }
}

/** The effect of a key on the undo history, also with a layout that types no Latin letters. */
function historyKey({ key, code, ctrlKey, metaKey, altKey, shiftKey }: KeyboardEvent): "undo" | "redo" | null {
  if (!(ctrlKey || metaKey) || altKey) return null
  const letter = /^[a-z]$/i.test(key) ? key.toLowerCase() : code.replace("Key", "").toLowerCase()
  if (letter === "y") return "redo"
  return letter === "z" ? (shiftKey ? "redo" : "undo") : null
}

/** A sentence on the result of a decision about many: the number done, the numbers left, and why. */
export function sentenceOf({ decision, done, skipped }: DecisionMade, unsent: Unsent = { text: 0, moved: 0 }) {
  const sentences = [t(done.length === 0 ? "decision.none" : `decision.all.${decision}.done`, { count: number(done.length) })]
  const left = { ...unsent, overlaps: 0, changed: 0 }
  for (const { reason } of skipped) {
    left[reason === "anchor-moved" ? "text" : reason === "overlaps" || reason === "moved" ? reason : "changed"] += 1
  }
  if (0 < left.text) sentences.push(t("decision.left.text", { count: number(left.text) }))
  if (0 < left.moved) sentences.push(t("decision.left.moved", { count: number(left.moved) }))
  if (0 < left.overlaps) sentences.push(t("decision.left.overlaps", { count: number(left.overlaps) }))
  if (0 < left.changed) sentences.push(t("decision.left.changed", { count: number(left.changed) }))
  return sentences.join(" ")
}

function undoErrorText(error: unknown) {
  if (!(error instanceof api.Problem)) return reviewErrorText(error)
  if (error.kind === "undo-conflict") return t("decision.conflict")
  if (error.kind === "undo-expired" || error.status === 404) return t("decision.expired")
  if (error.kind === "already-undone") return t("decision.already")
  return reviewErrorText(error)
}
