/** How other users reach one: the handle and the personal link. Owns one form and the button that opens it. */

import { showToast } from "../lib/announce.ts"
import { Problem, me, setGuestRequests } from "../lib/api.ts"
import { confirm } from "../lib/confirm.ts"
import { byId, copy, once, onSubmit, write } from "../lib/dom.ts"
import { t } from "../lib/i18n.ts"
import * as people from "../lib/partners_api.ts"
import { handleIn } from "./person_address.ts"
import { peopleErrorText } from "./request_text.ts"

export class AddressForm {
  declare opened: () => void
  #address: people.Address | null = null
  #form = byId("address", HTMLFormElement)
  #opener = byId("address-open", HTMLButtonElement)
  #handle = byId("address-handle", HTMLInputElement)
  #link = byId("address-link", HTMLInputElement)
  #guests = byId("address-guests", HTMLInputElement)
  /** The last change of the switch. */
  #guestsSet = Promise.resolve()
  #error = byId("address-error")
  /** Why a change was refused, and why the address is missing; said anew in another language. */
  #why: () => string = () => ""
  #whyMissing: () => string = () => ""

  /** @param opened the other form closes */
  constructor(opened: () => void) {
    this.opened = opened
  }

  start() {
    this.#opener.addEventListener("click", () => this.show(this.#form.hidden))
    this.#handle.addEventListener("input", () => this.#forgive())
    this.#guests.addEventListener("change", () => (this.#guestsSet = this.#guestsSet.then(() => this.#setGuests())))
    const failed = (error: unknown) => this.#failed(error)
    onSubmit(this.#form, byId("address-save", HTMLButtonElement), () => this.#save(), failed)
    for (const [id, work] of [
      ["address-remove", () => this.#remove()],
      ["address-copy", () => this.#copy()],
      ["address-renew", () => this.#renew()],
    ] as const) byId(id).addEventListener("click", () => once(byId(id, HTMLButtonElement), () => work().catch(failed)))
  }

  show(shown: boolean) {
    this.#form.hidden = !shown
    this.#opener.setAttribute("aria-expanded", String(shown))
    this.#forgive()
    if (!shown) return
    this.opened()
    this.#handle.value = this.#address?.handle ?? ""
    this.#handle.focus()
    void this.read()
    void this.#readGuests()
  }

  /** Reads a missing address. @returns `null`: the form says why */
  async read(): Promise<people.Address | null> {
    if (this.#address !== null) return this.#address
    try {
      const address = await people.address()
      // The answer to a change is newer.
      this.#address ??= address
      this.#handle.value ||= this.#address.handle ?? ""
    } catch (error) {
      this.#whyMissing = () => peopleErrorText(error)
    }
    this.draw()
    return this.#address
  }

  draw() {
    const handle = this.#address?.handle ?? null
    byId("address-now").textContent = handle === null ? "" : `@${handle}`
    byId("address-remove").hidden = handle === null
    this.#link.value = this.#address?.link.url ?? ""
    this.#drawError()
  }

  #failed(error: unknown) {
    this.#fail(() => peopleErrorText(error))
    if (!(error instanceof Problem) || !["handle-taken", "invalid-handle"].includes(error.kind)) return
    this.#handle.setAttribute("aria-invalid", "true")
    this.#handle.focus()
  }

  #fail(why: () => string) {
    this.#handle.removeAttribute("aria-invalid")
    this.#why = why
    this.#drawError()
  }

  #forgive() {
    this.#fail(() => "")
  }

  #drawError() {
    write(this.#error, this.#why() || (this.#address === null ? this.#whyMissing() : ""))
  }

  /** The switch stays off duty while its state is not known. */
  async #readGuests() {
    const set = this.#guestsSet
    await set
    const user = await me().catch(() => null)
    if (set !== this.#guestsSet) return
    this.#guests.disabled = user === null
    this.#guests.checked = user?.guest_requests ?? false
  }

  async #setGuests() {
    const takes = this.#guests.checked
    try {
      await setGuestRequests(takes)
      showToast(t(takes ? "address.guests.on" : "address.guests.off"))
    } catch (error) {
      this.#guests.checked = !takes
      this.#failed(error)
    }
  }

  async #save() {
    const handle = handleIn(this.#handle.value)
    if (handle === null) throw new Problem(422, "invalid-handle")
    this.#change(await people.setHandle(handle))
    this.#handle.value = handle
    showToast(t("address.handle.saved", { handle }))
  }

  async #remove() {
    const handle = this.#address?.handle ?? ""
    if (!(await confirm(t("address.handle.remove.sure", { handle }), t("address.handle.remove")))) return
    this.#change(await people.setHandle(null))
    this.#handle.value = ""
    // Its button is gone.
    this.#handle.focus()
    showToast(t("address.handle.removed"))
  }

  async #copy() {
    const address = await this.read()
    if (address === null) return
    if (await copy(address.link.url)) return void showToast(t("address.link.copied"))
    this.#link.select()
    this.#fail(() => t("identity.by-hand"))
  }

  async #renew() {
    if (!(await confirm(t("address.link.renew.sure"), t("address.link.renew"), { danger: false }))) return
    this.#change(await people.renewPersonalLink())
    showToast(t("address.link.renewed"))
  }

  #change(address: people.Address) {
    this.#address = address
    this.#forgive()
    this.draw()
  }
}
