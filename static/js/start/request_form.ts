/**
 * The form that asks a user for a review, or offers one. Owns one form and the button that opens it.
 *
 * If the other user has asked first, their request stands in the form at once, to be accepted there.
 */

import { showToast } from "../lib/announce.ts"
import * as api from "../lib/api.ts"
import { byId, el, mayMoveFocus, onSubmit, say } from "../lib/dom.ts"
import { t } from "../lib/i18n.ts"
import * as people from "../lib/partners_api.ts"
import { personIn } from "./person_address.ts"
import { fillRows } from "./person_rows.ts"
import type { RequestActions } from "./request_row.ts"
import { peopleErrorText } from "./request_text.ts"

/** Problems of the field of the person. */
const OF_PERSON = ["unknown-user", "own-self", "already-partners"]

export class RequestForm {
  declare actions: RequestActions
  declare events: { opened: () => void, sent: (request: people.ReviewRequest) => Promise<void> }
  /** The user whom the field names, once the server has said so. */
  #found: { to: string, user: api.User } | null = null
  #received: people.ReviewRequest | null = null
  /** The end of a press that goes on. */
  #released: Promise<void> = Promise.resolve()
  #form = byId("ask", HTMLFormElement)
  #opener = byId("ask-open", HTMLButtonElement)
  #to = byId("ask-to", HTMLInputElement)
  #document = byId("ask-document", HTMLSelectElement)
  #message = byId("ask-message", HTMLTextAreaElement)

  /** @param events `opened`: the other form closes */
  constructor(actions: RequestActions, events: { opened: () => void, sent: (request: people.ReviewRequest) => Promise<void> }) {
    this.actions = actions
    this.events = events
  }

