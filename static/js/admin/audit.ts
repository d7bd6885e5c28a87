/** The audit on the operations page, by user and by act. Owns one section. */

import { byId, el, isDrawn, write } from "../lib/dom.ts"
import { number, t, when } from "../lib/i18n.ts"
import * as operations from "../lib/operations_api.ts"
import type { Act } from "../lib/operations_api.ts"
import { fillRows } from "../start/person_rows.ts"
import { Section } from "./section.ts"

const HEADS = ["admin.audit.at", "admin.audit.by", "admin.audit.user", "admin.audit.action", "admin.audit.target", "admin.audit.peer"] as const

export class AuditSection extends Section<{ audit: Act[], next_cursor: string | null }> {
  #user = byId("audit-user", HTMLInputElement)
  #action = byId("audit-action", HTMLInputElement)
  #more = byId("audit-more", HTMLButtonElement)
  #pages = 1

  constructor() {
    super("admin.audit.failed", (bearer, signal) => {
      const query = { user: this.#user.value.trim() || undefined, action: this.#action.value.trim() || undefined }
      return operations.audit(bearer, query, this.#pages, signal)
    })
  }

  start() {
    for (const field of [this.#user, this.#action]) {
      field.addEventListener("change", () => this.#search())
      // The browser's own button empties the field.
      field.addEventListener("search", () => this.#search())
    }
    this.#more.addEventListener("click", () => {
      this.#pages += 1
      void this.readNow()
    })
  }

  #search() {
    this.#pages = 1
    if (this.token !== "") void this.readNow()
  }

  draw() {
    const acts = this.found?.audit ?? []
    byId("audit").hidden = this.found === null && this.why() === ""
    write(byId("audit-error"), this.why())
    const isSearch = this.#user.value.trim() !== "" || this.#action.value.trim() !== ""
    write(byId("audit-none"), t(isSearch ? "admin.audit.none.match" : "admin.audit.none"))
    byId("audit-none").hidden = this.found === null || acts.length !== 0
    byId("audit-frame").hidden = acts.length === 0
    this.#more.hidden = !this.found?.next_cursor
    this.#more.textContent = t("admin.audit.more", { count: number(acts.length) })
    if (isDrawn(this, acts)) return
    byId("audit-columns").replaceChildren(...HEADS.map((head) => el("th", { scope: "col", text: t(head) })))
    fillRows(byId("audit-rows"), acts.map(row), byId("audit-title"))
  }
}

function row({ id, at, by, user, action, target, status, request_id: request, peer }: Act) {
  const who = by.kind === "admin" ? t("admin.audit.admin") : by.kind === "server" ? t("admin.audit.server", { id: by.id ?? "" }) : (by.id ?? "")
  const failed = status === null ? "" : ` ${t("admin.audit.status", { status: number(status) })}`
  return el(
    "tr",
    { "data-key": String(id) },
    el("td", { text: when(at), title: request }),
    el("th", { scope: "row", class: "id", text: who }),
    el("td", { class: "id", text: user ?? "–" }),
    el("td", { text: action + failed }),
    el("td", { class: "id", title: target, text: target || "–" }),
    el("td", { text: peer }),
  )
}
