/**
 * The third-party functions that the page uses, and no more: esbuild bundles this list.
 *
 * `build.mjs` turns it into `editor.js` for the sources; `static/js/lib/vendor.ts` imports that file by path.
 */

export { history, redo, standardKeymap, undo } from "@codemirror/commands"
export {
  closeSearchPanel,
  findNext,
  findPrevious,
  openSearchPanel,
  replaceAll,
  replaceNext,
  search,
  SearchQuery,
  searchPanelOpen,
  setSearchQuery,
} from "@codemirror/search"
export {
  Annotation,
  ChangeSet,
  Compartment,
  EditorSelection,
  EditorState,
  Facet,
  findClusterBreak,
  Prec,
  StateEffect,
  StateField,
  Text,
  Transaction,
} from "@codemirror/state"
export { Decoration, EditorView, keymap, placeholder, ViewPlugin, WidgetType } from "@codemirror/view"
export { createDecoder, readVarString, readVarUint, readVarUint8Array } from "lib0/decoding"
export { createEncoder, toUint8Array, writeVarUint, writeVarUint8Array } from "lib0/encoding"
export { yCollab, ySyncAnnotation, ySyncFacet, yUndoManagerKeymap } from "y-codemirror.next"
export {
  applyAwarenessUpdate,
  Awareness,
  encodeAwarenessUpdate,
  removeAwarenessStates,
} from "y-protocols/awareness"
export { readSyncMessage, writeSyncStep1 } from "y-protocols/sync"
export * as Y from "yjs"
