/**
 * Which edits of this replica are on the server's disk.
 *
 * `document.saved` has a state vector, which covers insertions. A deletion moves no clock. The server stores in
 * order, so an insertion after it proves it; where none follows, the replica inserts and deletes a space. A deletion
 * that the server denied, or that was made without a socket, is proven only after the answer to a sync step 1.
 */

import type * as Y from "yjs"

/** How long a deletion waits for an insertion of the user, in ms. */
const PROOF_DELAY = 500

export class SavedState {
  #text: Y.Text
  #provider: unknown
  #announce: (saved: boolean) => void
  /** The clock of each client up to which edits are unsaved. */
  #unsaved: Map<number, number> = new Map()
  #hasDeletion = false
  #isAnswered = false
  #timer: ReturnType<typeof setTimeout> | undefined

  /** @param provider the origin of remote edits */
  constructor(text: Y.Text, provider: unknown, announce: (saved: boolean) => void) {
    this.#text = text
    this.#provider = provider
    this.#announce = announce
    text.doc?.on("update", this.#observe)
  }

  stop(): void {
    this.#text.doc?.off("update", this.#observe)
    clearTimeout(this.#timer)
  }

  /** @param stateVector in base64 */
  saved(stateVector: string): void {
    for (const [client, clock] of clocksIn(stateVector)) {
      if ((this.#unsaved.get(client) ?? Infinity) <= clock) this.#unsaved.delete(client)
    }
    this.#announce(this.#unsaved.size === 0 && !this.#hasDeletion)
  }

  /** @param isAnswered the replica answered a sync step 1 with all that the server lacks; false: the server may lack deletions */
  setAnswered(isAnswered: boolean): void {
    this.#isAnswered = isAnswered
    this.#prove()
  }

  #observe = (_update: Uint8Array, origin: unknown, _doc: Y.Doc, { beforeState, afterState }: Y.Transaction): void => {
    if (origin === this.#provider) return
    const advanced = [...afterState].filter(([client, clock]) => (beforeState.get(client) ?? 0) < clock)
    for (const [client, clock] of advanced) this.#unsaved.set(client, clock)
    this.#hasDeletion = advanced.length === 0 || (this.#hasDeletion && !this.#isAnswered)
    this.#announce(false)
    this.#prove()
  }

  #prove(): void {
    clearTimeout(this.#timer)
    if (!this.#hasDeletion || !this.#isAnswered) return
    this.#timer = setTimeout(() => this.#text.doc?.transact(() => {
      this.#text.insert(0, " ")
      this.#text.delete(0, 1)
    }, this), PROOF_DELAY)
  }
}

/** The clients of a state vector with their clocks. @param stateVector in base64 */
function clocksIn(stateVector: string): Map<number, number> {
  const bytes = Array.from(atob(stateVector), (character) => character.charCodeAt(0))
  // Variable-length integers of seven bits a byte; a client's id has up to 53 bits, more than `<<` shifts.
  const number = (weight = 1): number => {
    const byte = bytes.shift() ?? 0
    return byte < 128 ? byte * weight : (byte - 128) * weight + number(weight * 128)
  }
  return new Map(Array.from({ length: number() }, () => [number(), number()] as const))
}
