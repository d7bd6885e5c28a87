/** The bin of the start page: deleted documents, to be restored or deleted for ever. Owns one section. */

import { showToast } from "../lib/announce.ts"
import * as api from "../lib/api.ts"
import { confirm } from "../lib/confirm.ts"
import { button, byId, el, once } from "../lib/dom.ts"
import { toastError } from "../lib/error_text.ts"
import { number, t, when } from "../lib/i18n.ts"
import { fillRows } from "./person_rows.ts"

export class Bin {
  declare changed: () => Promise<void>
  declare section
  declare list
  #documents: api.BinnedDocument[] = []
  /** Whether a deletion moves a document here. */
  hasRetention = true

  /** @param changed the lists are read again */
  constructor(changed: () => Promise<void>) {
    this.changed = changed
    this.section = byId("bin")
    this.list = byId("bin-list")
  }

  take({ documents, retention_seconds: seconds }: Awaited<ReturnType<typeof api.bin>>) {
    this.#documents = documents
    this.hasRetention = seconds !== 0
  }

  draw() {
    this.section.hidden = this.#documents.length === 0
    byId("bin-title").textContent = t("bin.title", { count: number(this.#documents.length) })
    fillRows(this.list, this.#documents.map((document) => this.#row(document)), byId("mine-title"))
  }

  /** Takes a document out of the bin. */
  async restore({ id, title }: { id: string, title: string }) {
    await api.restoreDocument(id).then(() => showToast(t("bin.restored", { title: title || t("start.untitled") })), toastError)
    await this.changed()
  }

  async #purge({ id, title: given }: api.BinnedDocument) {
    const title = given || t("start.untitled")
    if (!(await confirm(t("bin.purge.sure", { title }), t("bin.purge.go")))) return
    await api.purgeDocument(id).then(() => showToast(t("bin.purge.done", { title })), toastError)
    await this.changed()
  }

  #row(document: api.BinnedDocument) {
    const title = document.title || t("start.untitled")
    const facts = [t("bin.deleted", { when: when(document.deleted_at) }), t("bin.purge", { when: when(document.purge_at) })]
    const label = (words: string) => ({ class: "button button-quiet", label: `${words}: ${title}` })
    const restore = button(t("bin.restore"), label(t("bin.restore")), () => void once(restore, () => this.restore(document)))
    const purge = button(t("bin.purge.go"), label(t("bin.purge.go")), () => void this.#purge(document))
    restore.dataset.act = "restore"
    purge.dataset.act = "purge"
    const text = el("div", { class: "row-text" }, el("p", { class: "row-title", text: title }), el("p", { class: "quiet", text: facts.join(" · ") }))
    return el("li", { class: "row", "data-key": document.id }, text, el("div", { class: "actions" }, restore, purge))
  }
}
