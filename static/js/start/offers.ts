/**
 * Review offers on the start page: the reader's own, and those of other users whose link was opened. Owns two
 * sections. Free places are read while the page is visible, less and less often if nothing changes.
 */

import type { User } from "../lib/api.ts"
import { byId, say } from "../lib/dom.ts"
import { i18n, number, t } from "../lib/i18n.ts"
import * as offers from "../lib/offers_api.ts"
import { preference, setPreference } from "../lib/preferences.ts"
import { OfferForm } from "./offer_form.ts"
import { offerErrorText, offerIn } from "./offer_text.ts"
import { OpenedLink } from "./opened_link.ts"
import { OpenedOffer } from "./opened_offer.ts"
import { OwnOffer } from "./own_offer.ts"
import { Poll, type Outcome } from "./poll.ts"

/** How many own offers show their people at once. The reader opens those of the others. */
const SHOWN = 3
/** How many offers a browser remembers that gave the reader a place. */
const REMEMBERED_MAX = 10

export class Offers {
  declare accepted: () => Promise<void>
  /** The offer whose link the user opened. */
  link = new OpenedLink("offer", offerIn)
  #me: User | null = null
  /** `null`: not read yet. */
  #own: OwnOffer[] | null = null
  #opened: OpenedOffer[] = []
  #reads = 0
  #poll = new Poll(() => this.#read())
  #form = new OfferForm(async () => void (await this.#poll.now()))

  /** @param accepted the reader has a new partner */
  constructor(accepted: () => Promise<void>) {
    this.accepted = accepted
  }

  start(me: User) {
    this.#me = me
    this.#form.start()
    i18n.addEventListener("change", () => this.#draw())
    this.#opened = this.#remembered().map((id) => this.#card(id, { hadClaim: true }))
    this.#poll.start()
    if (this.link.isPresent) this.openLink()
    else this.#poll.now()
  }

  /** Shows the offer whose link was opened. */
  async openLink() {
    if (this.#me === null || !this.link.isPresent) return
    const id = this.link.take()
    // Opened once more, it says anew what it says.
    this.#opened = [this.#card(id), ...this.#opened.filter((card) => card.id !== id)]
    this.#drawOpened()
    await this.#poll.now()
    const [card] = this.#opened
    if (card?.id === id) card.focus()
  }

  #card(id: string, options?: { hadClaim?: boolean }) {
    const page = {
      me: () => this.#me?.id ?? "",
      changed: () => this.#remember(),
      accepted: this.accepted,
      showOwn: () => byId("offers-title").focus(),
      hide: () => this.#hide(id),
    }
    return new OpenedOffer(id, page, options)
  }

  #hide(id: string) {
    this.#opened = this.#opened.filter((card) => card.id !== id)
    this.#remember()
    this.#drawOpened()
    const [next] = this.#opened
    if (next) next.focus()
    else byId("offers-title").focus()
  }

  /** The offers that gave the reader a place, by a claim in this browser. */
  #remembered(): string[] {
    const ids = (preference(`offers.${this.#me?.id}`) ?? "").split(" ")
    return ids.filter((id) => offerIn(`#offer=${id}`) !== null).slice(0, REMEMBERED_MAX)
  }

  #remember() {
    const ids = this.#opened.filter(({ hasClaim }) => hasClaim).map(({ id }) => id)
    setPreference(`offers.${this.#me?.id}`, ids.length === 0 ? null : ids.slice(0, REMEMBERED_MAX).join(" "))
  }

  async #read(): Promise<Outcome> {
    const outcomes = await Promise.all([this.#readOwn(), ...this.#opened.map((card) => card.read())])
    this.#drawOpened()
    return outcomes.find((outcome) => outcome !== "same") ?? "same"
  }

  async #readOwn(): Promise<Outcome> {
    const read = ++this.#reads
    try {
      const list = await offers.ownOffers()
      if (read !== this.#reads) return "same"
      const before = JSON.stringify(this.#own?.map(({ offer }) => offer))
      say(byId("offers-error"))
      await this.#show(list)
      return before === JSON.stringify(list) ? "same" : "changed"
    } catch (error) {
      if (read !== this.#reads) return "same"
      say(byId("offers-error"), () => t("offers.failed", { why: offerErrorText(error) }))
      return "failed"
    }
  }

  /** @param list newest first */
  async #show(list: offers.Offer[]) {
    const rows = new Map((this.#own ?? []).map((row) => [row.offer.id, row]))
    const page = { changed: async () => void (await this.#poll.now()), accepted: this.accepted }
    const isFirst = this.#own === null
    const claimed = list.filter(({ state, capacity, remaining }) => state !== "closed" && remaining < capacity).slice(0, SHOWN)
    const updates: Promise<void>[] = []
    this.#own = list.map((offer) => {
      const existing = rows.get(offer.id)
      if (existing) updates.push(existing.update(offer))
      return existing ?? new OwnOffer(offer, page)
    })
    if (isFirst) for (const row of this.#own) if (claimed.includes(row.offer)) row.open()
    this.#draw()
    await Promise.all(updates)
  }

  #draw() {
    const own = this.#own ?? []
    const closed = own.filter(({ offer }) => offer.state === "closed")
    byId("offers-none").hidden = this.#own === null || own.length !== 0
    byId("offers-closed").hidden = closed.length === 0
    byId("offers-closed-title").textContent = t("offers.closed", { count: number(closed.length) })
    for (const row of own) row.draw()
    showRows(byId("offers-list"), own.filter((row) => !closed.includes(row)))
    showRows(byId("offers-closed-list"), closed)
    this.#drawOpened()
  }

  #drawOpened() {
    const shown = this.#opened.filter(({ isShown }) => isShown)
    byId("opened").hidden = shown.length === 0
    for (const card of shown) card.draw()
    showRows(byId("opened-list"), shown)
  }
}

/** Puts the rows into a list, in that order. Rows that are there stay, with their focus. */
function showRows(list: HTMLElement, rows: readonly { element: HTMLElement }[]) {
  const elements = rows.map(({ element }) => element)
  if (list.children.length === elements.length && elements.every((element, at) => element === list.children[at])) return
  const focused = document.activeElement
  list.replaceChildren(...elements)
  if (focused instanceof HTMLElement && focused !== document.activeElement && list.contains(focused)) focused.focus()
}
