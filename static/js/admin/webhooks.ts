/** Webhooks that the host product never took, with another delivery of one or of all. Owns one section. */

import { showToast } from "../lib/announce.ts"
import { Problem } from "../lib/api.ts"
import { confirm } from "../lib/confirm.ts"
import { button, byId, el, isDrawn, once, write } from "../lib/dom.ts"
import { errorText, toastError } from "../lib/error_text.ts"
import { number, t, tCount, when } from "../lib/i18n.ts"
import * as operations from "../lib/operations_api.ts"
import type { Webhook } from "../lib/operations_api.ts"
import { fillRows } from "../start/person_rows.ts"
import { Section } from "./section.ts"

const HEADS = [
  "admin.webhooks.type",
  "admin.webhooks.url",
  "admin.webhooks.at",
  "admin.webhooks.attempts",
  "admin.webhooks.error",
] as const

export class WebhooksSection extends Section<{ webhooks: Webhook[], next_cursor: string | null }> {
  #all = byId("webhooks-all", HTMLButtonElement)

  constructor() {
    super("admin.webhooks.failed", operations.deadWebhooks)
  }

  start() {
    this.#all.addEventListener("click", () => once(this.#all, () => this.#replayAll()))
  }

  draw() {
    const webhooks = this.found?.webhooks ?? []
    byId("webhooks").hidden = this.found === null && this.why() === ""
    write(byId("webhooks-error"), this.why())
    const words = this.found?.next_cursor ? t("admin.webhooks.count.more", { count: number(webhooks.length) }) : tCount("admin.webhooks.count", webhooks.length)
    write(byId("webhooks-count"), webhooks.length === 0 ? t("admin.webhooks.none") : words)
    byId("webhooks-count").hidden = this.found === null
    this.#all.hidden = byId("webhooks-frame").hidden = webhooks.length === 0
    if (isDrawn(this, webhooks)) return
    const heads = HEADS.map((head) => el("th", { scope: "col", class: head === "admin.webhooks.attempts" ? "number" : "", text: t(head) }))
    byId("webhook-columns").replaceChildren(...heads, el("th", { scope: "col" }, el("span", { class: "hidden", text: t("admin.what") })))
    fillRows(byId("webhook-rows"), webhooks.map((webhook) => this.#row(webhook)), byId("webhooks-title"))
  }

  #row(webhook: Webhook) {
    const { id, type, url, created_at: at, attempts, last_error: error, document_id: document } = webhook
    const words = t("admin.webhooks.replay")
    const replay = button(words, { class: "button button-quiet", label: `${words}: ${type}, ${when(at)}` }, () => once(replay, () => this.#replay(id)))
    replay.dataset.act = "replay"
    return el(
      "tr",
      { "data-key": id },
      el("th", { scope: "row", text: type, title: document ?? undefined }),
      el("td", { class: "id", title: url, text: url }),
      el("td", { text: when(at) }),
      el("td", { class: "number", text: number(attempts) }),
      el("td", { class: "webhook-error", text: error ?? "–" }),
      el("td", { class: "does" }, replay),
    )
  }

  async #replay(id: string) {
    try {
      await operations.replayWebhook(this.token, id)
      showToast(t("admin.webhooks.replayed"))
    } catch (error) {
      const isGone = error instanceof Problem && error.status === 404
      showToast(isGone ? t("admin.webhooks.gone") : errorText(error))
    }
    if (this.token !== "") await this.readNow()
  }

  async #replayAll() {
    if (!(await confirm(t("admin.webhooks.all.sure"), t("admin.webhooks.all"), { danger: false }))) return
    const all = operations.replayWebhooks(this.token)
    await all.then(({ replayed }) => showToast(tCount("admin.webhooks.replayed.count", replayed)), toastError)
    if (this.token !== "") await this.readNow()
    // Its button is gone.
    if (document.activeElement === document.body || this.#all.hidden) byId("webhooks-title").focus()
  }
}
