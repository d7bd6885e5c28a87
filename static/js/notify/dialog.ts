/** The dialog of notifications: this browser, the user's other browsers, and reminders. */

import { IdentityDialog } from "../identity/dialog.ts"
import { Problem } from "../lib/api.ts"
import { el } from "../lib/dom.ts"
import { errorText } from "../lib/error_text.ts"
import { t, when } from "../lib/i18n.ts"
import * as notify from "../lib/notify_api.ts"
import { browserName } from "./notify_text.ts"
import type { Push, PushState } from "./push.ts"
import { RemindersForm } from "./reminders_form.ts"

/** The sentence about the outcome of a press. */
export const outcomeSentence = (outcome: "on" | "blocked" | "dismissed" | "off") => t(`push.outcome.${outcome}`)

/** An error of subscribing: of the server, or of the browser, which cannot reach its push service. */
export const pushErrorText = (error: unknown) => (error instanceof Problem ? errorText(error) : t("push.failed"))

export class NotificationsDialog {
  declare push: Push
  #dialog = new IdentityDialog(() => this.#draw(), pushErrorText)
  /** `null`: not read yet. */
  #state: PushState | null = null
  /** The settings are there, and the form shows them. */
  #hasReminders = false
  #browsers = el("div", { class: "notify-browsers" })
  #form = new RemindersForm((saved) => this.#dialog.say(() => savedSentence(saved)))
  #reminders = el(
    "section",
    {},
    el("h3", { "data-t": "reminders.title", text: t("reminders.title") }),
    el("p", { class: "quiet", "data-t": "reminders.hint", text: t("reminders.hint") }),
    this.#form.element,
  )

  constructor(push: Push) {
    this.push = push
    // A change ends the sentence about the one before.
    for (const kind of ["input", "submit"]) this.#form.element.addEventListener(kind, () => this.#dialog.say())
  }

  async open() {
    this.#state = null
    this.#hasReminders = false
    this.#dialog.open("menu.notifications", this.#browsers, this.#reminders)
    this.#draw()
    const readReminders = async () => {
      const reminders = await notify.reminders()
      this.#hasReminders = reminders !== null
      if (reminders !== null) this.#form.show(reminders)
    }
    await Promise.all([this.#read(), this.#read(readReminders)])
  }

  /** Reads a part, and draws. @param part else the state of this browser */
  async #read(part: () => Promise<void> = async () => void (this.#state = await this.push.read())) {
    await part().catch((error) => this.#dialog.fail(() => errorText(error)))
    this.#draw()
  }

  #draw() {
    if (!this.#dialog.isOpen) return
    this.#reminders.hidden = !this.#hasReminders
    this.#dialog.fill(this.#browsers, [this.#own(), ...this.#others()], "[data-key]")
  }

  /** This browser: its state, and what helps. */
  #own() {
    const state = this.#state
    const text = el("p", { id: "push-state", text: t(`push.state.${state ?? "loading"}`) })
    const section = el("section", {}, el("h3", { text: t("push.browser") }), text)
    const actions = el("div", { class: "actions" })
    if (state === "on") actions.append(this.#dialog.action("push.stop", "own", "button", () => this.#stop()))
    if (state === "ready") actions.append(this.#dialog.action("push.start", "own", "button button-strong", () => this.#start()))
    if (actions.hasChildNodes()) section.append(actions)
    return section
  }

  /** The user's other browsers. */
  #others() {
    const others = this.push.browsers.filter(({ id }) => this.#state !== "on" || id !== this.push.id)
    if (this.#state === null || others.length === 0) return []
    const rows = others.map((browser) => {
      const name = t("push.browser.since", { name: browserName(browser.service), when: when(browser.created_at) })
      const act = () => this.#remove(browser, name)
      const remove = this.#dialog.action("push.remove", browser.id, "button button-quiet", act, name)
      return el("li", {}, el("span", { text: name }), remove)
    })
    return [el("section", {}, el("h3", { text: t("push.others") }), el("ul", { class: "identity-attempts" }, ...rows))]
  }

  async #start() {
    const outcome = await this.push.subscribe()
    await this.#read()
    if (outcome === "on") this.#dialog.say(() => outcomeSentence(outcome))
    else this.#dialog.fail(() => outcomeSentence(outcome))
  }

  async #stop() {
    await this.push.unsubscribe()
    await this.#read()
    this.#dialog.say(() => t("push.stopped"))
  }

  async #remove({ id }: notify.Browser, name: string) {
    await notify.removeBrowser(id)
    await this.#read()
    this.#dialog.say(() => t("push.removed", { name }))
  }
}

/** Saved reminders, and when none comes. */
export function savedSentence({ review_unanswered: review, seat_free: seat, request_unanswered: request, quiet, time_zone: zone }: notify.Reminders) {
  if (!review && !seat && !request) return t("reminders.saved.none")
  if (quiet === null) return t("reminders.saved")
  return t("reminders.saved.quiet", { from: quiet.from, to: quiet.to, zone: (zone ?? "UTC").replaceAll("_", " ") })
}
