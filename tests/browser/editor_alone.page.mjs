// @ts-check
/** In the page: an editor over a shared text, without a server. `editor_alone.mjs` bundles it. */

import { Editor } from "../../static/js/desk/editor.ts"
import { Presence } from "../../static/js/desk/presence.ts"
import { SharedEditing } from "../../static/js/desk/shared_editing.ts"
import { EditorSelection, Y, ySyncFacet } from "../../static/js/lib/vendor.ts"
import { setPassages } from "../../static/js/reviews/highlights.ts"
import { Mirror } from "../../static/js/suggest/sync/mirror.ts"
import { ownPieces } from "../../static/js/suggest/view/pieces.ts"
import { Suggesting } from "../../static/js/suggest/sync/suggesting.ts"

/**
 * @typedef {"writer" | "reviewer"} Role
 * @typedef {{ from: number, to: number, insert: string }} Edit
 * @typedef {object} Layout
 * @property {Role} role
 * @property {string} text
 * @property {Edit[]} [edits] of the reviewer
 * @property {boolean} [isStored] whether the server has them as suggestions
 * @property {{ from: number, to: number, text: string }[]} [parts] of suggestions that the writer sees
 * @property {[anchor: number, head: number]} [peer] the peer's selection in the shared text
 */

/** @type {Editor | undefined} */
let editor
/** @type {Suggesting | undefined} */
let model
/** @type {Y.Text} */
let text

/** An editor in place of the one before. @param {Layout} layout */
function begin({ role, text: content, edits = [], isStored = false, parts = [], peer }) {
  editor?.stop()
  const paper = /** @type {HTMLElement} */ (document.getElementById("paper"))
  paper.replaceChildren()
  text = new Y.Doc().getText("content")
  text.insert(0, content)
  model = undefined
  const drawing = ownPieces({ suggestions: () => model?.suggestions ?? [], idAt: () => null, press() {} })
  const mirror = role === "reviewer" ? new Mirror(text, drawing) : null
  editor = new Editor(paper, text, role, mirror ?? new SharedEditing(text))
  const { view } = editor
  let ids = 0
  if (mirror) {
    model = new Suggesting(view.state.doc, [], () => `suggestion-${String(ids++).padStart(16, "0")}`)
    mirror.begin(model)
  }
  editor.mayType(true)
  editor.focus()
  for (const { from, to, insert } of edits) view.dispatch({ changes: { from, to, insert }, selection: { anchor: from + insert.length }, userEvent: "input.type" })
  if (isStored && model) {
    const { put } = model.collect()
    model.answered(put.map(({ id }) => ({ id, state: "kept", version: 1 })))
  }
  const passages = parts.map(({ from, to, text: words }, at) => {
    const spot = { from, to, quote: content.slice(from, to), prefix: content.slice(0, from), suffix: content.slice(to), text: words, holds: true }
    return /** @type {const} */ ([`review-${at}`, { suggests: true, by: "reviewer", since: "", spots: [spot] }])
  })
  view.dispatch({ effects: setPassages.of(new Map(/** @type {any} */ (passages))) })
  if (peer) showPeer(peer)
}

/** @param {[anchor: number, head: number]} selection */
function showPeer([anchor, head]) {
  const { view, role } = /** @type {Editor} */ (editor)
  const at = (/** @type {number} */ index) => Y.relativePositionToJSON(Y.createRelativePositionFromTypeIndex(text, index))
  const state = { cursor: { anchor: at(anchor), head: at(head) }, user: { role: role === "writer" ? "reviewer" : "writer", name: "Lee" } }
  const awareness = { clientID: 1, getStates: () => new Map([[2, state]]), on() {}, off() {}, setLocalStateField() {}, getLocalState: () => ({}) }
  new Presence(view, text, /** @type {any} */ (awareness), { name: "Kim", role, nameOf: () => "" }).start()
}

/** The editor has drawn, and read the selection of the page. */
const frame = () => new Promise(requestAnimationFrame)

Object.assign(globalThis, {
  alone: {
    begin,
    frame,
    /** @param {number} anchor @param {number} head */
    async select(anchor, head = anchor) {
      await frame()
      editor?.view.dispatch({ selection: EditorSelection.range(anchor, head) })
      await frame()
    },
    selection: () => [editor?.view.state.selection.main.anchor, editor?.view.state.selection.main.head],
    /** Where a position stands in the window. @param {number} at */
    pointAt(at) {
      const rect = editor?.view.coordsAtPos(at)
      return rect ? { x: rect.left, y: (rect.top + rect.bottom) / 2 } : null
    },
    text: () => editor?.text,
    shared: () => text.toString(),
    /** The changed passages that would be sent. */
    parts: () => model?.unsaved().put.flatMap(({ parts }) => parts.map(({ quote, text: words }) => [quote, words])),
    /** Another client edits, and this one receives it. @param {(text: Y.Text) => void} edit */
    receive(edit) {
      const other = new Y.Doc()
      const doc = /** @type {Y.Doc} */ (text.doc)
      Y.applyUpdate(other, Y.encodeStateAsUpdate(doc))
      edit(other.getText("content"))
      Y.applyUpdate(doc, Y.encodeStateAsUpdate(other, Y.encodeStateVector(doc)))
    },
    /** The shared text changes, and the editor does not hear of it. @param {(text: Y.Text) => void} edit */
    divert: (edit) => text.doc?.transact(() => edit(text), editor?.view.state.facet(ySyncFacet)),
  },
})
