// @ts-check
/**
 * The paper: one editor over the shared text, for its whole life.
 *
 * It is never made anew: a new view would lose the caret, the undo history and any composition.
 * Its settings (read-only, language) are reconfigured in place.
 */

import { byId } from "../lib/dom.js"
import { t } from "../lib/i18n.js"
import {
  Compartment,
  EditorSelection,
  EditorState,
  EditorView,
  findClusterBreak,
  keymap,
  placeholder,
  standardKeymap,
  Y,
  yCollab,
  ySyncAnnotation,
  ySyncFacet,
  yUndoManagerKeymap,
} from "../lib/vendor.js"
import { highlights, marked, setActive, setPending, setPassages } from "../reviews/highlights.js"
import { textShown } from "../reviews/text_view.js"
import { drawnSections } from "../sections/meters.js"
import { Find, findPhrases } from "./find_panel.js"
import { lineDirection } from "./line_direction.js"
import { relativeAt } from "./positions.js"
import { peerDrawing } from "./presence.js"
import { languageOf, sampleOf } from "./text_language.js"

/**
 * @typedef {import("../reviews/highlights.js").Range} Range
 * @typedef {import("../reviews/highlights.js").Passage} Passage
 */

/** The line break of Yjs and of Galley. Any other in a paste becomes this one. */
const normalizeBreaks = (/** @type {string} */ text) => text.replace(/\r\n?/g, "\n")

/**
 * Fires `edit`, `select`, `geometry` (`detail`: whether text outside the drawn part may have moved), `press` (a passage;
 * `detail` is the review), `pending` (a new review begins or ends) and `denied` (the reviewer typed into the text).
 */
export class Editor extends EventTarget {
  #mayType = new Compartment()
  #sentences = new Compartment()
  #accepts = false
  #mayGrow = true
  /** Whether the page shows a copy of the server's text in place of the shared one. */
  #isServed = false
  /** The language of the text, or `""`: see `text_language.js`. */
  language = ""
  #undo
  #find

