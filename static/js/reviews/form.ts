/**
 * The form in which a review is written or rewritten: a comment, and perhaps other words for the
 * passage, with what they change.
 *
 * The form never discards typed text: a failed request leaves it unchanged.
 */

import { button, el, onSubmit } from "../lib/dom.ts"
import { t } from "../lib/i18n.ts"
import { diffView } from "./diff_view.ts"
import { formName } from "./subject.ts"

export type Written = { body: string, suggestion: string | null }

interface Options {
  quote: () => string // the passage as it stands now
  written?: Written // what there is already
  suggests?: boolean // whether to begin with a suggestion
  maySuggest?: boolean // whether there is a passage, and a reviewer, for a suggestion
  label?: string // name of the comment's field
  hint?: string // what the comment's field says while it is empty
  send: string // what the button says
  /** Answers why it did not work; `isUnchanged`: whether nothing was written since. */
  submit: (written: Written, isUnchanged: () => boolean) => Promise<string | null>
  cancel: () => void
}

let formCount = 0

export class ReviewForm {
  declare options: Options
  declare body
  declare suggestion
  declare suggests
  declare toggle
  declare reason
  declare submit
  declare element
  #error = el("p", { class: "form-error", role: "alert" })
  #suggesting = el("div", { class: "suggesting" })
  #preview = el("div")
  /** Whether the comment beside a suggestion was opened, where a narrow window shows one field first. */
  #hasReason = false

  constructor(options: Options) {
    const id = `form-${formCount++}`
    this.options = options
    this.body = el("textarea", { rows: "2", id: `${id}-body`, placeholder: options.hint ?? t("review.body.hint.reviewer") })
    this.suggestion = el("textarea", { rows: "2", id: `${id}-suggestion`, class: "prose" })
    this.body.value = options.written?.body ?? ""
    this.suggestion.value = options.written?.suggestion ?? options.quote()
    this.suggests = options.suggests ?? typeof options.written?.suggestion === "string"
    this.toggle = button("", { class: "button button-quiet", icon: "pen" }, () => this.#toggle())
    this.toggle.classList.add("suggesting-toggle")
    this.toggle.hidden = options.maySuggest === false
    this.#suggesting.append(
      el("label", { for: `${id}-suggestion`, text: t("review.suggestion") }),
      this.suggestion,
      this.#preview,
    )
    this.reason = button(t("review.form.reason"), { class: "button reason-add sheet-only", icon: "comment" }, () => this.#addReason())
    this.submit = button(options.send, { class: "button button-strong", type: "submit" })
    this.element = el(
      "form",
      { class: "review-form" },
      this.#suggesting,
      el("div", { class: "commenting" }, el("label", { for: `${id}-body`, text: options.label ?? t("review.body") }), this.body),
      this.#error,
      el(
        "div",
        { class: "actions" },
        this.submit,
        button(t("common.cancel"), {}, () => options.cancel()),
        this.reason,
        this.toggle,
      ),
    )
    onSubmit(this.element, this.submit, () => this.#submit())
    this.element.addEventListener("input", () => this.#draw())
    formKeys(this.element, () => !this.isTouched, () => options.cancel())
    this.#draw()
  }

  focus() {
    const field = this.suggests ? this.suggestion : this.body
    field.focus()
    if (field === this.suggestion) field.select()
  }

  /** Whether there is anything in it that would be missed. */
  get isTouched() {
    const { written, quote } = this.options
    return (
      this.body.value !== (written?.body ?? "") ||
      (this.suggests && this.suggestion.value !== (written?.suggestion ?? quote()))
    )
  }

  /** The words of the form. */
  get written(): Written {
    const differs = this.suggests && this.suggestion.value !== this.options.quote()
    return { body: this.body.value.trim(), suggestion: differs ? this.suggestion.value : null }
  }

  get content() {
    return { body: this.body.value, suggestion: this.suggestion.value, suggests: this.suggests }
  }

  /** Puts in what was written before. */
  fill({ body, suggestion, suggests }: { body: string, suggestion: string, suggests: boolean }) {
    this.body.value = body
    this.suggestion.value = suggestion
    this.suggests = suggests
    this.#draw()
  }

  /** The passage has changed under the form. */
  quoteChanged() {
    this.#draw()
  }

  #toggle() {
    this.suggests = !this.suggests
    this.#draw()
    this.focus()
  }

  #addReason() {
    this.#hasReason = true
    this.#draw()
    this.body.focus()
  }

  #draw() {
    this.#hasReason ||= this.body.value !== ""
    const isOne = this.suggests && !this.#hasReason
    this.element.dataset.fields = isOne ? "one" : "all"
    this.reason.hidden = !isOne
    this.#suggesting.hidden = !this.suggests
    const label = t(this.suggests ? "review.suggestion.drop" : "review.suggestion.add")
    this.toggle.lastElementChild?.replaceChildren(label)
    const quote = this.options.quote()
    this.element.setAttribute("aria-label", formName(quote))
    const { body, suggestion } = this.written
    this.#preview.replaceChildren(...(suggestion === null ? [] : [diffView(quote, suggestion)]))
    this.submit.disabled = this.body.readOnly || (body === "" && suggestion === null)
    for (const field of [this.body, this.suggestion]) grow(field)
  }

  async #submit() {
    if (this.submit.disabled) return
    this.#error.textContent = ""
    const sent = JSON.stringify(this.content)
    this.#error.textContent = await this.options.submit(this.written, () => sent === JSON.stringify(this.content))
  }
}

/** Ctrl Enter sends a form; Esc closes it while nothing is lost. */
export function formKeys(form: HTMLFormElement, mayClose: () => boolean, close: () => void) {
  form.addEventListener("keydown", (event) => {
    const isSend = event.key === "Enter" && (event.ctrlKey || event.metaKey)
    const isClose = event.key === "Escape" && mayClose()
    if (event.isComposing || !(isSend || isClose)) return
    event.preventDefault()
    if (isSend) return form.requestSubmit()
    event.stopPropagation()
    close()
  })
}

/** A field as high as what is in it. */
export function grow(field: HTMLTextAreaElement) {
  field.style.height = "auto"
  if (0 < field.scrollHeight) field.style.height = `${Math.min(field.scrollHeight + 2, 260)}px`
}
