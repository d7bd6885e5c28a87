/**
 * An offer of another user, opened by its link: what it is, how many places are free, and the reader's own
 * claim. Owns one element.
 */

import { announce, showToast } from "../lib/announce.ts"
import * as api from "../lib/api.ts"
import { confirm } from "../lib/confirm.ts"
import { button, el, fillMeter, meter, nameButton, once, onSubmit, say, write } from "../lib/dom.ts"
import { number, t } from "../lib/i18n.ts"
import * as offers from "../lib/offers_api.ts"
import { offerErrorText, remainingSentence } from "./offer_text.ts"
import type { Outcome } from "./poll.ts"

/** Longest message of a claim, in characters. */
const MESSAGE_MAX = 1_000
/** From here on a claim says that it waits for its turn, in ms. */
const WAIT_SHOWN = 700
/** The offer is not as it was shown: the new state says why. */
const CHANGED = ["sold-out", "already-claimed", "offer-closed", "own-offer"]

/** The acts of the start page for an opened offer. */
interface Page {
  me: () => string // the reader's id
  changed: () => void // the reader has a claim now, or none any more
  accepted: () => Promise<void> // the reader has a new partner
  showOwn: () => void // shows the reader's own offers
  hide: () => void
}

export class OpenedOffer {
  declare id: string
  declare page: Page
  declare hadClaim
  declare form
  declare element
  /** `null`: not read yet. */
  #offer: offers.OfferView | null = null
  /** The reader had a place, and has none any more. */
  #isLost = false
  /** The offer is gone. */
  isGone = false
  #reads = 0
  #heading = el("h3", { class: "row-title", tabindex: "-1" })
  #owner = el("p", { class: "quiet" })
  #message = el("blockquote", { class: "request-message" })
  #meter = meter()
  #remaining = el("p", { class: "offer-remaining" })
  #state = el("p", { class: "offer-state" })
  #label = el("label")
  #words = el("textarea", { rows: "2", maxlength: String(MESSAGE_MAX) })
  #go = button("", { type: "submit" })
  #waits = el("p", { class: "quiet", role: "status" })
  #error = el("p", { class: "form-error", role: "alert" })
  #withdraw = button("", { class: "button" }, () => once(this.#withdraw, () => this.#end()))
  #own = button("", { class: "button" }, () => this.page.showOwn())
  #hide = button("", { class: "button button-quiet" }, () => this.page.hide())

