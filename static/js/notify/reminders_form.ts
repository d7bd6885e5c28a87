/** The settings of reminders: what they are about, quiet hours, and the time zone of those. Owns one form. */

import { Problem } from "../lib/api.ts"
import { el, onSubmit, say, translatedButton } from "../lib/dom.ts"
import { errorText } from "../lib/error_text.ts"
import { ownTimeZone, t, type Sentence } from "../lib/i18n.ts"
import * as notify from "../lib/notify_api.ts"
import type { Reminders } from "../lib/notify_api.ts"
import { timeZones } from "./notify_text.ts"

const SWITCHES = ["review_unanswered", "seat_free", "request_unanswered"] as const
/** The quiet hours that are proposed first. */
const PROPOSED = { from: "22:00", to: "08:00" }

/** A switch with its words. */
function switchOf(id: string, words: Sentence) {
  const input = el("input", { id, type: "checkbox" })
  return { input, label: el("label", { class: "notify-check" }, input, el("span", { "data-t": words, text: t(words) })) }
}

/** A field with its label. */
const fieldOf = <T extends HTMLElement>(field: T, words: Sentence) =>
  el("div", {}, el("label", { for: field.id, "data-t": words, text: t(words) }), field)

export class RemindersForm {
  declare saved: (saved: Reminders) => void
  declare element
  #switches = SWITCHES.map((name) => ({ name, ...switchOf(`reminders-${name}`, `reminders.${name}`) }))
  #quiet = switchOf("reminders-quiet", "reminders.quiet")
  #from = el("input", { id: "reminders-from", type: "time", required: true, "aria-describedby": "reminders-error" })
  #to = el("input", { id: "reminders-to", type: "time", required: true, "aria-describedby": "reminders-error" })
  #zone = el("select", { id: "reminders-zone", "aria-describedby": "reminders-zone-hint reminders-error" })
  #hours = el("div", { class: "notify-hours" }, fieldOf(this.#from, "reminders.from"), fieldOf(this.#to, "reminders.to"))
  #error = el("p", { id: "reminders-error", class: "form-error", role: "alert" })
  #save = translatedButton("reminders.save", { class: "button button-strong", type: "submit" })

  constructor(saved: (saved: Reminders) => void) {
    this.saved = saved
    this.#save.id = "reminders-save"
    this.element = el(
      "form",
      { class: "notify-reminders", novalidate: true },
      ...this.#switches.map(({ label }) => label),
      this.#quiet.label,
      this.#hours,
      this.#error,
      fieldOf(this.#zone, "reminders.zone"),
      el("p", { id: "reminders-zone-hint", class: "quiet", "data-t": "reminders.zone.hint", text: t("reminders.zone.hint") }),
      el("div", { class: "actions" }, this.#save),
    )
    this.#quiet.input.addEventListener("change", () => this.#showHours())
    this.element.addEventListener("input", () => this.#fail())
    onSubmit(this.element, this.#save, () => this.#submit())
  }

  show(reminders: Reminders) {
    for (const { name, input } of this.#switches) input.checked = reminders[name]
    const { from, to } = reminders.quiet ?? PROPOSED
    this.#quiet.input.checked = reminders.quiet !== null
    this.#from.value = from
    this.#to.value = to
    const zone = reminders.time_zone ?? ownTimeZone()
    this.#zone.replaceChildren(...timeZones(zone).map((name) => el("option", { value: name, text: name.replaceAll("_", " ") })))
    this.#zone.value = zone
    this.#showHours()
  }

  #showHours() {
    this.#hours.hidden = !this.#quiet.input.checked
  }

  async #submit() {
    const isQuiet = this.#quiet.input.checked
    const quiet = isQuiet ? { from: this.#from.value, to: this.#to.value } : null
    if (quiet?.from === "") return this.#refuse(this.#from, () => t("reminders.time.missing"))
    if (quiet?.to === "") return this.#refuse(this.#to, () => t("reminders.time.missing"))
    if (quiet !== null && quiet.from === quiet.to) return this.#refuse(this.#to, () => t("reminders.time.same"))
    this.#fail()
    const [review, seat, request] = this.#switches.map(({ input }) => input.checked)
    try {
      const saved = await notify.setReminders({
        review_unanswered: review === true,
        seat_free: seat === true,
        request_unanswered: request === true,
        quiet,
        time_zone: this.#zone.value,
      })
      this.show(saved)
      this.saved(saved)
    } catch (error) {
      this.#refused(error)
    }
  }

  #refused(error: unknown) {
    if (!(error instanceof Problem) || error.kind !== "invalid-reminders") return this.#fail(() => errorText(error))
    if (error.field === "time_zone") return this.#refuse(this.#zone, () => t("reminders.zone.unknown"))
    return this.#refuse(error.field === "quiet.from" ? this.#from : this.#to, () => t("reminders.time.missing"))
  }

  #refuse(field: HTMLElement, why: () => string) {
    this.#fail(why)
    field.setAttribute("aria-invalid", "true")
    field.focus()
  }

  #fail(why?: () => string) {
    for (const field of [this.#from, this.#to, this.#zone]) field.removeAttribute("aria-invalid")
    say(this.#error, why)
  }
}
