/** The menu entries of a user's own identity: name, notifications, another device, the own data, leave. */

import type { User } from "../lib/api.ts"
import { el } from "../lib/dom.ts"
import { Notifications } from "../notify/notifications.ts"
import { SignOut, isGuest } from "./sign_out.ts"
import { MoveDialog } from "./move_dialog.ts"
import { correctName } from "./name_dialog.ts"
import { deleteOwnData, downloadEntry } from "./own_data.ts"

export class SelfMenu {
  declare renamed: (me: User) => void
  declare notifications: Notifications
  declare signOut: SignOut
  declare name
  declare move
  declare download
  declare remove
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
    this.download = downloadEntry()
    this.remove = el("button", { type: "button", "data-t": "identity.data.delete" })
    this.remove.addEventListener("click", () => {
      const me = this.#me
      if (me) deleteOwnData(me, () => this.signOut.forget(me))
    })
    this.elements = [this.notifications.element, this.name, this.move, this.download, this.remove, this.signOut.element, this.signOut.everywhere]
    this.setUser(null)
  }

  /** The names of others, and other devices, are the host application's. */
  setUser(me: User | null) {
    this.#me = me
    this.name.hidden = this.move.hidden = me === null || !isGuest(me)
    this.download.hidden = this.remove.hidden = me === null
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
