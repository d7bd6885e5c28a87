/**
 * The paper: one editor over the shared text, for its whole life.
 *
 * It is never made anew: a new view would lose the caret, the undo history and any composition.
 * Its settings (read-only, language) are reconfigured in place.
 */

import type { Transaction } from "@codemirror/state"
import type { ViewUpdate } from "@codemirror/view"
import { showToast } from "../lib/announce.ts"
import type { Role } from "../lib/api.ts"
import { byId } from "../lib/dom.ts"
import { t } from "../lib/i18n.ts"
import {
  Compartment,
  EditorSelection,
  EditorState,
  EditorView,
  findClusterBreak,
  keymap,
  placeholder,
  standardKeymap,
  type Y,
} from "../lib/vendor.ts"
import { highlights, marked, setActive, setPending, setPassages, type Passage } from "../reviews/highlights.ts"
import type { Range } from "../reviews/locate.ts"
import { SharedPositions } from "../reviews/shared_positions.ts"
import { textShown } from "../reviews/text_view.ts"
import { drawnSections } from "../sections/meters.ts"
import { announcedInput } from "./announced_input.ts"
import { base } from "./base_text.ts"
import { Find, findPhrases } from "./find_panel.ts"
import { incomingEdits } from "./incoming_edits.ts"
import { lineDirection } from "./line_direction.ts"
import { peerDrawing } from "./presence.ts"
import { ReadingPosition } from "./reading_position.ts"
import { replacedSelection } from "./replaced_selection.ts"
import { selectionInOrder } from "./selection_order.ts"
import type { Binding } from "./shared_editing.ts"
import { languageOf, sampleOf } from "./text_language.ts"
import { undivided } from "./undivided.ts"

/**
 * Fires `edit`, `select`, `geometry` (`detail`: the range of the lines that an edit changed, or `null`), `press` (a passage;
 * `detail` is the review), `pending` (a new review begins or ends) and `denied` (the reviewer typed into a text to read).
 *
 * Its positions are those of the text that it shows. `baseTree` and what is named after the base are those of the writer's
 * text (`base_text.ts`): reviews are anchored there, so passages are, too.
 */
export class Editor extends EventTarget {
  declare role: Role
  declare shared: Y.Text
  declare binding: Binding
  declare reading: ReadingPosition
  declare view: EditorView
  #mayType = new Compartment()
  #sentences = new Compartment()
  #accepts = false
  #mayGrow = true
  /** The language of the text, or `""`: see `text_language.ts`. */
  language = ""
  #find

