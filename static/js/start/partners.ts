/** Partners and review requests on the start page. Owns two sections. */

import { announce, showToast } from "../lib/announce.ts"
import type { User } from "../lib/api.ts"
import { confirm } from "../lib/confirm.ts"
import { button, byId, el, initial, once, say } from "../lib/dom.ts"
import { i18n, number, t, when } from "../lib/i18n.ts"
import * as people from "../lib/partners_api.ts"
import { AddressForm } from "./address_form.ts"
import { OpenedLink } from "./opened_link.ts"
import { RequestForm } from "./request_form.ts"
import { tokenIn } from "./person_address.ts"
import { fillRows, restoreFocus } from "./person_rows.ts"
import { RequestActions } from "./request_row.ts"
import { peopleErrorText, requestSentence } from "./request_text.ts"

/** The interval of polling the requests, in ms. */
const POLL_EVERY = 10_000
/** The address of the requests, to which a notification leads. */
const REQUESTS = "#requests"

export class Partners {
  declare changed: () => Promise<void>
  declare sent: () => void
  #me: User | null = null
  /** `null`: not read yet. */
  #requests: people.ReviewRequest[] | null = null
  /** `null`: not read yet. */
  #partners: people.Partner[] | null = null
  /** The token of the personal link that the user opened. */
  link = new OpenedLink("ask", tokenIn)
  /** The reads so far, the last one of everything, and the one that the lists show. */
  #reads = 0
  #fullRead = 0
  #shown = 0
  /** The user came for the requests, by a notification. */
  #isSought = false
  #actions = new RequestActions(() => this.#me?.id ?? "", () => this.#changed())
  #address = new AddressForm(() => this.#form.show(false))
  #form = new RequestForm(this.#actions, {
    opened: () => this.#address.show(false),
    sent: async () => {
      await this.refresh()
      this.sent()
    },
  })

  /** @param changed the lists of documents are read again @param sent a request was sent */
  constructor(changed: () => Promise<void>, sent: () => void) {
    this.changed = changed
    this.sent = sent
  }

  start(me: User) {
    this.#me = me
    this.#address.start()
    this.#form.start()
    const declineAll = byId("requests-decline-all", HTMLButtonElement)
    declineAll.addEventListener("click", () => once(declineAll, () => this.#declineAll()))
    i18n.addEventListener("change", () => this.#draw())
    document.addEventListener("visibilitychange", () => document.hidden || this.refresh())
    window.addEventListener("hashchange", () => this.#seek(location.hash))
    // A notification was pressed while this page is open.
    navigator.serviceWorker?.addEventListener("message", ({ data }) => this.#seek(data?.opened))
    window.setInterval(() => document.hidden || this.#poll(), POLL_EVERY)
    if (!this.#seek(location.hash)) this.refresh()
    this.openLink()
  }

  /** Shows the requests if the address names them. */
  #seek(hash: unknown) {
    if (hash !== REQUESTS) return false
    if (location.hash === REQUESTS) history.replaceState(null, "", location.pathname)
    this.#isSought = true
    void this.refresh()
    return true
  }

  /** The list that was sought, or where its rows went. */
  #focusSought() {
    this.#isSought = false
    const title = byId("requests").hidden ? byId("partners-title") : byId("requests-title")
    title.focus()
    title.scrollIntoView({ block: "nearest" })
  }

  /** Opens the form for the user whose personal link was opened. */
  openLink() {
    if (this.#me !== null && this.link.isPresent) this.#form.take(this.link.take())
  }

  /** Shows why the lists are old. */
  async #try(work: () => Promise<void>) {
    try {
      await work()
      say(byId("partners-error"))
    } catch (error) {
      say(byId("partners-error"), () => t("partners.failed", { why: peopleErrorText(error) }))
    }
  }

  /** A request was decided, maybe for a document. */
  async #changed() {
    await Promise.all([this.refresh(), this.changed()])
  }

  /** Reads everything now. */
  refresh() {
    const read = ++this.#reads
    this.#fullRead = read
    void this.#address.read()
    return this.#try(async () => {
      const [requests, partners] = await Promise.all([people.pendingRequests(), people.partners()])
      this.#show(read, requests, partners)
    })
  }

  /** The requests; the partners, too, if a request was answered, or until a full read is done. */
  #poll() {
    const read = ++this.#reads
    void this.#address.read()
    return this.#try(async () => {
      const requests = await people.pendingRequests()
      const pendingIds = requests.map(({ id }) => id)
      const isAnswered = (this.#requests ?? []).some(({ id }) => !pendingIds.includes(id))
      const current = isAnswered || this.#shown < this.#fullRead ? null : this.#partners
      this.#show(read, requests, current ?? (await people.partners()))
    })
  }

  #show(read: number, requests: people.ReviewRequest[], partners: people.Partner[]) {
    // An answer that a later one overtook is old.
    if (read < this.#shown) return
    this.#shown = read
    const before = this.#requests
    const isSame = JSON.stringify([before, this.#partners]) === JSON.stringify([requests, partners])
    this.#requests = requests
    this.#partners = partners
    this.#form.update(requests)
    // A list that stays does not take its buttons from under the hand.
    if (!isSame) this.#draw()
    if (this.#isSought) this.#focusSought()
    if (before !== null) this.#announceChanges(before, requests)
  }

  /** Says what came and what was answered. */
  #announceChanges(before: people.ReviewRequest[], now: people.ReviewRequest[]) {
    const isNew = ({ id }: people.ReviewRequest) => before.every((other) => other.id !== id)
    for (const request of now.filter(isNew)) {
      if (this.#isReceived(request)) announce(t("request.came", { request: requestSentence(request, this.#me?.id ?? "") }))
    }
    const answered = before.filter(({ id }) => now.every((other) => other.id !== id))
    for (const { id } of answered) this.#announceAnswer(id)
  }

  /** Says what the other user did. @param id of a request that is no longer open */
  async #announceAnswer(id: string) {
    const request = await people.request(id).catch(() => null)
    if (request === null || request.state === "pending") return
    const isWithdrawn = request.state === "withdrawn"
    if (this.#isReceived(request) !== isWithdrawn) return
    if (isWithdrawn) return void showToast(t("request.answer.withdrawn", { name: request.from.name }))
    showToast(t(`request.answer.${request.state}`, { name: request.to.name }))
    if (request.state === "accepted") await this.changed()
  }

  #isReceived({ to }: people.ReviewRequest) {
    return to.id === this.#me?.id
  }

  #draw() {
    const requests = this.#requests ?? []
    const received = requests.filter((request) => this.#isReceived(request))
    const sent = requests.filter((request) => !this.#isReceived(request))
    byId("requests-title").textContent = t("request.received.count", { count: number(received.length) })
    byId("requests-sent-title").textContent = t("request.sent", { count: number(sent.length) })
    byId("partners-none").hidden = this.#partners?.length !== 0
    this.#address.draw()
    this.#form.draw()
    const title = byId("partners-title")
    fillRows(byId("partners-list"), (this.#partners ?? []).map((partner) => this.#partner(partner)), title)
    fillRows(byId("requests-sent"), sent.map((request) => this.#actions.row(request)), title)
    fillRows(byId("requests-received"), received.map((request) => this.#actions.row(request)), title)
    byId("requests-waiting").hidden = sent.length === 0
    byId("requests").hidden = received.length === 0
    byId("requests-decline-all").hidden = received.length < 2
  }

  async #declineAll() {
    if (!(await confirm(t("request.decline-all.sure"), t("request.decline-all")))) return
    try {
      await people.declineAllRequests()
      // Their answers need no words, and no read of each.
      this.#requests = (this.#requests ?? []).filter((request) => !this.#isReceived(request))
      this.#draw()
      byId("partners-title").focus()
      showToast(t("request.declined-all"))
    } catch (error) {
      showToast(peopleErrorText(error))
    }
    await this.refresh()
  }

  #partner({ user, since }: people.Partner) {
    const words = t("partners.remove")
    const label = `${words}: ${user.name}`
    const remove = button(words, { class: "button button-quiet", label }, () => void once(remove, () => this.#remove(user)))
    remove.dataset.act = "remove"
    const text = el(
      "div",
      { class: "row-text person" },
      initial(user.name),
      el("p", { class: "row-title", text: user.name }),
      el("p", { class: "quiet", text: t("partners.since", { when: when(since) }) }),
    )
    return el("li", { class: "row", "data-key": user.id }, text, el("div", { class: "actions" }, remove))
  }

  async #remove({ id, name }: User) {
    const isSure = await confirm(t("partners.remove.sure", { name }), t("partners.remove.yes"))
    // A poll below the dialog may have replaced the button.
    restoreFocus(byId("partners-list"), { key: id, act: "remove" }, byId("partners-title"))
    if (!isSure) return
    const done = () => showToast(t("partners.removed", { name }))
    await people.removePartner(id).then(done, (error) => showToast(peopleErrorText(error)))
    await this.refresh()
  }
}
