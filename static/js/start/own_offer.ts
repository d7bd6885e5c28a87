/** An own offer as a row: its free places, the users who claimed one, its link and its end. Owns one element. */

import { announce, showToast } from "../lib/announce.ts"
import { confirm } from "../lib/confirm.ts"
import { button, byId, copy, el, fillMeter, isDrawn, meter, nameButton, once, say, write } from "../lib/dom.ts"
import { t, number, when } from "../lib/i18n.ts"
import * as offers from "../lib/offers_api.ts"
import type { Claim } from "../lib/offers_api.ts"
import { claimErrorText, offerErrorText, remainingSentence } from "./offer_text.ts"
import { fillRows } from "./person_rows.ts"

/** The acts of the start page for an offer. */
interface Page {
  changed: () => Promise<void> // the offers are read again
  accepted: () => Promise<void> // the reader has a new partner
}

export class OwnOffer {
  declare offer: offers.Offer
  declare page: Page
  declare element
  /** `null`: not read yet. */
  #claims: Claim[] | null = null
  /** The claims that the reader declined: their end is no news. */
  #declined: Set<string> = new Set()
  /** The claims that were read, as they stand in the list. */
  #reads = 0
  #heading = el("p", { class: "row-title" })
  #remaining = el("strong")
  #facts = el("span")
  #copy = button("", { class: "button button-quiet" }, () => once(this.#copy, () => this.#copyLink()))
  #people = button("", { class: "button button-quiet" }, () => this.#show(!this.isShown))
  #close = button("", { class: "button button-quiet" }, () => once(this.#close, () => this.#end()))
  #field = el("input", { readonly: true, hidden: true })
  #error = el("p", { class: "form-error", role: "alert" })
  #none = el("p", { class: "quiet" })
  #list = el("ul", { class: "rows" })
  #meter = meter()
  #panel = el("div", { class: "offer-people" }, this.#error, this.#none, this.#list)