  constructor(parent: HTMLElement, text: Y.Text, role: Role, binding: Binding) {
    super()
    this.role = role
    this.shared = text
    this.binding = binding
    this.reading = new ReadingPosition((change) => binding.isRemote(change))
    parent.addEventListener("mousedown", (event) => {
      // The edge of the paper is paper, too.
      if (event.target !== parent) return
      event.preventDefault()
      this.focus()
    })
    this.#find = new Find((act) => binding.asOneStep(act))
    const nonce = document.querySelector("meta[name=csp-nonce]")?.getAttribute("content") ?? ""
    this.view = new EditorView({
      parent,
      dispatchTransactions: (changes, view) => this.reading.dispatch(changes, view),
      state: EditorState.create({
        doc: text.toString(),
        extensions: [
          // Yjs counts "\r\n" as two, and so must the editor, or every offset after it is wrong.
          EditorState.lineSeparator.of("\n"),
          incomingEdits((change) => binding.isRemote(change)),
          EditorView.cspNonce.of(nonce),
          EditorView.exceptionSink.of((error) => reportError(error)),
          EditorView.lineWrapping,
          EditorView.scrollMargins.of(() => ({ top: Math.max(byId("bar").offsetHeight + 24, 140), bottom: 90 })),
          this.#mayType.of(EditorState.readOnly.of(true)),
          this.#sentences.of(this.#localized()),
          EditorState.transactionFilter.of((change) => (this.#isAccepted(change) ? change : [])),
          undivided((change) => binding.isRemote(change)),
          selectionInOrder,
          binding.extensions,
          keymap.of([{ key: "Enter", run: breakLine, shift: breakLine }, ...standardKeymap]),
          highlights((review) => this.#fire("press", review)),
          EditorView.domEventHandlers({
            beforeinput: () => this.#deny(),
            paste: () => this.#deny(),
            // The browser drops nothing on what is drawn into the text, as the peer's caret.
            dragover: ({ target }) => target instanceof Element && target.closest("[contenteditable=false]") !== null,
          }),
          replacedSelection(() => this.#mayGrow || role === "reviewer"),
          announcedInput(),
          peerDrawing,
          drawnSections,
          lineDirection,
          this.#find.extension,
          EditorView.updateListener.of((update) => this.#updated(update)),
        ],
      }),
    })
    binding.attach(this.view, () => {
      console.error("the editor differed from the shared text")
      showToast(t("desk.text.mended"))
    })
  }

  /** Shows the text as the server has it, until the shared text takes over. */
  showServed(served: string) {
    this.binding.showServed(served)
  }

  /** Shows the shared text again. */
  endServed() {
    this.binding.endServed()
  }

  stop() {
    this.binding.stop()
    this.reading.stop()
    this.view.destroy()
  }

  mayType(may: boolean) {
    // An edit changes the shared text, which must be the text on the page.
    if (may) this.endServed()
    // Not `readOnly` of the state: a view of the text may be read-only, too.
    if (may === this.#accepts) return
    this.#accepts = may
    this.view.dispatch({ effects: this.#mayType.reconfigure(EditorState.readOnly.of(!may)) })
    // A reviewer who may type receives that sentence, and needs the keyboard of the screen.
    if (this.role === "reviewer") this.retranslate()
    // On a touch screen the focus opens a keyboard over the text.
    const isTouch = window.matchMedia("(pointer: coarse)").matches
    if (may && !isTouch && document.activeElement === document.body) this.focus()
  }

  /** The first key of a reviewer who reads is answered by a sentence. */
  #deny() {
    if (this.role === "reviewer" && !this.#accepts) this.#fire("denied")
  }

  /** Whether text may be put in, or only taken out. */
  mayGrow(may: boolean) {
    this.#mayGrow = may
  }

  /** A change by the peer is always applied. */
  #isAccepted(change: Transaction) {
    // The words of a reviewer are not in the document.
    if (this.#mayGrow || this.role === "reviewer" || !change.docChanged || this.binding.isRemote(change)) return true
    let grows = false
    change.changes.iterChanges((_from, _to, _fromB, _toB, inserted) => (grows ||= 0 < inserted.length))
    return !grows
  }

  /** Says what the editor says in the language of now. */
  retranslate() {
    // The marks of the passages say what they mark: this effect draws them again.
    const marks = setActive.of(this.marked.active)
    this.view.dispatch({ effects: [this.#sentences.reconfigure(this.#localized()), marks] })
  }

  /** Reads the language of the text again. While the user composes, the attributes stay as they are. */
  detectLanguage() {
    const language = languageOf(sampleOf(this.tree))
    if (language === this.language || this.view.compositionStarted) return
    this.language = language
    this.retranslate()
  }

  focus() {
    this.view.focus()
  }

  find() {
    this.#find.open(this.view)
  }

  /** The selection, widened to whole graphemes. */
  get selection(): Range {
    const { from, to } = this.view.state.selection.main
    return from === to ? { from, to } : { from: this.#edge(from, false), to: this.#edge(to, true) }
  }

  select({ from, to }: Range) {
    this.view.dispatch({ selection: EditorSelection.range(from, to) })
    this.focus()
  }

  textIn({ from, to }: Range) {
    return this.view.state.sliceDoc(from, to)
  }

  /** All of it. */
  get text() {
    return this.view.state.doc.toString()
  }

  /** The text as it is shown: perhaps with all suggestions accepted. */
  get textShown() {
    return textShown(this.view.state, marked)
  }

  get length() {
    return this.view.state.doc.length
  }

  /** Whether the base on the page is the shared text. */
  get isShared() {
    return this.baseTree.toString() === this.shared.toString()
  }

  /** The text as a tree, which is never changed: another takes its place. */
  get tree() {
    return this.view.state.doc
  }

  /** The writer's text. */
  get baseTree() {
    return this.view.state.facet(base).text(this.view.state)
  }

  /** Where letters of the shared text stand in the base; `null` while it is a copy of the server's text. */
  get sharedPositions() {
    const { fromShared } = this.view.state.facet(base)
    return this.binding.isServed ? null : new SharedPositions(this.shared, fromShared)
  }

  /** @param range of the base */
  baseTextIn({ from, to }: Range) {
    return this.baseTree.sliceString(from, to)
  }

  /** The part of the base that a range of the editor covers; empty or reversed inside an own insertion. */
  inBase(range: Range): Range {
    return this.view.state.facet(base).rangeToBase(this.view.state, range)
  }

  /** Where a range of the base stands in the editor. */
  inView<R extends Range>(range: R): R {
    return { ...range, ...this.view.state.facet(base).rangeToView(this.view.state, range) }
  }

  /** The passages of the base. */
  get marked() {
    return this.view.state.field(marked)
  }

  setPassages(passages: ReadonlyMap<string, Passage>) {
    this.view.dispatch({ effects: setPassages.of(passages) })
  }

  activate(review: string | null) {
    if (this.marked.active !== review) this.view.dispatch({ effects: setActive.of(review) })
  }

  /** @param range of the base */
  setPending(range: Range | null) {
    this.view.dispatch({ effects: setPending.of(range) })
    this.#fire("pending")
  }

  /** Brings a passage into view, with the caret before it. */
  show(range: Range) {
    this.view.dispatch({
      selection: EditorSelection.cursor(range.from),
      effects: EditorView.scrollIntoView(EditorSelection.range(range.from, range.to), { y: "center" }),
    })
  }

  /**
   * Where a position stands on the screen.
   *
   * @param side of the position to look at, where a line is wrapped
   * @param text where the text stands, for a caller with many positions
   */
  coordinatesAt(
    at: number,
    side: -1 | 1 = 1,
    text: { top: number, left: number } = this.view.contentDOM.getBoundingClientRect(),
  ): { top: number, bottom: number, left: number } {
    const { from, to } = this.view.viewport
    const rect = from <= at && at <= to ? this.view.coordsAtPos(at, side) : null
    if (rect) return rect
    // Not drawn, because it is far outside the window: the paragraph is near enough.
    const top = text.top + this.view.documentPadding.top + this.view.lineBlockAt(Math.min(at, this.length)).top
    return { top, bottom: top + 28, left: text.left }
  }

  #edge(at: number, forward: boolean) {
    const line = this.view.state.doc.lineAt(at)
    const inside = at - line.from
    const next = findClusterBreak(line.text, findClusterBreak(line.text, inside, false), true)
    // `next` is where the grapheme that begins before `at` ends: at `at`, unless it spans it.
    if (inside === 0 || next === inside) return at
    return line.from + (forward ? next : findClusterBreak(line.text, inside, false))
  }

  #localized() {
    const reviews = this.role === "reviewer"
    const reader = reviews && !this.#accepts
    const name = reader ? "desk.text.reader" : reviews ? "desk.text.suggesting" : "desk.text"
    return [
      EditorState.phrases.of(findPhrases()),
      placeholder(t(reviews ? "desk.text.empty.reader" : "desk.text.empty")),
      EditorView.contentAttributes.of({
        "aria-label": t(name),
        ...(this.language ? { lang: this.language } : {}),
        spellcheck: "true",
        autocorrect: "on",
        autocapitalize: "sentences",
        // A reader needs the caret, not the keyboard of the screen.
        ...(reader ? { inputmode: "none" } : {}),
      }),
    ]
  }

  #updated(update: ViewUpdate) {
    const { text } = update.state.facet(base)
    // An acceptance of words that the view contains changes the base alone.
    if (update.docChanged || text(update.startState) !== text(update.state)) {
      const ours = !update.transactions.some((transaction) => this.binding.isRemote(transaction))
      this.#fire("edit", ours)
    }
    if (update.docChanged || update.selectionSet) this.#fire("select", update.selectionSet)
    if (update.docChanged || update.geometryChanged || update.viewportChanged) this.#fire("geometry", editedLines(update))
  }

  #fire(name: string, detail?: unknown) {
    this.dispatchEvent(new CustomEvent(name, { detail }))
  }
}

/** A line break and no more: the editor's own would indent the line, and delete the blanks behind the caret. */
function breakLine(view: EditorView) {
  const { state } = view
  if (!state.readOnly) view.dispatch(state.update(state.replaceSelection("\n"), { scrollIntoView: true, userEvent: "input" }))
  return !state.readOnly
}

/** From the first line of an edit to its last one; `null`: the text is the same. */
function editedLines({ docChanged, changes, state: { doc } }: ViewUpdate) {
  if (!docChanged) return null
  let [first, last] = [doc.length, 0]
  changes.iterChangedRanges((_fromA, _toA, from, to) => {
    first = Math.min(first, from)
    last = Math.max(last, to)
  })
  return { from: doc.lineAt(first).from, to: doc.lineAt(last).to }
}
