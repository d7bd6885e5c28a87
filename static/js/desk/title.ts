/** The title in the bar, which the writer may change, and how safe the text is, below it. */

import { announce, showToast } from "../lib/announce.ts"
import * as api from "../lib/api.ts"
import { byId, drawWith, el, icon } from "../lib/dom.ts"
import { errorText } from "../lib/error_text.ts"
import { clock, number, t, tCount } from "../lib/i18n.ts"
import type { Store } from "../store.ts"
import { ENDED_LINKS } from "./policy.ts"

export class Title {
  declare store: Store
  declare field
  declare saved
  /** The state that was announced last. The page announces a late save and its end, and no other save. */
  #announced = "saved"

  constructor(store: Store) {
    this.store = store
    this.field = byId("title", HTMLInputElement)
    this.saved = byId("saved")
  }

  start(signal: AbortSignal) {
    this.field.addEventListener("change", () => this.#rename(), { signal })
    this.field.addEventListener("keydown", (event) => this.#key(event), { signal })
    drawWith([this.store], () => this.#draw(), signal)
  }

  get #title() {
    return this.store.state.link?.title ?? ""
  }

  #key(event: KeyboardEvent) {
    if (event.isComposing) return
    if (event.key === "Enter") this.field.blur()
    if (event.key === "Escape") this.field.value = this.#title
  }

  async #rename() {
    const { link } = this.store.state
    const title = this.field.value.trim()
    if (!link || title === this.#title) return
    try {
      const document = await api.renameDocument(link.document_id, title)
      const now = this.store.state.link
      if (now) this.store.change({ link: { ...now, title: document.title } })
      showToast(t("desk.title.saved"))
    } catch (error) {
      showToast(errorText(error))
      this.field.value = this.#title
    }
  }

  #draw() {
    const { role, phase, grantUnseen, unread } = this.store.state
    const title = this.#title
    if (document.activeElement !== this.field) this.field.value = title
    this.field.readOnly = role !== "writer"
    this.field.placeholder = t("start.untitled")
    byId("heading").textContent = title || t("start.untitled")
    const tab = `${0 < unread ? `● (${number(unread)}) ` : ""}${title || t("start.untitled")} · Galley`
    document.title = grantUnseen && phase === "seated" ? t("state.waiting.title", { title: tab }) : tab
    const { text, kind } = this.#saving()
    const shown = phase === "seated" || kind === "late" ? kind : "off"
    const sign = shown === "late" ? [icon("alert")] : shown === "saved" ? [icon("check")] : []
    if (this.saved.textContent !== text || this.saved.dataset.kind !== shown) this.saved.replaceChildren(...sign, el("span", { text }))
    this.saved.dataset.kind = shown
    if ((kind === "late" || kind === "saved") && kind !== this.#announced) {
      this.#announced = kind
      announce(text)
    }
  }

  #late(characters: number, time: string) {
    return characters === 0 ? t("saved.not.deletions", { time }) : tCount("saved.not", characters, { time })
  }

  /** The title is "saved" only when `document.saved` covers every local edit. */
  #saving() {
    const { phase, saving, role, wasSeated, quiet, silentSince, servedAt, reason } = this.store.state
    if (servedAt) return { text: t("saved.read-only", { time: clock(servedAt) }), kind: "off" }
    const isAway = phase === "offline" && !quiet
    if (!wasSeated) return { text: phase === "opening" ? t("saved.opening") : "", kind: "off" }
    if (role === "reviewer" && 0 < saving.count && saving.since) {
      const isLate = saving.slow || saving.refusing !== "no" || isAway || phase === "lost" || phase === "taken"
      if (!isLate) return { text: t("saved.saving"), kind: "saving" }
      return { text: tCount("suggesting.late", saving.count, { time: clock(saving.since) }), kind: "late" }
    }
    if (0 < saving.count && saving.since) {
      const late = saving.slow || saving.refusing !== "no" || phase === "lost" || phase === "taken"
      if (late) return { text: this.#late(saving.characters, clock(saving.since)), kind: "late" }
      return { text: t(isAway ? "saved.offline" : "saved.saving"), kind: "saving" }
    }
    // A deleted document is never called saved: the banner says what became of it.
    if (phase === "lost" && ENDED_LINKS.includes(reason)) return { text: "", kind: "off" }
    if (isAway) return { text: t("saved.offline"), kind: "off" }
    if (phase === "seated" && silentSince !== null) return { text: t("saved.silent"), kind: "off" }
    if (role === "reviewer" && !saving.savedAt) return { text: t("saved.reading"), kind: "saved" }
    if (!saving.savedAt) return { text: t("saved.all"), kind: "saved" }
    if (role === "reviewer") return { text: t("suggesting.saved", { time: clock(saving.savedAt) }), kind: "saved" }
    return { text: t("saved.at", { time: clock(saving.savedAt, { seconds: true }) }), kind: "saved" }
  }
}