  /** @param options `hadClaim`: the reader had a place when the page was open last */
  constructor(id: string, page: Page, { hadClaim = false }: { hadClaim?: boolean } = {}) {
    this.id = id
    this.page = page
    this.hadClaim = hadClaim
    this.#words.id = `opened-message-${id}`
    this.#label.htmlFor = this.#words.id
    this.form = el("form", { id: `opened-form-${id}`, class: "offer-claim", novalidate: true }, this.#label, this.#words, this.#waits)
    this.#go.setAttribute("form", this.form.id)
    onSubmit(this.form, this.#go, () => this.#claim())
    this.element = el(
      "li",
      { class: "row-opened", "data-key": id },
      this.#heading,
      this.#owner,
      this.#message,
      this.#meter,
      this.#remaining,
      this.#state,
      this.form,
      this.#error,
      el("div", { class: "actions" }, this.#go, this.#withdraw, this.#own, this.#hide),
    )
    this.draw()
  }

  /** Whether the reader has a place. */
  get hasClaim() {
    return this.#offer === null ? this.hadClaim && !this.isGone : this.#offer.claim !== null
  }

  /** Whether there is anything to show: an offer that was opened before shows no failure. */
  get isShown() {
    return this.#offer !== null || !this.hadClaim
  }

  focus() {
    this.#heading.focus()
    this.element.scrollIntoView({ block: "nearest" })
  }

  /** Reads the offer. */
  async read(): Promise<Outcome> {
    if (this.isGone) return "same"
    const read = ++this.#reads
    const before = this.#offer
    try {
      const offer = await offers.offer(this.id)
      if (read !== this.#reads) return "same"
      if (before === null) say(this.#error)
      this.#show(offer)
      return JSON.stringify(before) === JSON.stringify(offer) ? "same" : "changed"
    } catch (error) {
      if (read !== this.#reads) return "same"
      this.isGone = error instanceof api.Problem && error.status === 404
      if (this.isGone) this.page.changed()
      if (before === null || this.isGone) this.#fail(() => (this.isGone ? t("opened.gone") : offerErrorText(error)))
      return "failed"
    }
  }

  #show(offer: offers.OfferView) {
    const before = this.#offer
    const had = before === null ? this.hadClaim : before.claim !== null
    const wasAccepted = before?.claim?.state === "accepted"
    this.#isLost = offer.claim === null && (had || this.#isLost)
    this.#offer = offer
    this.draw()
    this.page.changed()
    if (before === null) return
    if (offer.claim?.state === "accepted" && !wasAccepted) {
      showToast(t("opened.accepted", { name: offer.owner.name }))
      void this.page.accepted()
    }
    if (had && offer.claim === null) announce(this.#sentence(offer))
    if (before.state !== offer.state && offer.claim === null && !had) announce(`${offer.title}: ${offer.state === "open" ? remainingSentence(offer) : this.#sentence(offer)}`)
  }

  draw() {
    const hadFocus = this.element.contains(document.activeElement)
    this.#drawParts()
    // The control with the focus may be hidden now. The browser blurs it at once, or later.
    const { activeElement: focused } = document
    if (hadFocus && !(this.element.contains(focused) && focused?.checkVisibility())) this.#heading.focus()
  }

  #drawParts() {
    const offer = this.#offer
    write(this.#heading, offer?.title ?? t("opened.loading"))
    if (this.isGone && offer === null) write(this.#heading, t("opened.title"))
    const isOwn = offer?.owner.id === this.page.me()
    const mayClaim = offer?.state === "open" && offer.claim === null && !isOwn && !this.isGone
    this.form.hidden = this.#go.hidden = !mayClaim
    this.#withdraw.hidden = offer?.claim?.state !== "claimed" || this.isGone
    this.#own.hidden = !isOwn
    const parts = [this.#owner, this.#message, this.#meter, this.#remaining, this.#state]
    for (const part of parts) part.hidden = offer === null
    nameButton(this.#go, t(this.#error.textContent === "" ? "opened.go" : "common.retry"), offer?.title)
    nameButton(this.#withdraw, t("opened.withdraw"), offer?.title)
    nameButton(this.#own, t("opened.own.show"), offer?.title)
    nameButton(this.#hide, t("opened.hide"), offer?.title)
    if (offer === null) return
    const { name } = offer.owner
    write(this.#owner, t("opened.by", { name }))
    write(this.#message, offer.message ?? "")
    this.#message.hidden = offer.message === null
    write(this.#remaining, remainingSentence(offer))
    fillMeter(this.#meter, 1 - offer.remaining / offer.capacity)
    this.#meter.hidden = this.#remaining.hidden = offer.state === "closed"
    write(this.#state, this.#sentence(offer))
    this.#state.hidden = this.#state.textContent === ""
    write(this.#label, t("opened.message", { name }))
  }

  /** The state of the offer for its reader. */
  #sentence({ claim, owner, state }: offers.OfferView) {
    const { name } = owner
    if (owner.id === this.page.me()) return t("opened.own")
    if (claim?.state === "accepted") return t("opened.accepted", { name })
    if (claim !== null) return t("opened.claimed", { name, number: number(claim.number) })
    const lost = this.#isLost ? [t("opened.lost", { name })] : []
    const rest = state === "open" ? [] : [state === "closed" ? t("opened.closed", { name }) : t("opened.sold-out")]
    return [...lost, ...rest].join(" ")
  }

  #fail(why?: () => string) {
    say(this.#error, why)
    this.draw()
  }

  async #claim() {
    const offer = this.#offer
    if (offer === null) return
    this.#fail()
    const timer = window.setTimeout(() => write(this.#waits, t("opened.waiting")), WAIT_SHOWN)
    try {
      const claim = await offers.claimOffer(this.id, this.#words.value.trim())
      // A read that began before the claim is old.
      this.#reads += 1
      this.#words.value = ""
      this.#isLost = false
      this.#show({ ...offer, remaining: Math.max(0, (this.#offer ?? offer).remaining - 1), claim })
      showToast(t("opened.claimed", { name: offer.owner.name, number: number(claim.number) }))
    } catch (error) {
      const isChanged = error instanceof api.Problem && CHANGED.includes(error.kind)
      if (isChanged) showToast(offerErrorText(error))
      else this.#fail(() => offerErrorText(error))
    } finally {
      window.clearTimeout(timer)
      write(this.#waits, "")
    }
    // A press of *Try again* does not wait for it.
    void this.read()
  }

  async #end() {
    const offer = this.#offer
    if (!offer?.claim || !(await confirm(t("opened.withdraw.sure", { title: offer.title }), t("opened.withdraw"), { danger: false }))) return
    try {
      await offers.endClaim(offer.claim)
      this.#reads += 1
      this.hadClaim = false
      this.#offer = { ...offer, claim: null }
      showToast(t("opened.withdrawn", { title: offer.title }))
    } catch (error) {
      const isGone = error instanceof api.Problem && error.status === 404
      if (!isGone) this.#fail(() => offerErrorText(error))
    }
    await this.read()
    if (document.activeElement === document.body || !document.activeElement?.checkVisibility()) this.#heading.focus()
  }
}
