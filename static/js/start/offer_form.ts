/** The form that offers reviews. Owns one form and the button that opens it. */

import { showToast } from "../lib/announce.ts"
import { byId, mayMoveFocus, onSubmit, say } from "../lib/dom.ts"
import { t } from "../lib/i18n.ts"
import * as offers from "../lib/offers_api.ts"
import { offerErrorText } from "./offer_text.ts"

/** Most places of an offer, as on the server. */
const CAPACITY_MAX = 100

export class OfferForm {
  declare made: (offer: offers.Offer) => Promise<void>
  #form = byId("offer", HTMLFormElement)
  #opener = byId("offer-open", HTMLButtonElement)
  #title = byId("offer-title", HTMLInputElement)
  #capacity = byId("offer-capacity", HTMLInputElement)
  #message = byId("offer-message", HTMLTextAreaElement)

  constructor(made: (offer: offers.Offer) => Promise<void>) {
    this.made = made
  }

  start() {
    this.#opener.addEventListener("click", () => this.show(this.#form.hidden))
    this.#form.addEventListener("input", () => this.#forgive())
    onSubmit(this.#form, byId("offer-go", HTMLButtonElement), () => this.#submit())
  }

  show(shown: boolean) {
    this.#form.hidden = !shown
    this.#opener.setAttribute("aria-expanded", String(shown))
    this.#forgive()
    if (!shown) return
    this.#title.focus()
    this.#form.scrollIntoView({ block: "nearest" })
  }

  async #submit() {
    this.#forgive()
    const title = this.#title.value.trim()
    const capacity = Number(this.#capacity.value)
    const message = this.#message.value.trim()
    if (!(Number.isInteger(capacity) && 1 <= capacity && capacity <= CAPACITY_MAX)) this.#refuse(this.#capacity, () => t("offer.capacity.wrong"))
    if (title === "") this.#refuse(this.#title, () => t("offer.title.missing"))
    if (this.#form.querySelector("[aria-invalid]")) return
    const content = () => JSON.stringify([this.#title.value, this.#capacity.value, this.#message.value])
    const sent = content()
    try {
      const offer = await offers.createOffer({ title, capacity, ...(message === "" ? {} : { message }) })
      // Later words stay.
      const isDone = sent === content()
      const mayMove = isDone && mayMoveFocus(this.#form)
      if (isDone) this.#form.reset()
      if (isDone) this.show(false)
      if (mayMove) this.#opener.focus()
      showToast(t("offer.made", { title: offer.title }))
      await this.made(offer)
    } catch (error) {
      say(byId("offer-error"), () => offerErrorText(error))
    }
  }

  #refuse(field: HTMLInputElement, why: () => string) {
    say(byId(`${field.id}-error`), why)
    field.setAttribute("aria-invalid", "true")
    field.focus()
  }

  #forgive() {
    for (const field of [this.#title, this.#capacity]) field.removeAttribute("aria-invalid")
    for (const id of ["offer-title-error", "offer-capacity-error", "offer-error"]) say(byId(id))
  }
}
