/** A review request as a row, with what its reader may do: accept or decline it, or withdraw it. */

import { showToast } from "../lib/announce.ts"
import { button, el, once } from "../lib/dom.ts"
import { t, when } from "../lib/i18n.ts"
import * as people from "../lib/partners_api.ts"
import type { ReviewRequest } from "../lib/partners_api.ts"
import { peopleErrorText, requestSentence } from "./request_text.ts"

export class RequestActions {
  declare me: () => string
  declare changed: () => Promise<void>

  /** @param me the reader's id @param changed the lists are read again */
  constructor(me: () => string, changed: () => Promise<void>) {
    this.me = me
    this.changed = changed
  }

  row(request: ReviewRequest) {
    const isSent = request.from.id === this.me()
    const facts = [t("request.at", { when: when(request.created_at) }), t("request.until", { when: when(request.expires_at) })]
    const text = el(
      "div",
      { class: "row-text" },
      el("p", { class: "row-title", text: requestSentence(request, this.me()) }),
      request.message ? el("blockquote", { class: "request-message", text: request.message }) : null,
      el("p", { class: "quiet", text: facts.join(" · ") }),
    )
    const buttons = isSent
      ? [this.#button("withdraw", "button button-quiet", request)]
      : [this.#button("accept", "button", request), this.#button("decline", "button button-quiet", request)]
    return el("li", { class: "row", "data-key": request.id }, text, el("div", { class: "actions" }, ...buttons))
  }

  #button(act: "accept" | "decline" | "withdraw", kind: string, request: ReviewRequest) {
    const words = t(`request.${act}`)
    const label = `${words}: ${requestSentence(request, this.me())}`
    const press = button(words, { class: kind, label }, () => void once(press, () => this.#act(act, request)))
    press.dataset.act = act
    return press
  }

  async #act(act: "accept" | "decline" | "withdraw", request: ReviewRequest) {
    await this[act](request).catch((error) => showToast(peopleErrorText(error)))
    await this.changed()
  }

  async accept({ id, title: given }: ReviewRequest) {
    const { partner, share_link: outcome, share_link_id: link } = await people.acceptRequest(id)
    const { name } = partner
    if (outcome === null) return void showToast(t("request.accepted", { name }))
    const sentence = t(`request.accepted.${outcome}`, { name, title: given || t("start.untitled") })
    const open = () => location.assign(`/s/${encodeURIComponent(String(link))}`)
    showToast(sentence, outcome === "joined" ? { text: t("request.accepted.open"), act: open } : undefined)
  }

  async decline({ id, from }: ReviewRequest) {
    await people.declineRequest(id)
    showToast(t("request.declined", { name: from.name }))
  }

  async withdraw({ id, to }: ReviewRequest) {
    await people.withdrawRequest(id)
    showToast(t("request.withdrawn", { name: to.name }))
  }
}
