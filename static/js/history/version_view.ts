/**
 * One version: its changes, the changes since, or all of its text; and the button that
 * restores it.
 *
 * The server computes the difference, in the same words for all users; the page narrows it as it
 * narrows a suggestion. Long unchanged passages are folded, and unfold in place.
 */

import { charactersIn } from "../desk/counts.ts"
import * as api from "../lib/api.ts"
import { confirm } from "../lib/confirm.ts"
import { button, el, once, translatedButton } from "../lib/dom.ts"
import { errorText } from "../lib/error_text.ts"
import { graphemesOf } from "../lib/graphemes.ts"
import { authorName, number, t, when } from "../lib/i18n.ts"
import { marked } from "../reviews/diff_view.ts"
import { pieces, type Piece } from "../reviews/word_diff.ts"
import { nameOf } from "./timeline.ts"

type Mode = "step" | "now" | "text"

/** Unchanged passages from so many characters on are folded, all but so many at either side. */
const FOLD_FROM = 480
const FOLD_KEEP = 160

/** How far around a position the page looks for the start of a character. */
const AROUND = 64

const modes = ["step", "now", "text"] as const

export class VersionView {
  declare document: string
  declare actions: { mayRestore: () => "yes" | "seat" | "reader", restored: (version: api.Version, from: api.Version) => void, notify: (sentence: string) => void }
  declare heading
  declare about
  declare choice
  declare sum
  declare text
  declare restore
  declare note
  declare element
  #shown: { version: api.Version, before: api.Version | null } | null = null
  #mode: Mode = "step"
  #request = new AbortController()

