// @ts-check
/**
 * The page as the fuzz reads it, and the caret as the fuzz puts it: `globalThis.fuzz` in each page of it.
 *
 * The page has no hook for it. Its shared text is the `content` that Yjs enters into the map of a document; the editor
 * hangs on its element, as `EditorView.findFromDOM` has it.
 */

/**
 * @typedef {{ kind: "text" | "new" | "old", id: string, text: string }} Piece of what is drawn
 * @typedef {{ at: number, near: number, length: number, isInside?: boolean, isAnywhere?: boolean }} Place where an act goes, as fractions
 *   of 1; `near`: beside a suggestion; `isAnywhere`: also inside a grapheme
 * @typedef {{ editor: string, shared: string, base: string, overlaid: string, pieces: Piece[], cards: Card[], saved: string, notice: string,
 *   stored: number, offered: string, isComposing: boolean, dangling: string }} Seen `dangling`: marks whose card the page
 *   does not have; `offered`: the words of a closed page that did not enter the text
 * @typedef {{ id: string, status: string, state: string, text: string | null }} Card `text`: `null` far from the window
 */

const { set } = Map.prototype
/** @type {any} */
let shared = null
// Yjs enters a shared type into the map of its document once, before the page's own code has it.
Map.prototype.set = function (/** @type {any} */ key, /** @type {any} */ value) {
  if (key === "content" && value?.doc) {
    shared = value
    Map.prototype.set = set
  }
  return set.call(this, key, value)
}

/** The editor, which draws all lines as for a print: those far from the window are compared too. @returns {any} */
function editor() {
  const view = /** @type {any} */ (document.querySelector(".cm-content"))?.cmTile.root.view
  if (view && !view.viewState.printing) {
    view.viewState.printing = true
    view.measure()
  }
  if (view && !recorded.has(view)) record(view)
  return view
}

/** The last events and changes of the editor, for the report of an entry. @type {string[]} */
const trace = []
const EVENTS = ["keydown", "beforeinput", "input", "compositionstart", "compositionupdate", "compositionend", "mousedown", "mouseup", "focusout"]

/** The editors whose events are recorded. */
const recorded = new WeakSet()

/** The end of the document's selection: its node, in its parent, and the offset. */
function caret() {
  const { focusNode: node, focusOffset } = /** @type {Selection} */ (getSelection())
  const what = node instanceof Text ? JSON.stringify(node.data.slice(0, 12)) : ""
  return `${node?.parentElement?.className.slice(0, 24)} > ${node?.nodeName} ${what} ${focusOffset}`
}

/** @param {any} view */
function record(view) {
  recorded.add(view)
  const add = (/** @type {string} */ line) => void trace.splice(0, Math.max(0, trace.push(`${Math.round(performance.now())} ${line}`) - 60))
  for (const type of EVENTS) {
    document.addEventListener(type, (/** @type {any} */ { key = "", inputType = "", data = "" }) => add(`${type} ${key}${inputType} ${JSON.stringify(data)} ${caret()}`), { capture: true })
  }
  const { update } = view
  view.update = (/** @type {readonly any[]} */ transactions) => {
    const { main } = view.state.selection
    for (const one of transactions) add(`  ${main.from}-${main.to} ${one.changes.empty ? "" : JSON.stringify(one.changes)} ${one.selection ? `to ${one.selection.main.from}-${one.selection.main.to}` : ""} ${one.isUserEvent("input") ? "input" : one.isUserEvent("delete") ? "delete" : ""}`)
    if (transactions.length === 0) add("  drawn again")
    update.call(view, transactions)
  }
}

/** @type {Promise<IDBDatabase> | null} */
let opening = null

/** The rows of edits and suggestions that this browser stores. @returns {Promise<number>} */
async function storedRows() {
  opening ??= new Promise((resolve) => {
    const request = indexedDB.open("galley")
    request.onsuccess = () => resolve(request.result)
  })
  const database = await opening
  const transaction = database.transaction(["unsaved", "suggestions"])
  const counts = ["unsaved", "suggestions"].map((name) => transaction.objectStore(name).count())
  return new Promise((resolve) => {
    transaction.oncomplete = () => resolve(counts.reduce((sum, { result }) => sum + result, 0))
  })
}

/** The drawn text, in its order: letters, those of suggestions, and the old ones that they replace. */
class Drawn {
  /** @type {Piece[]} */
  pieces = []
  /** How the break behind the line is drawn. @type {Omit<Piece, "text">} */
  lineBreak = PLAIN