  start() {
    this.#opener.addEventListener("click", () => this.show(this.#form.hidden))
    this.#to.addEventListener("input", () => this.#retype())
    this.#to.addEventListener("change", () => this.#find())
    this.#form.addEventListener("pointerdown", () => this.#press())
    this.#form.addEventListener("change", () => this.draw())
    onSubmit(this.#form, byId("ask-go", HTMLButtonElement), () => this.#send())
  }

  show(shown: boolean) {
    this.#form.hidden = !shown
    this.#opener.setAttribute("aria-expanded", String(shown))
    this.#forgive()
    if (!shown) return
    this.events.opened()
    this.draw()
    this.#readDocuments()
    this.#to.focus()
    this.#form.scrollIntoView({ block: "nearest" })
  }

  /** A personal link was opened. */
  take(token: string) {
    this.show(true)
    this.#to.value = `${location.origin}/#ask=${token}`
    this.#retype()
    this.#find()
  }

  draw() {
    const name = this.#found?.user.name
    byId("ask-found").textContent = name === undefined ? "" : t("ask.found", { name })
    byId("ask-writer").textContent = name === undefined ? t("ask.as.writer.somebody") : t("ask.as.writer", { name })
    byId("ask-reviewer").textContent = name === undefined ? t("ask.as.reviewer.somebody") : t("ask.as.reviewer", { name })
    byId("ask-document-part").hidden = this.#role() !== "writer"
    this.#drawReceived()
  }

  /**
   * Drops the request that came first once it is decided. The list may be older than that request, so the
   * request itself is read. The form is done if it was accepted; otherwise the user's own words stay.
   */
  async update(pending: readonly people.ReviewRequest[]) {
    const id = this.#received?.id
    if (id === undefined || pending.some((request) => request.id === id)) return
    const state = await stateOf(id)
    if (state === "pending" || this.#received?.id !== id) return
    const hadFocus = byId("ask-received").contains(document.activeElement)
    this.#received = null
    if (state === "accepted") this.#close()
    else this.draw()
    if (hadFocus) (state === "accepted" ? this.#opener : byId("ask-go")).focus()
  }

  #drawReceived() {
    const request = this.#received
    byId("ask-received").hidden = request === null
    byId("ask-received-text").textContent = request === null ? "" : t("ask.received", { name: request.from.name })
    fillRows(byId("ask-received-list"), request === null ? [] : [this.actions.row(request)], this.#to)
    byId("ask-actions").hidden = request !== null
  }

  #role() {
    return byId("ask-as-reviewer", HTMLInputElement).checked ? "reviewer" : "writer"
  }

  /** The address is another one now. */
  #retype() {
    this.#found = null
    this.#received = null
    this.#forgive()
    this.draw()
  }

  /** A press leaves the field; what the look-up shows must not move the button from under it. */
  #press() {
    this.#released = new Promise((done) => {
      const end = () => window.setTimeout(done)
      for (const kind of ["pointerup", "pointercancel"]) window.addEventListener(kind, end, { once: true })
    })
  }

  /** Shows whose address it is. */
  async #find() {
    const to = personIn(this.#to.value, location.origin)
    if (to === null || this.#found?.to === to) return
    try {
      const user = await people.findUser(to).finally(() => this.#released)
      if (personIn(this.#to.value, location.origin) !== to) return
      if (user.id === this.actions.me()) throw new api.Problem(422, "own-self")
      this.#found = { to, user }
      this.draw()
    } catch (error) {
      if (personIn(this.#to.value, location.origin) === to) this.#failed(error)
    }
  }

  /** The choice of a document stays while the list is read. */
  async #readDocuments() {
    const documents = await api.documents().catch(() => [])
    const chosen = this.#document.value
    const options = documents.map(({ id, title }) => el("option", { value: id, text: title || t("start.untitled") }))
    this.#document.replaceChildren(...[...this.#document.options].slice(0, 1), ...options)
    this.#document.value = documents.some(({ id }) => id === chosen) ? chosen : ""
  }

  async #send() {
    const to = personIn(this.#to.value, location.origin)
    if (to === null) {
      const isEmpty = this.#to.value.trim() === ""
      return this.#refusePerson(() => t(isEmpty ? "ask.to.missing" : "ask.to.wrong"))
    }
    const role = this.#role()
    const message = this.#message.value.trim()
    const document = role === "writer" ? this.#document.value : ""
    const content = () => JSON.stringify([this.#to.value, this.#role(), this.#message.value, this.#document.value])
    const sent = content()
    try {
      this.#forgive()
      const request = await people.sendRequest({ to, as: role, message: message || undefined, document_id: document || undefined })
      // Later words stay.
      const isDone = sent === content()
      const mayMove = isDone && mayMoveFocus(this.#form)
      if (isDone) this.#close()
      if (mayMove) this.#opener.focus()
      showToast(t("ask.sent", { name: request.to.name }))
      await this.events.sent(request)
    } catch (error) {
      await this.#refused(error)
    }
  }

  /** The other user was first: their request is shown, and one press accepts it. */
  async #refused(error: unknown) {
    if (!(error instanceof api.Problem) || error.kind !== "request-already-received") return this.#failed(error)
    try {
      this.#received = await people.request(error.id)
    } catch {
      return this.#failed(error)
    }
    const mayMove = mayMoveFocus(this.#form)
    this.draw()
    const accept = byId("ask-received").querySelector("[data-act=accept]")
    if (mayMove && accept instanceof HTMLElement) accept.focus()
  }

  #failed(error: unknown) {
    const why = () => peopleErrorText(error)
    if (error instanceof api.Problem && OF_PERSON.includes(error.kind)) return this.#refusePerson(why)
    return say(byId("ask-error"), why)
  }

  #refusePerson(why: () => string) {
    say(byId("ask-to-error"), why)
    this.#to.setAttribute("aria-invalid", "true")
    // A look-up fails while its user is in another field already; only a press on the button ends here.
    if (document.activeElement === byId("ask-go")) this.#to.focus()
  }

  #forgive() {
    this.#to.removeAttribute("aria-invalid")
    for (const id of ["ask-to-error", "ask-error"]) say(byId(id))
  }

  /** The form is done. */
  #close() {
    this.#form.reset()
    this.#retype()
    this.show(false)
  }
}

/** The state of a request; `pending` while the server cannot be reached. */
async function stateOf(id: string) {
  try {
    return (await people.request(id)).state
  } catch (error) {
    return error instanceof api.Problem && error.status === 404 ? "expired" : "pending"
  }
}
