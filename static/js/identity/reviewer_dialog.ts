/**
 * The writer's dialog about the reviewer: who it is, the invite, and the users whom the link refused.
 *
 * A refused user is announced at once (`invite.refused`), and stands in the list.
 */

import { showToast } from "../lib/announce.ts"
import * as api from "../lib/api.ts"
import { confirm } from "../lib/confirm.ts"
import { el } from "../lib/dom.ts"
import { errorText } from "../lib/error_text.ts"
import { t, when } from "../lib/i18n.ts"
import { partners, type Partner } from "../lib/partners_api.ts"
import type { Connection, ServerEvent } from "../seat/connection.ts"
import type { Store } from "../store.ts"
import { IdentityDialog } from "./dialog.ts"
import { copiedAt, copyInvite } from "./invite.ts"
import { partnerChoice } from "./partner_choice.ts"

export class ReviewerDialog {
  declare store: Store
  declare connection: Connection
  #dialog = new IdentityDialog(() => this.#draw())
  /** `null`: not read yet. */
  #partners: Partner[] | null = null

  constructor(store: Store, connection: Connection) {
    this.store = store
    this.connection = connection
  }

  start(signal: AbortSignal) {
    this.connection.addEventListener("event", (event) => this.#apply((event as CustomEvent).detail), { signal })
  }

  open() {
    this.#dialog.open("identity.reviewer")
    this.#draw()
    this.#read()
  }

  #apply(event: ServerEvent) {
    if (event.event === "peer.joined" && this.#dialog.isOpen) return void this.#read()
    if (event.event !== "invite.refused") return undefined
    const sentence = () => t("identity.refused", { name: String(event.user?.name ?? "") })
    if (!this.#dialog.isOpen) return void showToast(sentence(), { text: t("identity.refused.show"), act: () => this.open() })
    this.#dialog.say(sentence)
    return void this.#read()
  }

  /** Reads the link as its writer sees it, with the invite in force. */
  async #read() {
    const { link } = this.store.state
    if (!link) return
    try {
      // The invite stands there also while the partners cannot be read.
      const found = partners().catch(() => this.#partners)
      const [now, { invite }] = await Promise.all([api.link(link.id), api.shareLink(link.document_id)])
      this.#partners = await found
      this.store.applyLink({ ...now, invite: invite ?? null })
    } catch (error) {
      this.#dialog.fail(() => errorText(error))
    }
    this.#draw()
  }

  #draw() {
    const { link } = this.store.state
    if (!link || !this.#dialog.isOpen) return
    const parts = [this.#reviewer(link), ...this.#choice(link), this.#invite(link), ...this.#attempts(link)]
    this.#dialog.fill(this.#dialog.content, parts)
  }

  #reviewer({ reviewer, reviewer_since: since }: api.Link) {
    const about = reviewer
      ? since ? t("identity.reviewer.since", { name: reviewer.name, when: when(since) }) : reviewer.name
      : t("identity.reviewer.none")
    const section = el("section", {}, el("p", { class: reviewer ? "identity-who" : "", text: about }))
    if (!reviewer) return section
    const remove = this.#dialog.action("identity.remove", "remove", "button button-danger", () => this.#remove(reviewer))
    section.append(el("div", { class: "actions" }, remove))
    return section
  }

  /** The partners, while the document has no reviewer. */
  #choice({ reviewer }: api.Link) {
    if (reviewer || this.#partners === null) return []
    const before = this.#dialog.content.querySelector("select")?.value ?? ""
    const go = (user: () => api.User) =>
      this.#dialog.action("reviewer.partner.go", "partner-go", "button", () => this.#name(user()))
    return [partnerChoice(this.#partners, before, go)]
  }

  #invite(link: api.Link) {
    const at = copiedAt(link)
    const state = at ? t("identity.invite.copied", { when: when(at) }) : t("identity.invite.made")
    const kind = link.reviewer ? "button" : "button button-strong"
    const copy = this.#dialog.action("desk.invite", "copy", kind, () => this.#copy())
    const renew = this.#dialog.action("identity.invite.renew", "renew", "button", () => this.#renew())
    return el(
      "section",
      {},
      el("h3", { text: t("identity.invite") }),
      el("p", { class: "quiet", text: state }),
      el("div", { class: "actions" }, copy, renew),
      el("p", { class: "quiet", text: t("identity.invite.renew.hint") }),
    )
  }

  #attempts({ attempts = [], reviewer }: api.Link) {
    if (attempts.length === 0) return []
    const rows = attempts.map(({ user, at }) => {
      const words = reviewer ? "identity.let-in.instead" : "identity.let-in"
      const letIn = this.#dialog.action(words, `let-in ${user.id}`, "button", () => this.#letIn(user), user.name)
      return el("li", {}, el("span", { text: t("identity.attempt", { name: user.name, when: when(at) }) }), letIn)
    })
    return [el("section", {}, el("h3", { text: t("identity.attempts") }), el("ul", { class: "identity-attempts" }, ...rows))]
  }

  async #copy() {
    if (!(await copyInvite(this.store))) return
    this.#draw()
    this.#dialog.say(() => t("desk.invite.copied"))
  }

  async #renew() {
    const { link } = this.store.state
    if (!link || !(await confirm(t("identity.invite.renew.sure"), t("identity.invite.renew"), { danger: false }))) return
    await api.renewInvite(link.id)
    await this.#read()
    this.store.change({ invitedAt: null })
    this.#dialog.say(() => t("identity.invite.renewed"))
  }

  async #remove({ name }: api.User) {
    const { link } = this.store.state
    if (!link || !(await confirm(t("identity.remove.sure", { name }), t("identity.remove.yes")))) return
    await api.removeReviewer(link.id)
    await this.#read()
    this.store.change({ invitedAt: null })
    this.#dialog.say(() => t("identity.removed", { name }))
  }

  /** A partner needs no invite. */
  async #name({ id, name }: api.User) {
    const { link } = this.store.state
    if (!link) return
    try {
      await api.letIn(link.id, id)
    } catch (error) {
      // Another one was first, or the partnership has ended: the dialog shows who it is.
      await this.#read()
      throw error
    }
    await this.#read()
    this.#dialog.say(() => t("identity.let-in.done", { name }))
  }

  async #letIn({ id, name }: api.User) {
    const { link } = this.store.state
    const former = link?.reviewer?.name
    const question = former === undefined ? t("identity.let-in.sure", { name }) : t("identity.let-in.sure.instead", { name, former })
    const yes = t(former === undefined ? "identity.let-in" : "identity.let-in.instead")
    if (!link || !(await confirm(question, yes, { danger: former !== undefined }))) return
    await api.letIn(link.id, id)
    await this.#read()
    this.#dialog.say(() => t("identity.let-in.done", { name }))
  }
}
