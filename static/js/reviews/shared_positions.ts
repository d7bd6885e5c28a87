/**
 * Where the letters of anchors stand in the shared text, by the relative positions that the server sends.
 *
 * The server finds an anchor by these letters, so both have one place, whatever either has not received yet. One walk
 * through the text indexes its letters: Yjs would walk for each position.
 */

import type { Anchor } from "../lib/api.ts"
import { Y } from "../lib/vendor.ts"

/** Letters that one client typed in a row: their first clock, and where they stand. */
type Run = { clock: number, length: number, at: number, isVisible: boolean }
/** `left` and `isBeside`: see `Spot`. */
type SharedRange = { from: number, to: number, left: number, isBeside: boolean }

export class SharedPositions {
  declare length
  declare toBase: (at: number) => number
  /** By client, in the order of the clocks. */
  #runs: Map<number, Run[]> = new Map()

  /** The places that were asked for. */
  #found: Map<Anchor, SharedRange | null> = new Map()

  /** @param toBase from the shared text */
  constructor(text: Y.Text, toBase: (at: number) => number) {
    this.length = text.length
    this.toBase = toBase
    let at = 0
    for (let item = text._start; item; item = item.right) {
      const { id, length, deleted, countable } = item
      const runs = this.#runs.get(id.client) ?? []
      const isVisible = !deleted && countable
      runs.push({ clock: id.clock, length, at, isVisible })
      if (runs.length === 1) this.#runs.set(id.client, runs)
      if (isVisible) at += length
    }
    for (const runs of this.#runs.values()) runs.sort((one, other) => one.clock - other.clock)
  }

  /** `null`: the server sent no positions, or this page lacks a letter yet. */
  of(anchor: Anchor): SharedRange | null {
    const found = this.#found.get(anchor) ?? this.#of(anchor)
    this.#found.set(anchor, found)
    return found
  }

  #of({ quote, relative }: Anchor): SharedRange | null {
    const start = relative && this.#find(relative.start)
    const end = relative && this.#find(relative.end)
    if (!start || !end) return null
    if (quote === "") return { from: end.at, to: end.at, left: start.isVisible ? start.at : -1, isBeside: end.isVisible }
    return { from: start.at, to: Math.max(start.at, end.at), left: -1, isBeside: false }
  }

  #find(encoded: string) {
    const { item, assoc } = Y.decodeRelativePosition(Uint8Array.from(atob(encoded), (byte) => byte.charCodeAt(0)))
    // An end of the text.
    if (!item) return { at: this.toBase(assoc < 0 ? 0 : this.length), isVisible: true }
    const runs = this.#runs.get(item.client) ?? []
    let [low, high] = [0, runs.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((runs[middle] as Run).clock <= item.clock) low = middle + 1
      else high = middle
    }
    const run = runs[low - 1]
    if (!run || run.clock + run.length <= item.clock) return null
    const inside = run.isVisible ? item.clock - run.clock + (assoc < 0 ? 1 : 0) : 0
    return { at: this.toBase(run.at + inside), isVisible: run.isVisible }
  }
}
