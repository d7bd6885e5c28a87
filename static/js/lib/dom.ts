/** Elements without strings of HTML: what a person wrote only ever becomes text. */

import type { Role } from "./api.ts"
import { i18n, t, type Sentence } from "./i18n.ts"

/** @param given `class` and `text`; everything else is an attribute: `true` sets it empty, `false` leaves it out */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  given: { class?: string, text?: string, [attribute: string]: string | boolean | undefined } = {},
  ...children: (Node | string | null)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || value === false) continue
    if (name === "class") element.className = String(value)
    else if (name === "text") element.textContent = String(value)
    else element.setAttribute(name, value === true ? "" : value)
  }
  element.append(...children.filter((child) => child !== null))
  return element
}

/** A drawing element. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Record<string, string> = {},
  ...children: SVGElement[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag)
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value)
  element.append(...children)
  return element
}

/** Paths of the few icons, on a 16 × 16 field, drawn as strokes. */
const icons = {
  check: "M3 8.5 6.5 12 13 4.5",
  cross: "M4 4l8 8M12 4l-8 8",
  comment: "M2.5 3.5h11v7h-6l-3 3v-3h-2z",
  pen: "M3 13l.8-3L11 2.8a1.2 1.2 0 0 1 1.7 0l.5.5a1.2 1.2 0 0 1 0 1.7L6 12.2z",
  alert: "M8 2.5 14.5 13.5h-13zM8 6.5v3.5M8 11.8v.2",
}

export function icon(name: keyof typeof icons) {
  const path = svg("path", { d: icons[name] })
  return svg("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" }, path)
}

/** A hair that fills, beside the words that say how much. */
export const meter = () => el("span", { class: "meter", "aria-hidden": "true" })

/** @param part from 0 to 1 */
export const fillMeter = (meter: HTMLElement, part: number) => meter.style.setProperty("--filled", `${part * 100}%`)

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" })

/** The first letter of a name, as a reader sees letters. */
export function initialOf(name: string) {
  const [first] = graphemes.segment(name.trim())
  return (first?.segment ?? "?").toLocaleUpperCase()
}

/** The initial of a person, in the pen of a role. */
export function initial(name: string, role?: Role) {
  return el("span", { class: "initial", "data-role": role, "aria-hidden": "true", text: name && initialOf(name) })
}

/** A button that says what it does in words, perhaps with an icon before them. */
export function button(
  text: string,
  { class: name = "button", icon: drawn, label, type = "button" }: { class?: string, icon?: keyof typeof icons, label?: string, type?: "button" | "submit" } = {},
  press?: (event: Event) => void,
) {
  const element = el("button", { type, class: name, "aria-label": label })
  if (drawn) element.append(icon(drawn))
  element.append(el("span", { text }))
  if (press) element.addEventListener("click", press)
  return element
}

/** A button whose words follow the language of the page. */
export function translatedButton(words: Sentence, given?: Parameters<typeof button>[1], press?: (event: Event) => void) {
  const element = button(t(words), given, press)
  element.lastElementChild?.setAttribute("data-t", words)
  return element
}

/** Has a form do its work in place of a navigation, once at a time. */
export function onSubmit(form: HTMLFormElement, send: HTMLButtonElement, work: () => Promise<void>, failed?: (error: unknown) => void) {
  form.addEventListener("submit", (event) => {
    event.preventDefault()
    void once(send, () => (failed ? work().catch(failed) : work()))
  })
}

/** Writes what a button says, and for a screen reader also what it is about. */
export function nameButton(press: HTMLButtonElement, words: string, about?: string) {
  write(press.lastElementChild as HTMLElement, words)
  press.setAttribute("aria-label", about === undefined ? words : `${words}: ${about}`)
}

/**
 * Does what a button is for, once at a time. It is not disabled meanwhile: that would take the
 * focus from it, and nothing would have it.
 */
export async function once(button: HTMLButtonElement, work: () => Promise<void>) {
  if (button.ariaBusy === "true") return
  button.ariaBusy = "true"
  try {
    await work()
  } finally {
    button.ariaBusy = null
  }
}

/**
 * A form that cannot be sent: its button is disabled and says why, and its fields are only read.
 *
 * @param why `""`: it can be sent
 */