  constructor(
    document: string,
    actions: { mayRestore: () => "yes" | "seat" | "reader", restored: (version: api.Version, from: api.Version) => void, notify: (sentence: string) => void },
  ) {
    this.document = document
    this.actions = actions
    this.heading = el("h3", { id: "history-heading" })
    this.about = el("p", { class: "quiet history-about" })
    const options = modes.map((mode) => {
      const radio = el("input", { type: "radio", name: "history-mode", value: mode, checked: mode === this.#mode })
      radio.addEventListener("change", () => {
        this.#mode = mode
        this.#draw()
      })
      return el("label", {}, radio, el("span", { "data-t": `history.view.${mode}` }))
    })
    const legend = el("legend", { class: "hidden", "data-t": "history.view" })
    this.choice = el("fieldset", { class: "history-modes" }, legend, ...options)
    this.sum = el("p", { class: "quiet history-sum", role: "status" })
    this.text = el("div", {
      id: "history-text",
      class: "history-text diff",
      tabindex: "0",
      role: "region",
      "aria-labelledby": "history-heading",
    })
    this.restore = translatedButton("history.restore", { class: "button button-strong" }, () => this.#restore())
    this.note = el("p", { class: "quiet", id: "history-note" })
    this.element = el(
      "section",
      { class: "history-view" },
      el("header", {}, this.heading, this.about, this.choice, this.sum),
      this.text,
      el("footer", { class: "history-acts" }, this.restore, this.note),
    )
  }

  focus() {
    this.text.focus()
  }

  clear() {
    this.#request.abort()
    this.#shown = null
  }

  /** @param before the one before it, if there is one */
  show(version: api.Version, before: api.Version | null) {
    this.#shown = { version, before }
    this.heading.textContent = nameOf(version)
    const who = version.authors.map(authorName).join(", ")
    const about = [t("history.number", { number: version.number }), when(version.created_at), who]
    this.about.textContent = about.filter((part) => part !== "").join(" · ")
    this.drawActions()
    this.#draw()
  }

  /** The text of now is another one: what is compared with it is compared again, quietly. */
  textChanged() {
    if (this.#shown && this.#mode === "now") this.#draw({ quietly: true })
  }

  /** May one restore it, and if not, why not? */
  drawActions() {
    const may = this.actions.mayRestore()
    this.restore.hidden = may === "reader"
    this.restore.disabled = may !== "yes"
    this.note.textContent = may === "yes" ? "" : t(`history.restore.${may}`)
  }

  retranslate() {
    if (this.#shown) this.show(this.#shown.version, this.#shown.before)
  }

  async #draw({ quietly = false }: { quietly?: boolean } = {}) {
    if (!this.#shown) return
    this.#request.abort()
    this.#request = new AbortController()
    const { signal } = this.#request
    const { version, before } = this.#shown
    if (!quietly) {
      this.text.ariaBusy = "true"
      this.sum.textContent = t("history.comparing")
    }
    try {
      const drawn = await this.#parts(version, before, signal)
      if (signal.aborted) return
      this.text.replaceChildren(...drawn.parts)
      this.sum.textContent = drawn.sum
      if (!quietly) this.text.scrollTop = 0
    } catch (error) {
      if (signal.aborted) return
      const again = button(t("common.retry"), {}, () => this.#draw())
      this.text.replaceChildren(el("p", { text: t("history.failed", { why: errorText(error) }) }), again)
      this.sum.textContent = ""
    }
    this.text.ariaBusy = "false"
  }

  async #parts({ id }: api.Version, before: api.Version | null, signal: AbortSignal): Promise<{ parts: (Node | string)[], sum: string }> {
    if (this.#mode === "text" || (this.#mode === "step" && !before)) {
      const { text } = await api.version(this.document, id, signal)
      return { parts: [text], sum: this.#mode === "text" ? "" : t("history.first") }
    }
    const [one, other] = this.#mode === "step" && before ? [before.id, id] : [id, "current"]
    const { segments } = await api.difference(this.document, one, other, signal)
    const found = pieces(segments)
    // Where nothing differs the text itself is shown, and not a fold of all of it.
    if (found.every(({ kind }) => kind === "same")) {
      return { parts: found.map(({ text }) => text), sum: t(this.#mode === "now" ? "history.same.now" : "history.same") }
    }
    const parts = found.flatMap((piece, at) => this.#piece(piece, at === 0, at === found.length - 1))
    const count = (kind: string) =>
      number(found.filter((piece) => piece.kind === kind).reduce((sum, { text }) => sum + charactersIn(text), 0))
    return { parts, sum: t("history.compared", { added: count("added"), removed: count("removed") }) }
  }

  #piece({ kind, text }: Piece, isFirst: boolean, isLast: boolean): (Node | string)[] {
    if (kind !== "same") return [marked(kind, text)]
    if (text.length < FOLD_FROM) return [text]
    const head = isFirst ? 0 : edge(text, FOLD_KEEP)
    const tail = isLast ? text.length : edge(text, text.length - FOLD_KEEP)
    const folded = text.slice(head, tail)
    const unfold = button(t("history.folded", { count: number(charactersIn(folded)) }), { class: "button button-quiet fold" }, () => {
      unfold.replaceWith(folded)
      this.text.focus()
    })
    return [text.slice(0, head), unfold, text.slice(tail)]
  }

  /** Whether the text is the one of that version; no, if the server does not say. */
  async #isCurrent({ id }: api.Version) {
    const compared = await api.difference(this.document, id, "current").catch(() => null)
    return compared !== null && pieces(compared.segments).every(({ kind }) => kind === "same")
  }

  async #restore() {
    if (!this.#shown) return
    const { version } = this.#shown
    if (await this.#isCurrent(version)) return this.actions.notify(t("history.restore.same"))
    const question = t("history.restore.sure", { when: when(version.created_at) })
    if (!(await confirm(question, t("history.restore.yes"), { danger: false }))) return
    await once(this.restore, async () => {
      try {
        this.actions.restored(await api.restore(this.document, version.id), version)
      } catch (error) {
        this.actions.notify(restoreErrorText(error))
      }
    })
  }
}

function restoreErrorText(error: unknown) {
  const kind = error instanceof api.Problem ? error.kind : ""
  if (kind === "seat-not-held") return t("history.restore.seat")
  if (kind === "text-changing") return t("history.restore.changing")
  return t("review.failed", { why: errorText(error) })
}

/** The nearest position before `at` that is not inside a word. */
function edge(text: string, at: number) {
  const space = Math.max(text.lastIndexOf(" ", at), text.lastIndexOf("\n", at))
  if (at - 80 < space) return space + 1
  let start = Math.max(at - AROUND, 0)
  for (const grapheme of graphemesOf(text.slice(start, at + AROUND))) {
    if (at < start + grapheme.length) return start
    start += grapheme.length
  }
  return at
}