  constructor(offer: offers.Offer, page: Page) {
    this.offer = offer
    this.page = page
    this.#panel.id = `people-${offer.id}`
    this.#people.setAttribute("aria-controls", this.#panel.id)
    const text = el(
      "div",
      { class: "row-text" },
      this.#heading,
      offer.message ? el("blockquote", { class: "request-message", text: offer.message }) : null,
      this.#meter,
      el("p", { class: "quiet" }, this.#remaining, this.#facts),
    )
    const actions = el("div", { class: "actions" }, this.#people, this.#copy, this.#close)
    this.element = el("li", { class: "row row-offer", "data-key": offer.id }, text, actions, this.#field, this.#panel)
    this.#panel.hidden = true
    this.draw()
  }

  get isShown() {
    return !this.#panel.hidden
  }

  /** How many places are claimed. */
  get taken() {
    return this.offer.capacity - this.offer.remaining
  }

  /** A newer state of the offer. Its claims are read again if they are shown, or if their number has changed. */
  async update(offer: offers.Offer) {
    const before = this.taken
    // Without a place taken there is no claim to read; the first one is new.
    if (before === 0) this.#claims ??= []
    this.offer = offer
    this.draw()
    if (this.isShown || before !== this.taken) await this.#read()
  }

  /** Shows the claims. */
  open() {
    this.#show(true)
  }

  draw() {
    const { title, state, created_at: made, closed_at: closed } = this.offer
    write(this.#heading, title)
    write(this.#remaining, remainingSentence(this.offer))
    fillMeter(this.#meter, this.taken / this.offer.capacity)
    const facts = [t("offer.at", { when: when(made) }), ...(closed === null ? [] : [t("offer.closed", { when: when(closed) })])]
    write(this.#facts, ` · ${facts.join(" · ")}`)
    nameButton(this.#copy, t("offer.copy"), this.offer.title)
    nameButton(this.#people, t("offer.people", { count: number(this.taken) }), this.offer.title)
    nameButton(this.#close, t("offer.close"), this.offer.title)
    this.#people.setAttribute("aria-expanded", String(this.isShown))
    this.#copy.hidden = this.#close.hidden = state === "closed"
    this.#field.setAttribute("aria-label", t("offer.link"))
    if (state === "closed") this.#field.hidden = true
    write(this.#none, t("offer.people.none"))
    this.#none.hidden = this.#claims?.length !== 0
    if (isDrawn(this, this.#claims)) return
    fillRows(this.#list, (this.#claims ?? []).map((claim) => this.#claim(claim)), this.#people)
  }

  #show(shown: boolean) {
    this.#panel.hidden = !shown
    this.draw()
    if (shown) void this.#read()
  }

  async #read() {
    const read = ++this.#reads
    try {
      const claims = await offers.claims(this.offer.id)
      if (read !== this.#reads) return
      this.#announceChanges(claims)
      this.#claims = claims
      say(this.#error)
    } catch (error) {
      if (read !== this.#reads) return
      say(this.#error, () => t("offer.people.failed", { why: offerErrorText(error) }))
    }
    this.draw()
  }

  #announceChanges(claims: readonly Claim[]) {
    const before = this.#claims
    if (before === null) return
    const { title } = this.offer
    for (const { user } of missing(claims, before)) announce(t("offer.claim.came", { name: user.name, title }))
    const ended = missing(before, claims).filter(({ id }) => !this.#declined.has(id))
    for (const { user } of ended) announce(t("offer.claim.left", { name: user.name, title }))
  }

  #claim(claim: Claim) {
    const { id, user, message, state, number: position, created_at: at } = claim
    const facts = [t("offer.claim.number", { number: number(position) }), when(at)]
    if (state === "accepted") facts.push(t("offer.claim.accepted"))
    const text = el(
      "div",
      { class: "row-text" },
      el("p", { class: "row-title", text: user.name }),
      message ? el("blockquote", { class: "request-message", text: message }) : null,
      el("p", { class: "quiet", text: facts.join(" · ") }),
    )
    const buttons = state === "accepted" ? [] : [this.#answer("accept", claim), this.#answer("decline", claim)]
    return el("li", { class: "row", "data-key": id }, text, el("div", { class: "actions" }, ...buttons))
  }

  #answer(act: "accept" | "decline", claim: Claim) {
    const words = t(`offer.claim.${act}`)
    const kind = act === "accept" ? "button button-strong" : "button"
    const press = button(words, { class: kind, label: `${words}: ${claim.user.name}` }, () => void once(press, () => this.#decide(act, claim)))
    press.dataset.act = act
    return press
  }

  async #decide(act: "accept" | "decline", claim: Claim) {
    const { name } = claim.user
    if (act === "decline") this.#declined.add(claim.id)
    try {
      if (act === "accept") await offers.acceptClaim(claim)
      else await offers.endClaim(claim)
      showToast(t(act === "accept" ? "offer.claim.accept.done" : "offer.claim.decline.done", { name }))
    } catch (error) {
      showToast(claimErrorText(error))
    }
    await Promise.all([this.#read(), this.page.changed(), ...(act === "accept" ? [this.page.accepted()] : [])])
  }

  async #copyLink() {
    if (await copy(this.offer.url)) return void showToast(t("offer.copied"))
    this.#field.value = this.offer.url
    this.#field.hidden = false
    this.#field.select()
    showToast(t("identity.by-hand"))
  }

  async #end() {
    const { id, title } = this.offer
    if (!(await confirm(t("offer.close.sure", { title }), t("offer.close")))) return
    const done = () => showToast(t("offer.closed.done", { title }))
    await offers.closeOffer(id).then(done, (error) => showToast(offerErrorText(error)))
    await this.page.changed()
    // Its button is gone, and the row stands among the closed ones.
    if (document.activeElement === document.body) byId("offers-title").focus()
  }
}

/** The claims of one list that the other one misses. */
const missing = (list: readonly Claim[], other: readonly Claim[]) => list.filter(({ id }) => other.every((claim) => claim.id !== id))
