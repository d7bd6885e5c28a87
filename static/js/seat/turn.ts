/**
 * Whose turn it is: the reviewer hands the text back, the writer asks to look again, and both can take
 * that back. Owns one element, in the bar or in the foot.
 */

import { announce, showToast } from "../lib/announce.ts"
import * as api from "../lib/api.ts"
import { button, byId, drawWith, el, footWhenNarrow, isDrawn, once } from "../lib/dom.ts"
import { errorText } from "../lib/error_text.ts"
import { authorName, t, when } from "../lib/i18n.ts"
import { peersOf, type Store } from "../store.ts"

export class TurnBar {
  declare store: Store
  declare role: api.Role
  declare peer
  declare element

  constructor(store: Store, role: api.Role) {
    this.store = store
    this.role = role
    this.peer = peersOf(role)[0] as api.Role
    this.element = byId("turn")
  }

  start(signal: AbortSignal) {
    footWhenNarrow(this.element, signal)
    drawWith([this.store], () => this.#draw(), signal)
  }

  /** From an answer or an event of the server. */
  apply(turn: api.Turn) {
    const { link, me } = this.store.state
    if (!link) return
    const isNew = turn.role !== link.turn?.role
    this.store.change({ link: { ...link, turn } })
    if (isNew && turn.by.id !== me?.id) showToast(t(newsOf(turn, this.role), { name: authorName(turn.by) }))
  }

  #draw() {
    const { link } = this.store.state
    const turn = link?.turn ?? null
    const isShown = this.store.seated && link?.reviewer != null
    if (isDrawn(this, isShown, turn)) return
    const hadFocus = this.element.contains(document.activeElement)
    this.element.hidden = !isShown
    this.element.replaceChildren(...(isShown ? this.#parts(turn) : []))
    if (hadFocus) this.element.querySelector("button")?.focus()
  }

  #parts(turn: api.Turn | null) {
    const isMine = turn?.role !== this.peer
    const to = isMine ? this.peer : this.role
    const words = isMine ? t(this.#handOverWords(turn)) : t(`turn.back.${this.role}`)
    const press = button(words, { class: isMine ? "button button-strong" : "button button-quiet" }, () => once(press, () => this.#handOver(to)))
    if (!turn) return [press]
    const status = isMine ? t("turn.mine") : t(`turn.theirs.${this.peer}`)
    return [el("p", { class: "turn-status hidden", "data-mine": String(isMine), text: `${status} · ${t("seat.since", { time: when(turn.since) })}` }), press]
  }

  #handOverWords(turn: api.Turn | null) {
    if (this.role === "reviewer") return "turn.hand.reviewer"
    return turn ? "turn.hand.writer" : "turn.hand.writer.first"
  }

  async #handOver(to: api.Role, { undoes = false }: { undoes?: boolean } = {}) {
    const id = this.store.state.link?.id
    if (id === undefined) return
    try {
      const { turn } = await api.handOver(id, to)
      this.apply(turn)
      if (undoes) return announce(t("turn.undone"))
      if (to === this.role) return announce(t("turn.mine"))
      showToast(t(`turn.done.${this.role}`), { text: t("common.undo"), act: () => this.#handOver(this.role, { undoes: true }) })
    } catch (error) {
      showToast(errorText(error))
    }
  }
}

/** The news of a change of turn by the other user. @param role the reader's */
function newsOf(turn: api.Turn, role: api.Role) {
  if (turn.role === role) return role === "writer" ? "turn.news.writer" : "turn.news.reviewer"
  return role === "writer" ? "turn.news.back.writer" : "turn.news.back.reviewer"
}
