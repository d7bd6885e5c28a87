/** A link that was opened on the start page, such as `/#ask=…`. It waits until its user has signed in. */

import { storeInvite, takeInvite } from "../lib/sign_in.ts"

export class OpenedLink {
  declare name: string
  declare valueIn: (hash: string) => string | null
  #value = ""

  /** @param name under which the tab stores it @param valueIn reads it from an address */
  constructor(name: string, valueIn: (hash: string) => string | null) {
    this.name = name
    this.valueIn = valueIn
  }

  /** Takes the link out of the address, now and later. */
  watch(taken: () => void) {
    const take = () => {
      const value = this.valueIn(location.hash)
      if (value === null) return
      history.replaceState(null, "", location.pathname)
      this.#value = value
      taken()
    }
    window.addEventListener("hashchange", take)
    this.#value = takeInvite(this.name)
    if (this.#value !== "") taken()
    take()
  }

  /** Whether the user opened one, and has not signed in yet. */
  get isPresent() {
    return this.#value !== ""
  }

  /** It waits for the end of a sign-in elsewhere, or of a reload. */
  store() {
    storeInvite(this.name, this.#value)
  }

  /** The value; only once. */
  take() {
    const value = this.#value
    this.#value = ""
    takeInvite(this.name)
    return value
  }
}
