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

export type SavedState = { saved(stateVector: string): void, setAnswered(isAnswered: boolean): void, stop(): void }

/** @param provider the origin of remote edits */
export function watchSaved(text: Y.Text, provider: unknown, announce: (saved: boolean) => void): SavedState {
  /** The clock of each client up to which edits are unsaved. */
  const unsaved: Map<number, number> = new Map()
  let [hasDeletion, isAnswered] = [false, false]
  let timer: ReturnType<typeof setTimeout> | undefined

  const insertAndDelete = () => {
    text.insert(0, " ")
    text.delete(0, 1)
  }
  const prove = () => {
    clearTimeout(timer)
    if (hasDeletion && isAnswered) timer = setTimeout(() => text.doc?.transact(insertAndDelete, unsaved), PROOF_DELAY)
  }
  const observe = (_update: Uint8Array, origin: unknown, _doc: Y.Doc, { beforeState, afterState }: Y.Transaction) => {
    if (origin === provider) return
    const advanced = [...afterState].filter(([client, clock]) => (beforeState.get(client) ?? 0) < clock)
    for (const [client, clock] of advanced) unsaved.set(client, clock)
    hasDeletion = advanced.length === 0 || (hasDeletion && !isAnswered)
    announce(false)
    prove()
  }
  text.doc?.on("update", observe)
  return {
    /** @param stateVector in base64 */
    saved(stateVector) {
      for (const [client, clock] of clocksIn(stateVector)) if ((unsaved.get(client) ?? Infinity) <= clock) unsaved.delete(client)
      announce(unsaved.size === 0 && !hasDeletion)
    },
    /** @param isNow the replica answered a sync step 1 with all that the server lacks; false: the server may lack deletions */
    setAnswered(isNow) {
      isAnswered = isNow
      prove()
    },
    stop() {
      text.doc?.off("update", observe)
      clearTimeout(timer)
    },
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
