/**
 * One websocket of a seat: the Yjs sync and awareness protocols, and the server's events.
 *
 * It never reconnects. `connection.ts` closes it and opens the next one.
 */

import type { Encoder } from "lib0/encoding"
import {
  applyAwarenessUpdate,
  createDecoder,
  createEncoder,
  encodeAwarenessUpdate,
  readSyncMessage,
  readVarString,
  readVarUint,
  readVarUint8Array,
  removeAwarenessStates,
  toUint8Array,
  writeSyncStep1,
  writeVarUint,
  writeVarUint8Array,
  type Awareness,
} from "../lib/vendor.ts"
import { piecesOf } from "./update_pieces.ts"

/** The longest message of a server that does not name it (`limits.message_bytes`), in bytes. */
export const MESSAGE_BYTES = 2 * 1024 * 1024
/** The types of a frame and the length of its update, in bytes, at most. */
const HEAD_BYTES = 16
/** The types of frames. */
const SYNC = 0
const AWARENESS = 1
/** A query of all presence: the shortest message with a certain reply. */
const QUERY_AWARENESS = 3
const EVENT = 100
/** The types of sync messages: "send me what I lack", the reply, and an edit. */
const STEP_1 = 0
const STEP_2 = 1
const UPDATE = 2

interface Handlers {
  synced: () => void // the first reply to our sync step 1 is applied
  replied: () => void // the reply to a sync step 1 of the server is sent
  event: (text: string) => void
  closed: (close: CloseEvent) => void // not by `close`
}

export class YjsSocket {
  declare doc
  declare awareness: Awareness
  declare handlers: Handlers
  isSynced = false
  /** The longest message that the server reads, in bytes. */
  messageBytes = MESSAGE_BYTES
  /** When the last message arrived; before the first one, when the socket was made or opened. In ms. */
  lastMessageAt = Date.now()
  #socket
  #closed = new AbortController()

  constructor(url: string, awareness: Awareness, handlers: Handlers) {
    this.doc = awareness.doc
    this.awareness = awareness
    this.handlers = handlers
    this.#socket = new WebSocket(url)
    this.#socket.binaryType = "arraybuffer"
    const { signal } = this.#closed
    this.#socket.addEventListener("open", () => this.#opened(), { signal })
    this.#socket.addEventListener("message", ({ data }) => this.#receive(new Uint8Array(data)), { signal })
    this.#socket.addEventListener("close", (close) => handlers.closed(close), { signal })
    this.doc.on("update", this.#sendUpdate)
    awareness.on("update", this.#sendAwareness)
  }

  get isOpen() {
    return this.#socket.readyState === WebSocket.OPEN
  }

  /** Closes it without a call of `closed`. The peers' presence ends with it. */
  close() {
    this.#closed.abort()
    this.#socket.close()
    this.doc.off("update", this.#sendUpdate)
    this.awareness.off("update", this.#sendAwareness)
    const peers = [...this.awareness.getStates().keys()].filter((client) => client !== this.doc.clientID)
    removeAwarenessStates(this.awareness, peers, this)
  }

  /** Sends a message that the server replies to. */
  probe() {
    this.#send(QUERY_AWARENESS)
  }

  #opened() {
    this.lastMessageAt = Date.now()
    this.#send(SYNC, (encoder) => writeSyncStep1(encoder, this.doc))
    this.#sendAwareness({ added: [this.doc.clientID], updated: [], removed: [] })
  }

  #receive(message: Uint8Array) {
    this.lastMessageAt = Date.now()
    const decoder = createDecoder(message)
    const frame = readVarUint(decoder)
    if (frame === EVENT) this.handlers.event(readVarString(decoder))
    if (frame === AWARENESS) applyAwarenessUpdate(this.awareness, readVarUint8Array(decoder), this)
    if (frame !== SYNC) return
    const reply = createEncoder()
    writeVarUint(reply, SYNC)
    const type = readSyncMessage(decoder, reply, this.doc, this)
    if (type === STEP_1) {
      const answer = createDecoder(toUint8Array(reply))
      // The two types.
      readVarUint(answer)
      readVarUint(answer)
      this.#sendPieces(STEP_2, readVarUint8Array(answer))
      this.handlers.replied()
    } else if (type === STEP_2 && !this.isSynced) {
      this.isSynced = true
      this.handlers.synced()
    }
  }

  #sendUpdate = (update: Uint8Array, origin: unknown) => {
    if (origin !== this && this.isOpen) this.#sendPieces(UPDATE, update)
  }

  /** @param type of the sync messages */
  #sendPieces(type: number, update: Uint8Array) {
    for (const piece of piecesOf(update, this.messageBytes - HEAD_BYTES)) {
      this.#send(SYNC, (encoder) => {
        writeVarUint(encoder, type)
        writeVarUint8Array(encoder, piece)
      })
    }
  }

  /** Sends our own presence. */
  #sendAwareness = ({ added, updated, removed }: Record<"added" | "updated" | "removed", number[]>) => {
    const { clientID } = this.doc
    if (![...added, ...updated, ...removed].includes(clientID)) return
    const update = encodeAwarenessUpdate(this.awareness, [clientID])
    this.#send(AWARENESS, (encoder) => writeVarUint8Array(encoder, update))
  }

  #send(frame: number, write?: (encoder: Encoder) => void) {
    if (!this.isOpen) return
    const encoder = createEncoder()
    writeVarUint(encoder, frame)
    write?.(encoder)
    this.#socket.send(toUint8Array(encoder))
  }
}
