/**
 * The types of the third-party functions that the page uses, and no more: esbuild bundles this list.
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