export function refuse(form: HTMLFormElement, why: string) {
  for (const field of form.querySelectorAll("textarea")) field.readOnly = why !== ""
  for (const send of form.querySelectorAll("button")) {
    if (send.type !== "submit") continue
    send.disabled = why !== ""
    send.title = why
  }
}

/** How long a question in a button waits for its second press, in ms. */
const QUESTION_TIMEOUT = 5_000

/** The first press of a button asks, the second one acts. */
export function pressTwice(pressed: HTMLButtonElement, question: { words: string, label: string }, act: () => Promise<void>) {
  if (pressed.dataset.sure === "true") return void once(pressed, act)
  const before = { words: pressed.textContent ?? "", label: pressed.getAttribute("aria-label") ?? "" }
  const say = ({ words, label }: typeof question) => {
    pressed.lastElementChild?.replaceChildren(words)
    pressed.setAttribute("aria-label", label)
  }
  pressed.dataset.sure = "true"
  say(question)
  window.setTimeout(() => {
    delete pressed.dataset.sure
    say(before)
  }, QUESTION_TIMEOUT)
}

/** The element of that id, which the page's own markup promises. */
export function byId<T extends typeof HTMLElement>(id: string, type?: T): InstanceType<T> {
  const element = document.getElementById(id)
  if (!(element instanceof (type ?? HTMLElement))) throw new Error(`the page has no #${id}`)
  return element as InstanceType<T>
}

/** Whether an answer may move the focus: the user has not gone on to another part of the page. */
export const mayMoveFocus = (part: Element | undefined) => document.activeElement === document.body || part?.contains(document.activeElement) === true

/** The last drawing of each part. */
const drawn: WeakMap<object, string> = new WeakMap()

/** Whether an owner has drawn these values already, in this language. */
export function isDrawn(owner: object, ...values: unknown[]) {
  const now = JSON.stringify([values, i18n.language])
  const isSame = drawn.get(owner) === now
  drawn.set(owner, now)
  return isSame
}

/** Draws now, and after each change of the sources and of the language. */
export function drawWith(sources: readonly EventTarget[], draw: () => void, signal?: AbortSignal) {
  for (const source of [...sources, i18n]) source.addEventListener("change", draw, { signal })
  draw()
}

/** In a narrow window the element is in the foot of the desk, in reach of the thumb. */
export function footWhenNarrow(element: HTMLElement, signal: AbortSignal) {
  const narrow = window.matchMedia("(max-width: 899px)")
  const mark = document.createComment("")
  element.before(mark)
  const move = () => {
    const focused = document.activeElement
    if (narrow.matches) byId("text-counts-bar").append(element)
    else mark.after(element)
    if (focused instanceof HTMLElement && element.contains(focused)) focused.focus({ preventScroll: true })
  }
  narrow.addEventListener("change", move, { signal })
  move()
}

/** The same text again would be spoken again, and would take a selection away. */
export function write(element: Element, text: string) {
  if (element.textContent !== text) element.textContent = text
}

/** The sentences that an event wrote into elements. */
const said: WeakMap<Element, () => string> = new WeakMap()

/** Writes a sentence, which follows the language of the page. */
export function say(element: Element, sentence: () => string = () => "") {
  said.set(element, sentence)
  element.toggleAttribute("data-said", true)
  write(element, sentence())
}

/** Writes the sentences again that an event wrote: the language is another one. */
export function sayAgain() {
  for (const element of document.querySelectorAll("[data-said]")) write(element, said.get(element)?.() ?? "")
}

/** Puts text on the clipboard; false where the browser does not let us. */
export async function copy(text: string) {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return false
  }
}

/** Has the browser keep a text, or the bytes of a file, as a file. */
export function download(name: string, content: string | Blob) {
  const url = URL.createObjectURL(typeof content === "string" ? new Blob([content], { type: "text/plain;charset=utf-8" }) : content)
  const link = el("a", { href: url, download: name, hidden: true })
  document.body.append(link)
  link.click()
  link.remove()
  // Not at once: the browser may not have begun to read.
  window.setTimeout(() => URL.revokeObjectURL(url), 60_000)
}
