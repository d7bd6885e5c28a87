// @ts-check
/** A reviewer's page without its editor, whose server takes everything: for the rules of suggesting one by one. */

import assert from "node:assert/strict"

import { ChangeSet, Text } from "../../static/js/lib/vendor.ts"
import { Suggesting } from "../../static/js/suggest/sync/suggesting.ts"

/** @typedef {import("../../static/js/suggest/model/parts.ts").Part} Part */
/** @typedef {import("../../static/js/suggest/model/entries.ts").Suggestion} Suggestion */

export const textOf = (/** @type {string} */ text) => Text.of(text.split("\n"))

/** @param {number} start @param {string} quote @param {string} text @returns {Part} */
export const part = (start, quote, text) => ({ start, end: start + quote.length, quote, text })
/** @param {string} id @param {Part[]} parts @returns {Suggestion} */
export const stored = (id, ...parts) => ({ id, version: 1, since: "", parts, pinned: false })

/** The page. */
export class Page {
  /** @param {string} base @param {Suggestion[]} suggestions */
  constructor(base, ...suggestions) {
    let ids = 0
    this.suggesting = new Suggesting(textOf(base), suggestions, () => `new-${++ids}`)
    this.editor = this.suggesting.overlay.view
  }

  get view() {
    assert.ok(this.editor.eq(this.suggesting.overlay.view), "the editor has the view")
    return this.editor.toString()
  }

  /** @param {ChangeSet} edit */
  dispatch(edit) {
    this.editor = edit.apply(this.editor)
    return this
  }

  /** The reviewer replaces words of the view. @param {string} old @param {string} fresh */
  type(old, fresh) {
    const edit = replaced(this.editor.toString(), old, fresh)
    this.dispatch(edit)
    this.suggesting.own(edit)
    return this
  }

  /** The writer replaces words of the base. @param {string} old @param {string} fresh */
  write(old, fresh) {
    return this.dispatch(this.suggesting.written(replaced(this.suggesting.overlay.base.toString(), old, fresh)))
  }

  collect() {
    const { put, withdraw } = this.suggesting.collect()
    const found = [...put.map(({ id, version, parts }) => `${id}/${version}: ${said(parts)}`), ...withdraw.map(({ id }) => `without ${id}`)]
    return { put, withdraw, found }
  }

  /** Sends all that is due, and the server takes it. */
  send() {
    const { put, withdraw, found } = this.collect()
    this.suggesting.answered([
      ...put.map(({ id, version }) => ({ id, state: /** @type {const} */ ("kept"), version: (version ?? 0) + 1 })),
      ...withdraw.map(({ id }) => ({ id, state: /** @type {const} */ ("withdrawn") })),
    ])
    return found
  }

  get ids() {
    return this.suggesting.suggestions.map(({ id, parts }) => `${id}: ${said(parts)}`)
  }
}

/** @param {readonly Part[]} parts */
export const said = (parts) => parts.map(({ quote, text }) => `${quote}→${text}`).join(" + ")

/** The words stand once in the text, behind `|` if there is one. @param {string} text @param {string} old @param {string} fresh */
export function replaced(text, old, fresh) {
  const from = text.indexOf(old.replace("|", "")) + Math.max(0, old.indexOf("|"))
  assert.ok(0 <= from, `${old} in ${text}`)
  const length = old.includes("|") ? old.length - 1 - old.indexOf("|") : old.length
  // A deletion and an insertion are two changes, as in an event of Yjs.
  return ChangeSet.of([{ from, to: from + length }, { from: from + length, insert: textOf(fresh) }], text.length)
}
