/**
 * The peer's presence: caret and selection in the text, with a name.
 *
 * Ours is published as relative positions, in the form other Yjs editors use, so a stock client
 * shows it too. The server writes user and role into each state.
 */

import type { EditorState, StateEffectType } from "@codemirror/state"
import type { Role } from "../lib/api.ts"
import { byId, el, initialOf } from "../lib/dom.ts"
import { Decoration, EditorView, StateEffect, StateField, WidgetType, Y } from "../lib/vendor.ts"
import type { Connection } from "../seat/connection.ts"
import { peersOf } from "../store.ts"
import { base } from "./base_text.ts"
import { drawnApartFromComposing } from "./composing.ts"
import { relativeAt } from "./positions.ts"

type Peer = { anchor: number, head: number, name: string, role: Role }

/** After an edit of the peer our caret is published once no edit has come for this long, in ms. */
const PUBLISH_DELAY = 200

const setPeer: StateEffectType<Peer | null> = StateEffect.define()

const peer = StateField.define({
  create: () => null as Peer | null,
  update(before, transaction) {
    let value = before
    if (value && transaction.docChanged) {
      // An insertion at a caret moves the caret and its relative position: a client that types at a
      // caret need not publish it again.
      const moved = (at: number) => transaction.changes.mapPos(at, 1)
      value = { ...value, anchor: moved(value.anchor), head: moved(value.head) }
    }
    for (const effect of transaction.effects) if (effect.is(setPeer)) value = effect.value
    return value
  },
})

class Caret extends WidgetType {
  declare name: string
  declare role: Role

  constructor(name: string, role: Role) {
    super()
    this.name = name
    this.role = role
  }

  eq(other: Caret) {
    return other.name === this.name && other.role === this.role
  }

  toDOM() {
    // Not as letters: a script that deletes over the caret would put them into the text.
    const label = el("span", { class: "peer-name", "data-name": this.name })
    return el("span", { class: `peer-caret peer-${this.role}`, "aria-hidden": "true" }, label)
  }

  /** A press on the peer's caret is a press on the text. */
  ignoreEvent() {
    return false
  }
}

function draw(state: EditorState) {
  const value = state.field(peer)
  if (!value || state.doc.length < Math.max(value.anchor, value.head)) return Decoration.none
  const { anchor, head, name, role } = value
  // Beside our own caret another side would end a composition.
  const ranges = [Decoration.widget({ widget: new Caret(name, role), side: 1 }).range(head)]
  if (anchor !== head) {
    const mark = Decoration.mark({ class: `peer-selection peer-${role}` })
    ranges.push(mark.range(Math.min(anchor, head), Math.max(anchor, head)))
  }
  return Decoration.set(ranges, true)
}

/** The initial of the peer stands in the edge of the paper, level with the caret. */
const initialPosition = EditorView.updateListener.of(({ view, startState, state, docChanged, geometryChanged, viewportChanged }) => {
  const value = state.field(peer)
  if (startState.field(peer) === value && !docChanged && !geometryChanged && !viewportChanged) return
  const read = () => {
    const caret = value && value.head <= view.state.doc.length ? view.coordsAtPos(value.head) : null
    return caret && (caret.top + caret.bottom) / 2 - byId("paper").getBoundingClientRect().top - 11
  }
  view.requestMeasure({ key: setPeer, read, write: (top: number | null) => {
    const element = byId("peer-place")
    element.hidden = top === null
    if (!value || top === null) return
    element.className = `peer-place peer-${value.role}`
    element.textContent = initialOf(value.name)
    element.style.top = `${Math.round(top)}px`
  } })
})

export const peerDrawing = [
  peer,
  initialPosition,
  drawnApartFromComposing(draw, (before, after) => before.field(peer) !== after.field(peer)),
]

/** Fires `change` when the other comes, goes, or goes quiet. */
export class Presence extends EventTarget {
  declare view: EditorView
  declare text: Y.Text
  declare awareness: Connection["awareness"]
  declare identity: { name: string, role: Role, nameOf: (role: Role) => string }
  other: { away: boolean } | null = null