  read() {
    for (const [number, line] of [...document.querySelectorAll(".cm-content > .cm-line")].entries()) {
      if (0 < number) this.#add(this.lineBreak, "\n")
      this.lineBreak = PLAIN
      this.#walk(line, PLAIN)
    }
    // The mark of new words has no letter at a break: it belongs to the letters beside it.
    for (const [at, piece] of this.pieces.entries()) {
      const beside = piece.id === UNMARKED && [this.pieces[at - 1], this.pieces[at + 1]].find((other) => other && other.kind !== "text")
      if (beside) piece.id = beside.id
    }
    return this.pieces
  }

  /** @param {Omit<Piece, "text">} how @param {string} text */
  #add({ kind, id }, text) {
    const last = this.pieces.at(-1)
    if (last && last.kind === kind && last.id === id) last.text += text
    else if (text !== "") this.pieces.push({ kind, id, text })
  }

  /** @param {Node} parent @param {Omit<Piece, "text">} how */
  #walk(parent, how) {
    for (const node of parent.childNodes) {
      if (node instanceof Text) this.#add(how, node.data)
      else if (!(node instanceof HTMLElement) || node.matches(".cm-widgetBuffer, br")) continue
      else if (node.isContentEditable) this.#walk(node, styled(node, how))
      else this.#widget(node)
    }
  }

  /** @param {any} element */
  #widget(element) {
    const { widget } = element.cmTile ?? {}
    const { id } = styled(element, PLAIN)
    // The old words of the reviewer, the sign of a new break, the new words on the writer's page, a break that a suggestion deletes.
    if (typeof widget?.folded === "string") this.#add({ kind: "old", id }, widget.text)
    else if (element.matches(".passage-break")) this.lineBreak = { kind: "new", id: UNMARKED }
    else if (element.matches("ins.passage-new")) this.#add({ kind: "new", id }, widget.text)
    else if (element.matches("del.passage-old")) this.lineBreak = { kind: "old", id }
  }
}

const UNMARKED = "unmarked"
/** @type {Omit<Piece, "text">} */
const PLAIN = { kind: "text", id: "" }

/** @param {HTMLElement} element @param {Omit<Piece, "text">} how @returns {Omit<Piece, "text">} */
function styled(element, how) {
  const { classList, dataset } = element
  if (!classList.contains("passage-new") && !classList.contains("passage-old")) return how
  const kind = classList.contains("passage-new") ? "new" : "old"
  return { kind, id: dataset.review ?? "" }
}

/** The cards of open reviews, and of lost ones, with all that they say but the time. @returns {Card[]} */
function cards() {
  const all = [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(":is(#cards, #lost-cards) .card[data-card]"))]
  const said = all.map(({ dataset, children }) => {
    const content = /** @type {HTMLElement} */ (children[0]?.cloneNode(true))
    for (const other of content.querySelectorAll("header, .unread")) other.remove()
    return { id: dataset.card ?? "", status: dataset.status ?? "", state: dataset.state ?? "", text: dataset.near === "true" ? content.textContent : null }
  })
  return said.sort((one, other) => (one.id < other.id ? -1 : 1))
}

/** All that the page shows and says. @returns {Promise<Seen>} */
async function read() {
  const { state, compositionStarted } = editor()
  const overlay = state.values.find((/** @type {any} */ value) => value?.hunks && value.base && value.view)
  const saved = document.getElementById("saved")?.dataset.kind ?? ""
  const notice = document.getElementById("notice")
  return {
    editor: state.doc.toString(),
    shared: shared.toString(),
    base: (overlay?.base ?? state.doc).toString(),
    overlaid: (overlay ? overlay.changes.apply(overlay.base) : state.doc).toString(),
    pieces: new Drawn().read(),
    cards: cards(),
    saved,
    dangling: [...document.querySelectorAll("[aria-details]")].flatMap((mark) => (mark.ariaDetailsElements?.length ? [] : mark.outerHTML)).join("\n"),
    notice: notice === null || notice.hidden ? "" : (notice.textContent ?? ""),
    stored: await storedRows(),
    offered: document.querySelector("#recovered-drafts:not([hidden])")?.textContent ?? "",
    isComposing: compositionStarted,
  }
}

/** The ranges of the text that suggestions change, as they are drawn. @returns {{ from: number, to: number }[]} */
function drawnRanges() {
  const view = editor()
  // Struck words, which a passage may hold, are no text of the document.
  return [...document.querySelectorAll(".cm-content .passage")].map((element) => ({ from: view.posAtDOM(element), to: view.posAtDOM(element, element.childNodes.length) }))
}

/** The range of the text that a place means. @param {Place} place */
function rangeOf({ at, near, length, isInside = false, isAnywhere = false }) {
  const { doc } = editor().state
  const drawn = drawnRanges()
  const range = drawn[Math.floor(near * 2 * drawn.length)]
  let from = Math.floor(at * (doc.length + 1))
  if (range && isInside) from = range.from + Math.floor(at * (range.to - range.from))
  else if (range) from = at < 0.5 ? range.from : range.to
  const to = Math.min(from + length, doc.length)
  const graphemes = new Intl.Segmenter().segment(doc.toString())
  const whole = (/** @type {number} */ at) => {
    const { index = at, segment = "" } = (isAnywhere ? undefined : graphemes.containing(at)) ?? {}
    return index === at ? at : index + segment.length
  }
  return { from: whole(from), to: whole(to) }
}

