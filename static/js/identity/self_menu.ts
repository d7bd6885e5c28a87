/** The menu entries of a user's own identity: correct the name, notifications, use another device, leave. */

import type { User } from "../lib/api.ts"
import { el } from "../lib/dom.ts"
import { Notifications } from "../notify/notifications.ts"
import { SignOut, isGuest } from "./sign_out.ts"
import { MoveDialog } from "./move_dialog.ts"
import { correctName } from "./name_dialog.ts"

export class SelfMenu {
  declare renamed: (me: User) => void
  declare notifications: Notifications
  declare signOut: SignOut
  declare name
  declare move
  declare elements
  #me: User | null = null

  /** @param stop ends what the page does in the user's name */
  constructor(renamed: (me: User) => void, stop?: () => void) {
    this.renamed = renamed
    this.notifications = new Notifications()
    this.signOut = new SignOut(stop, () => this.notifications.leave())
    this.name = el("button", { type: "button", "data-t": "identity.name" })
    this.name.addEventListener("click", () => this.correct())
    this.move = el("button", { type: "button", "data-t": "identity.move" })
    this.move.addEventListener("click", () => this.#me && new MoveDialog(this.#me).open())
    this.elements = [this.notifications.element, this.name, this.move, this.signOut.element, this.signOut.everywhere]
    this.setUser(null)
  }

  /** The names of others, and other devices, are the host application's. */
  setUser(me: User | null) {
    this.#me = me
    this.name.hidden = this.move.hidden = me === null || !isGuest(me)
    this.signOut.setUser(me)
    void this.notifications.setUser(me)
  }

  correct() {
    if (!this.#me) return
    correctName(this.#me, (me) => {
      this.setUser(me)
      this.renamed(me)
    })
  }
}