  /**
   * @param {HTMLElement} parent
   * @param {Y.Text} text
   * @param {import("../lib/api.js").Role} role
   */
  constructor(parent, text, role) {
    super()
    this.role = role
    this.shared = text
    text.doc?.on("beforeAllTransactions", this.#beforeShared)
    parent.addEventListener("mousedown", (event) => {
      // The edge of the paper is paper, too.
      if (event.target !== parent) return
      event.preventDefault()
      this.focus()
    })
    this.#undo = new Y.UndoManager(text, { captureTimeout: 600 })
    this.#find = new Find(role === "writer" ? (act) => this.#asOneStep(act) : null)
    const nonce = document.querySelector("meta[name=csp-nonce]")?.getAttribute("content") ?? ""
    /** @type {EditorView} */
    this.view = new EditorView({
      parent,
      state: EditorState.create({
        doc: text.toString(),
        extensions: [
          // Yjs counts "\r\n" as two, and so must the editor, or every offset after it is wrong.
          EditorState.lineSeparator.of("\n"),
          EditorView.clipboardInputFilter.of(normalizeBreaks),
          EditorView.cspNonce.of(nonce),
          EditorView.lineWrapping,
          EditorView.scrollMargins.of(() => ({ top: Math.max(byId("bar").offsetHeight + 24, 140), bottom: 90 })),
          this.#mayType.of(EditorState.readOnly.of(true)),
          this.#sentences.of(this.#localized()),
          EditorState.transactionFilter.of((change) => (this.#isAccepted(change) ? this.#withoutServed(change) : [])),
          keymap.of([...yUndoManagerKeymap, ...standardKeymap]),
          yCollab(text, null, { undoManager: this.#undo }),
          highlights((review) => this.#fire("press", review)),
          EditorView.domEventHandlers({
            beforeinput: () => void (this.role === "reviewer" && this.#fire("denied")),
            paste: () => void (this.role === "reviewer" && this.#fire("denied")),
          }),
          peerDrawing,
          drawnSections,
          lineDirection,
          this.#find.extension,
          EditorView.updateListener.of((update) => this.#updated(update)),
        ],
      }),
    })
    // The undo history asks where the caret is before each edit, and Yjs would walk there.
    this.view.state.facet(ySyncFacet).toYPos = (index, side = 0) => relativeAt(text, index, side)
  }

  /**
   * Shows the text as the server has it. The shared text stays as it is, and takes over with its next change
   * or with the seat: in one step of the differing part, so that neither the scroll position nor the caret
   * jumps.
   *
   * @param {string} served
   */
  showServed(served) {
    this.#replace(served)
    this.#isServed = true
  }

  /** Shows the shared text again. */
  endServed() {
    if (this.#isServed) this.#replace(this.shared.toString())
  }

  /** @param {string} next */
  #replace(next) {
    this.#isServed = false
    const changes = differenceOf(this.text, next)
    if (changes) this.view.dispatch({ changes, annotations: this.#fromShared })
  }

  /** The mark of a change that the shared text has already. */
  get #fromShared() {
    return ySyncAnnotation.of(this.view.state.facet(ySyncFacet))
  }

  /**
   * A change of the shared text is relative to its content before, which must be on the page by then. Yjs reads
   * the change in a nested transaction, which is too late: hence "all".
   */
  #beforeShared = () => {
    // The first sync changes an empty text: `#withoutServed` shows its difference from the copy.
    if (0 < this.shared.length) this.endServed()
  }

  /** @param {import("@codemirror/state").Transaction} change */
  #withoutServed(change) {
    if (!this.#isServed || !change.docChanged || !change.annotation(ySyncAnnotation)) return change
    this.#isServed = false
    const changes = differenceOf(change.startState.doc.toString(), this.shared.toString())
    return { ...(changes ? { changes } : {}), annotations: this.#fromShared }
  }

  stop() {
    this.shared.doc?.off("beforeAllTransactions", this.#beforeShared)
    this.#undo.destroy()
    this.view.destroy()
  }

  /** @param {boolean} may */
  mayType(may) {
    // An edit changes the shared text, which must be the text on the page.
    if (may) this.endServed()
    // Not `readOnly` of the state: a view of the text may be read-only, too.
    if (may === this.#accepts) return
    this.#accepts = may
    this.view.dispatch({ effects: this.#mayType.reconfigure(EditorState.readOnly.of(!may)) })
  }

  /** Whether text may be put in, or only taken out. @param {boolean} may */
  mayGrow(may) {
    this.#mayGrow = may
  }

  /** A change by the peer is always applied. @param {import("@codemirror/state").Transaction} change */
  #isAccepted(change) {
    if (this.#mayGrow || !change.docChanged || change.annotation(ySyncAnnotation)) return true
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

  /** Makes an edit one step of the undo history. @param {() => void} act @returns {() => void} undoes it, if it is still the last */
  #asOneStep(act) {
    this.#undo.stopCapturing()
    act()
    this.#undo.stopCapturing()
    const step = this.#undo.undoStack.at(-1)
    return () => {
      if (step === this.#undo.undoStack.at(-1)) this.#undo.undo()
    }
  }

  /** The selection, widened to whole graphemes. @returns {Range} */
  get selection() {
    const { from, to } = this.view.state.selection.main
    return from === to ? { from, to } : { from: this.#edge(from, false), to: this.#edge(to, true) }
  }

  /** @param {Range} range */
  select({ from, to }) {
    this.view.dispatch({ selection: EditorSelection.range(from, to) })
    this.focus()
  }

  /** @param {Range} range */
  textIn({ from, to }) {
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

  /** The text as a tree, which is never changed: another takes its place. */
  get tree() {
    return this.view.state.doc
  }

  get marked() {
    return this.view.state.field(marked)
  }

  /** @param {ReadonlyMap<string, Passage>} passages */
  setPassages(passages) {
    this.view.dispatch({ effects: setPassages.of(passages) })
  }

  /** @param {string | null} review */
  activate(review) {
    if (this.marked.active !== review) this.view.dispatch({ effects: setActive.of(review) })
  }

  /** @param {Range | null} range */
  setPending(range) {
    this.view.dispatch({ effects: setPending.of(range) })
    this.#fire("pending")
  }

  /** Brings a passage into view, with the caret before it. @param {Range} range */
  show(range) {
    this.view.dispatch({
      selection: EditorSelection.cursor(range.from),
      effects: EditorView.scrollIntoView(EditorSelection.range(range.from, range.to), { y: "center" }),
    })
  }

  /**
   * Where a position stands on the screen.
   *
   * @param {number} at
   * @param {-1 | 1} side of the position to look at, where a line is wrapped
   * @param {{ top: number, left: number }} text where the text stands, for a caller with many positions
   * @returns {{ top: number, bottom: number, left: number }}
   */
  coordinatesAt(at, side = 1, text = this.view.contentDOM.getBoundingClientRect()) {
    const { from, to } = this.view.viewport
    const rect = from <= at && at <= to ? this.view.coordsAtPos(at, side) : null
    if (rect) return rect
    // Not drawn, because it is far outside the window: the paragraph is near enough.
    const top = text.top + this.view.documentPadding.top + this.view.lineBlockAt(Math.min(at, this.length)).top
    return { top, bottom: top + 28, left: text.left }
  }

  /** @param {number} at @param {boolean} forward */
  #edge(at, forward) {
    const line = this.view.state.doc.lineAt(at)
    const inside = at - line.from
    const next = findClusterBreak(line.text, findClusterBreak(line.text, inside, false), true)
    // `next` is where the grapheme that begins before `at` ends: at `at`, unless it spans it.
    if (inside === 0 || next === inside) return at
    return line.from + (forward ? next : findClusterBreak(line.text, inside, false))
  }

  #localized() {
    const reader = this.role === "reviewer"
    return [
      EditorState.phrases.of(findPhrases()),
      placeholder(t(reader ? "desk.text.empty.reader" : "desk.text.empty")),
      EditorView.contentAttributes.of({
        "aria-label": t(reader ? "desk.text.reader" : "desk.text"),
        ...(this.language ? { lang: this.language } : {}),
        spellcheck: "true",
        autocorrect: "on",
        autocapitalize: "sentences",
        // A reader needs the caret, not the keyboard of the screen.
        ...(reader ? { inputmode: "none" } : {}),
      }),
    ]
  }

  /** @param {import("@codemirror/view").ViewUpdate} update */
  #updated(update) {
    if (update.docChanged) {
      const ours = !update.transactions.some((transaction) => transaction.annotation(ySyncAnnotation))
      this.#fire("edit", ours)
    }
    if (update.docChanged || update.selectionSet) this.#fire("select", update.selectionSet)
    if (update.docChanged || update.geometryChanged || update.viewportChanged) this.#fire("geometry", movesFar(update))
  }

  /** @param {string} name @param {unknown} [detail] */
  #fire(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }))
  }
}

/** Whether text outside the drawn part may have moved. @param {import("@codemirror/view").ViewUpdate} update */
function movesFar({ docChanged, heightChanged, viewportChanged, view: { viewport }, changes }) {
  let isFar = !docChanged || heightChanged || viewportChanged
  changes.iterChangedRanges((_fromA, _toA, from, to) => (isFar ||= from < viewport.from || viewport.to < to))
  return isFar
}

/**
 * The part in which two texts differ, as a change from the one to the other; `null` if there is none.
 *
 * @param {string} before
 * @param {string} after
 * @returns {{ from: number, to: number, insert: string } | null}
 */
export function differenceOf(before, after) {
  if (before === after) return null
  const shorter = Math.min(before.length, after.length)
  let from = 0
  while (from < shorter && before[from] === after[from]) from++
  let same = 0
  while (same < shorter - from && before[before.length - 1 - same] === after[after.length - 1 - same]) same++
  return { from, to: before.length - same, insert: after.slice(from, after.length - same) }
}