  #away = 0
  #publishing = 0
  /** The last drawn presence of the peer. */
  #drawn = ""

  constructor(
    view: EditorView,
    text: Y.Text,
    awareness: Connection["awareness"],
    identity: { name: string, role: Role, nameOf: (role: Role) => string },
  ) {
    super()
    this.view = view
    this.text = text
    this.awareness = awareness
    this.identity = identity
  }

  start() {
    const { name, role } = this.identity
    this.awareness.setLocalStateField("user", { name, role })
    this.awareness.on("change", this.#update)
    document.addEventListener("visibilitychange", this.#visibilityChanged)
    this.#update()
  }

  stop() {
    this.awareness.off("change", this.#update)
    document.removeEventListener("visibilitychange", this.#visibilityChanged)
    window.clearTimeout(this.#away)
    window.clearTimeout(this.#publishing)
  }

  /** Publishes activity for a user who only reads. */
  publishActivity() {
    this.awareness.setLocalStateField("stirred", Date.now())
  }

  /** Tells the other where we are, soon: not we have moved, but the text around us. */
  publishSoon() {
    window.clearTimeout(this.#publishing)
    this.#publishing = window.setTimeout(() => this.publish(), PUBLISH_DELAY)
  }

  /** Tells the other where we are. */
  publish() {
    window.clearTimeout(this.#publishing)
    const { anchor, head } = this.view.state.selection.main
    const { toBase, toShared } = this.view.state.facet(base)
    const at = (index: number) => {
      const shared = toShared(toBase(this.view.state, index))
      return Y.relativePositionToJSON(relativeAt(this.text, Math.min(shared, this.text.length)))
    }
    const headAt = at(head)
    const cursor = { anchor: anchor === head ? headAt : at(anchor), head: headAt }
    const before = this.awareness.getLocalState()?.cursor
    if (JSON.stringify(before) !== JSON.stringify(cursor)) {
      this.awareness.setLocalStateField("cursor", cursor)
    }
  }

  #update = () => {
    const others = [...this.awareness.getStates()].filter(([id]) => id !== this.awareness.clientID)
    const state = others.map(([, state]) => state).find((state) => state.cursor) ?? others[0]?.[1]
    const next = state && { away: state.away === true }
    if (next?.away !== this.other?.away || !next !== !this.other) {
      this.other = next ?? null
      this.dispatchEvent(new Event("change"))
    }
    // To find a position takes a walk through the text; what is drawn goes along with each edit.
    const drawn = JSON.stringify([state?.cursor, state?.user])
    if (drawn === this.#drawn && this.view.state.field(peer)) return
    this.#drawn = drawn
    const found = state?.cursor ? this.#peerOf(state) : null
    if (JSON.stringify(found) === JSON.stringify(this.view.state.field(peer))) return
    this.view.dispatch({ effects: setPeer.of(found) })
  }

  #peerOf(state: { [field: string]: any }): Peer | null {
    const { toView, fromShared } = this.view.state.facet(base)
    const at = (json: unknown) => {
      const relative = Y.createRelativePositionFromJSON(json)
      const absolute = Y.createAbsolutePositionFromRelativePosition(relative, this.text.doc ?? new Y.Doc())
      return absolute?.type === this.text ? toView(this.view.state, fromShared(absolute.index)) : null
    }
    const role = peersOf(this.identity.role).find((role) => role === state.user?.role)
    if (!role) return null
    try {
      const head = at(state.cursor.head)
      const isCaret = JSON.stringify(state.cursor.anchor) === JSON.stringify(state.cursor.head)
      const anchor = isCaret ? head : at(state.cursor.anchor)
      if (anchor === null || head === null) return null
      return { anchor, head, role, name: String(state.user?.name ?? this.identity.nameOf(role)) }
    } catch {
      return null
    }
  }

  /** A tab that is hidden for a minute counts as away. */
  #visibilityChanged = () => {
    window.clearTimeout(this.#away)
    const publishAway = () => this.awareness.setLocalStateField("away", document.hidden)
    if (document.hidden) this.#away = window.setTimeout(publishAway, 60_000)
    else if (this.awareness.getLocalState()?.away) publishAway()
  }
}
