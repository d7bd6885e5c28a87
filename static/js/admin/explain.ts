/** Why a seat is held: a sentence, what it is made of, and who waits. One row below that seat's. */

import { announce } from "../lib/announce.ts"
import { Problem, seatDetails, type SeatDetails } from "../lib/api.ts"
import { el, write } from "../lib/dom.ts"
import { errorText } from "../lib/error_text.ts"
import { ago, clock, t, type Sentence } from "../lib/i18n.ts"

const past = (details: SeatDetails, moment: string | null) => {
  if (moment !== null) return ago(Date.parse(details.as_of) - Date.parse(moment))
  return t(details.told_by === "redis" ? "admin.why.unknown" : "admin.why.never")
}

const time = (moment: string | null) => (moment === null ? "" : clock(new Date(moment), { seconds: true }))

/** The facts below the sentence; an empty one is left out. */
const facts: readonly { name: Sentence, text: (details: SeatDetails) => string }[] = [
  { name: "admin.why.last-heard", text: (details) => past(details, details.last_heard) },
  { name: "admin.why.last-active", text: (details) => past(details, details.last_active) },
  { name: "admin.why.last-edit", text: (details) => past(details, details.last_edit) },
  { name: "admin.why.last-renewal", text: (details) => past(details, details.last_renewal) },
  { name: "admin.why.trusted", text: (details) => time(details.trusted_until) },
  { name: "admin.why.until", text: (details) => time(details.kept_until) },
  { name: "admin.why.grace", text: (details) => time(details.grace_until) },
  { name: "admin.why.idle", text: (details) => time(details.idle_release_at) },
  { name: "admin.why.source", text: (details) => t(`admin.why.source.${details.told_by}`) },
]

/** The sentence, in the reader's language. */
export function sentence(details: SeatDetails) {
  const variant = details.told_by === "redis" ? "redis" : details.state
  return t(`admin.why.${variant}`, {
    name: details.user?.name ?? "–",
    heard: past(details, details.last_heard),
    renewed: past(details, details.last_renewal),
    until: time(details.kept_until) || t("admin.why.unknown"),
    grace: time(details.grace_until) || t("admin.why.unknown"),
  })
}

export class Explanation {
  declare session: string
  declare row
  #sentence = el("p", {})
  #facts = el("dl", { class: "facts" })
  #details: SeatDetails | null = null
  #announced = false

  /** @param id of the row */
  constructor(id: string, session: string, columns: number) {
    this.session = session
    const inside = el("div", { class: "inside" }, this.#sentence, this.#facts)
    this.row = el("tr", { id, class: "panel" }, el("td", { colspan: String(columns) }, inside))
    this.#sentence.textContent = t("admin.why.loading")
  }

  /** Asks again. */
  async read(token: string) {
    try {
      this.#details = await seatDetails(token, this.session)
      this.draw()
    } catch (error) {
      const isGone = error instanceof Problem && error.status === 404
      this.#details = null
      this.#facts.replaceChildren()
      this.#setSentence(isGone ? t("admin.gone") : errorText(error))
    }
  }

  draw() {
    const details = this.#details
    if (details === null) return
    this.#setSentence(sentence(details))
    const rows = facts.map(({ name, text }) => ({ name: t(name), text: text(details) })).filter(({ text }) => text !== "")
    const line = details.line.map(({ position, user, since }) => {
      return t("admin.why.queue.one", { position, name: user.name, time: clock(new Date(since)) })
    })
    rows.push({ name: t("admin.why.queue"), text: line.length === 0 ? t("admin.why.queue.none") : line.join("\n") })
    // An unchanged list is not redrawn: a screen reader may be reading it.
    const names = rows.map(({ name }) => name).join()
    if (names !== [...this.#facts.querySelectorAll("dt")].map((name) => name.textContent).join()) {
      this.#facts.replaceChildren(...rows.map(({ name }) => el("div", {}, el("dt", { text: name }), el("dd", {}))))
    }
    for (const [at, value] of [...this.#facts.querySelectorAll("dd")].entries()) write(value, rows[at]?.text ?? "")
  }

  /** Said aloud once; what changes later is there to be read. */
  #setSentence(text: string) {
    write(this.#sentence, text)
    if (!this.#announced) announce(text)
    this.#announced = true
  }
}
