/**
 * The types of what the page uses of other people's code, and nothing more: the bundle is made of this list.
 *
 * `build.mjs` turns it into `editor-<hash>.js`; `static/js/lib/vendor.js` imports that file by path.
 */

export { standardKeymap } from "@codemirror/commands"
export {
  Compartment,
  EditorSelection,
  EditorState,
  Facet,
  findClusterBreak,
  Prec,
  StateEffect,
  StateField,
  Transaction,
} from "@codemirror/state"
export { Decoration, EditorView, keymap, placeholder, ViewPlugin, WidgetType } from "@codemirror/view"
export { createDecoder, readVarString, readVarUint } from "lib0/decoding"
export { yCollab, ySyncAnnotation, ySyncFacet, yUndoManagerKeymap } from "y-codemirror.next"
export { WebsocketProvider } from "y-websocket"
export * as Y from "yjs"