/**
 * Selects what a place means. The editor reads the selection of the document in a later task.
 *
 * @param {Place} place where its ends stand in the window is the answer
 */
async function select(place) {
  const view = editor()
  const { from, to } = rangeOf(place)
  view.focus()
  const [start, end] = [view.domAtPos(from), view.domAtPos(to)]
  getSelection()?.setBaseAndExtent(start.node, start.offset, end.node, end.offset)
  for (let tasks = 0; tasks < TASKS_MAX; tasks += 1) {
    const { main } = view.state.selection
    if (main.from === from && main.to === to) break
    await nextTask()
  }
  return pointsOf({ from, to })
}

/**
 * From now on a press beside the text presses nothing: the bar of a suggestion comes to the caret after the first one.
 *
 * @param {boolean} holds
 */
function holdPresses(holds) {
  isHeld = holds
}

let isHeld = false
for (const type of ["pointerdown", "mousedown", "mouseup", "click"]) {
  const beside = (/** @type {Event} */ event) => {
    if (!isHeld || (event.target instanceof Element && event.target.closest(".cm-content"))) return
    event.preventDefault()
    event.stopImmediatePropagation()
  }
  window.addEventListener(type, beside, { capture: true })
}

/** Has the focus in the text, once the editor has selected again what a press meant, which it does after an edit of the other user. */
async function settled() {
  await new Promise((resolve) => setTimeout(resolve, SELECTS_AGAIN))
  editor().focus()
}

/** CodeMirror's delay before that, and a little, in ms. */
const SELECTS_AGAIN = 25

/** Where the ends of a range stand in the window; none, if one is not to be pressed. @param {{ from: number, to: number }} range @returns {{ x: number, y: number }[]} */
function pointsOf({ from, to }) {
  const { state } = editor()
  const boxes = [from, to].map((at) => editor().coordsAtPos(Math.min(at, state.doc.length), 1))
  const points = boxes.map((box) => ({ x: box?.left ?? -1, y: box === null ? -1 : (box.top + box.bottom) / 2 }))
  return points.every(({ x, y }) => document.elementFromPoint(x, y)?.closest(".cm-content")) ? points : []
}

/** A selection inside a grapheme is moved by the editor: the wait for it has an end. */
const TASKS_MAX = 20

const nextTask = () =>
  new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel()
    port1.onmessage = resolve
    port2.postMessage(null)
  })

/** Pastes at the selection. @param {string} text */
function paste(text) {
  const clipboardData = new DataTransfer()
  clipboardData.setData("text/plain", text)
  document.querySelector(".cm-content")?.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }))
}

/** Where a place stands in the window. @param {Place} place */
const pointOf = (place) => pointsOf(rangeOf(place))[0]

/** A comment of this page's user on a range of the shared text. The answer is not waited for. @param {Place} place */
function comment({ at, length }) {
  const text = shared.toString()
  const start = Math.floor(at * text.length)
  const end = Math.min(start + length, text.length)
  const anchor = { start, end, quote: text.slice(start, end) }
  const path = `/api/share-links/${location.pathname.split("/").at(-1)}/reviews`
  const headers = { "content-type": "application/json" }
  fetch(path, { method: "POST", headers, body: JSON.stringify({ anchor, body: "?" }) }).catch(() => undefined)
}

/** The text and what is selected in it. */
function selection() {
  const { doc, selection } = editor().state
  const { from, to } = selection.main
  return { text: doc.toString(), from, to, selected: doc.sliceString(from, to), trace: trace.join("\n") }
}

/** Presses a button of a card: of the open ones, or of the decided ones. @param {string} list @param {number} at @param {string} button @param {number} presses */
function pressOnCard(list, at, button, presses) {
  const all = [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(`${list} .card[data-card]`))]
  const card = all[Math.floor(at * all.length)]
  card?.click()
  for (let press = 0; press < presses; press += 1) /** @type {HTMLElement | null} */ (card?.querySelector(button))?.click()
}

/** Presses what is there. @param {string} button */
const press = (button) => /** @type {HTMLElement | null} */ (document.querySelector(button))?.click()

const fuzz = { comment, focus: () => editor().focus(), holdPresses, leave: () => editor().contentDOM.blur(), paste, pointOf, press, pressOnCard, read, select, selection, settled }
/** @typedef {typeof fuzz} Fuzz */
Object.assign(globalThis, { fuzz })
