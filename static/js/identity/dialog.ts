/** The dialog of who is who: a title, what it holds, a spoken line of what was done, and its end. Owns one element. */

import { button, byId, el, once, say, translatedButton } from "../lib/dom.ts"
import { errorText } from "../lib/error_text.ts"
import { i18n, t, type Sentence } from "../lib/i18n.ts"

export class IdentityDialog {
  declare translate: () => void
  declare errorText
  declare element
  declare done
  declare error
  declare content
  declare actions

  /** @param translate draws the content anew in another language */
  constructor(translate: () => void = () => undefined, why = errorText) {
    this.translate = translate
    this.errorText = why
    this.element = byId("identity-dialog", HTMLDialogElement)
    // Outside a modal dialog nothing is spoken: it says by itself what was done.
    this.done = el("p", { class: "identity-done", role: "status" })
    this.error = el("p", { class: "form-error", role: "alert" })
    this.content = el("div", { class: "identity-content" })
    this.actions = el("div", { class: "actions" }, translatedButton("common.close", {}, () => this.element.close()))
  }

  get isOpen() {
    return this.element.open && this.element.contains(this.content)
  }

  /** The title and the button follow the language. */
  open(title: Sentence, ...content: Node[]) {
    const heading = el("h2", { id: "identity-title", tabindex: "-1", "data-t": title, text: t(title) })
    this.content.replaceChildren(...content)
    this.say()
    this.element.replaceChildren(heading, this.content, this.done, this.error, this.actions)
    const closed = new AbortController()
    this.whenClosed(() => closed.abort())
    i18n.addEventListener("change", this.translate, { signal: closed.signal })
    this.element.showModal()
    heading.focus()
  }

  /** Calls it when the dialog closes. */
  whenClosed(end: () => void) {
    this.element.addEventListener("close", end, { once: true })
  }

  /**
   * Draws a part anew. The focus stays on its `data-key`, or goes elsewhere, or to the title.
   *
   * @param elsewhere a selector
   */
  fill(part: HTMLElement, content: Node[], elsewhere: string = "h2") {
    const focused = document.activeElement
    const key = focused instanceof HTMLElement && part.contains(focused) ? focused.dataset.key : undefined
    part.replaceChildren(...content)
    if (key === undefined) return
    const again = part.querySelector(`[data-key="${CSS.escape(key)}"]`) ?? part.querySelector(elsewhere)
    const next = again instanceof HTMLElement ? again : this.element.querySelector("h2")
    next?.focus()
  }

  /**
   * A button that does its work once at a time, and says why it failed.
   *
   * @param about what it is about, for a screen reader
   */
  action(words: Sentence, key: string, kind: string, work: () => Promise<void>, about?: string) {
    const failed = (error: unknown) => this.fail(() => this.errorText(error))
    const label = about && `${t(words)}: ${about}`
    const press = button(t(words), { class: kind, label }, () => once(press, () => work().catch(failed)))
    press.dataset.key = key
    return press
  }

  /** Says what was done. The same sentence again is spoken again. */
  say(sentence?: () => string) {
    for (const part of [this.error, this.done]) say(part)
    say(this.done, sentence)
  }

  fail(why: () => string) {
    this.say()
    say(this.error, why)
  }
}
