// @ts-check
/** A review request as a row, with what its reader may do: accept or decline it, or withdraw it. */

import { showToast } from "../lib/announce.js"
import { button, el, once } from "../lib/dom.js"
import { t, when } from "../lib/i18n.js"
import * as people from "../lib/partners_api.js"
import { peopleErrorText, requestSentence } from "./request_text.js"

/** @typedef {import("../lib/partners_api.js").ReviewRequest} ReviewRequest */

export class RequestActions {
  /** @param {() => string} me the reader's id @param {() => Promise<void>} changed the lists are read again */
  constructor(me, changed) {
    this.me = me
    this.changed = changed
  }

  /** @param {ReviewRequest} request */
  row(request) {
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

  /** @param {"accept" | "decline" | "withdraw"} act @param {string} kind @param {ReviewRequest} request */
  #button(act, kind, request) {
    const words = t(`request.${act}`)
    const label = `${words}: ${requestSentence(request, this.me())}`
    const press = button(words, { class: kind, label }, () => void once(press, () => this.#act(act, request)))
    press.dataset.act = act
    return press
  }

  /** @param {"accept" | "decline" | "withdraw"} act @param {ReviewRequest} request */
  async #act(act, request) {
    await this[act](request).catch((error) => showToast(peopleErrorText(error)))
    await this.changed()
  }

  /** @param {ReviewRequest} request */
  async accept({ id, title: given }) {
    const { partner, share_link: outcome, share_link_id: link } = await people.acceptRequest(id)
    const { name } = partner
    if (outcome === null) return void showToast(t("request.accepted", { name }))
    const sentence = t(`request.accepted.${outcome}`, { name, title: given || t("start.untitled") })
    const open = () => location.assign(`/s/${encodeURIComponent(String(link))}`)
    showToast(sentence, outcome === "joined" ? { text: t("request.accepted.open"), act: open } : undefined)
  }

  /** @param {ReviewRequest} request */
  async decline({ id, from }) {
    await people.declineRequest(id)
    showToast(t("request.declined", { name: from.name }))
  }

  /** @param {ReviewRequest} request */
  async withdraw({ id, to }) {
    await people.withdrawRequest(id)
    showToast(t("request.withdrawn", { name: to.name }))
  }
}
