// @ts-check
/**
 * The keyboard of the desk, and the list of it.
 *
 * Keys are read by their place (`code`), not by what they type: with Alt held down, a Mac types
 * letters of its own, and with a Korean layout every letter is another one.
 */

import { button, byId, drawWith, el } from "../lib/dom.js"
import { t } from "../lib/i18n.js"

/**
 * @typedef {"comment" | "mode" | "next" | "previous" | "accept" | "acceptNext" | "rejectNext" | "acceptAll" | "say" | "view" | "region" | "resolve" | "history" | "find" | "print" | "text" | "help"} Command
 * @typedef {Record<Exclude<Command, "help" | "mode" | "acceptNext" | "rejectNext" | "say" | "view" | "region">, () => void>} CommonCommands
 * @typedef {CommonCommands & Partial<Record<"mode" | "acceptNext" | "rejectNext" | "say" | "view" | "region", () => void>>} Commands some roles have only a part of them
 */

const apple = /Mac|iPhone|iPad/.test(globalThis.navigator?.platform ?? "")
const names = apple ? { control: "⌘", alt: "⌥" } : { control: "Ctrl", alt: "Alt" }

/** @typedef {import("../lib/i18n.js").Sentence} Sentence */
/** The entries of the list of shortcuts, in groups: a group is its title and a list. @type {readonly (readonly [Sentence, readonly (readonly [Sentence, string[][]])[]])[]} */
const shown = [
  ["review.list", [
    ["keys.comment", [[names.control, names.alt, "M"]]],
    ["keys.next", [[names.alt, "↓"]]],
    ["keys.previous", [[names.alt, "↑"]]],
    ["keys.neighbour", [["↓"], ["↑"]]],
    ["keys.card", [["Enter"], ["Esc"]]],
    ["keys.send", [[names.control, "Enter"]]],
  ]],
  ["keys.decisions", [
    ["keys.accept", [[names.alt, "A"]]],
    ["keys.acceptNext", [[names.alt, "Enter"]]],
    ["keys.rejectNext", [[names.alt, "Shift", "Enter"]]],
    ["keys.acceptAll", [[names.control, names.alt, "A"]]],
    ["keys.resolve", [[names.alt, "R"]]],
    ["keys.say", [[names.alt, "I"]]],
  ]],
  ["menu.document", [
    ["keys.mode", [[names.control, names.alt, "S"]]],
    ["keys.view", [[names.control, names.alt, "V"]]],
    ["keys.region", [["F6"]]],
    ["keys.text", [["Esc"]]],
    ["keys.undo", [[names.control, "Z"], [names.control, "Shift", "Z"]]],
    ["keys.find", [[names.control, "F"]]],
    ["keys.history", [[names.alt, "H"]]],
    ["keys.print", [[names.control, "P"]]],
    ["keys.help", [[names.control, "/"], ["?"]]],
  ]],
]

/** With Ctrl or ⌘ and Alt. @type {Partial<Record<string, Command>>} */
const WITH_CONTROL = { KeyM: "comment", KeyA: "acceptAll", KeyS: "mode", KeyV: "view" }
/** @type {readonly Command[]} */
const OF_WRITERS = ["acceptNext", "rejectNext", "say", "view"]
/** In a field these keys are its own. @type {readonly Command[]} */
const NOT_IN_FIELDS = ["acceptNext", "rejectNext", "say"]

/**
 * Which command a key is, if any.
 *
 * @param {Pick<KeyboardEvent, "code" | "key" | "altKey" | "ctrlKey" | "metaKey" | "shiftKey">} event
 * @param {boolean} typing whether the key would type into something
 * @returns {Command | null}
 */
export function commandOf(event, typing) {
  const { code, key, altKey, ctrlKey, metaKey, shiftKey } = event
  if (altKey && (ctrlKey || metaKey)) return WITH_CONTROL[code] ?? null
  if (altKey) {
    if (code === "Enter" || code === "NumpadEnter") return shiftKey ? "rejectNext" : "acceptNext"
    if (code === "KeyI") return "say"
    if (code === "ArrowDown") return "next"
    if (code === "ArrowUp") return "previous"
    // In a field these letters are text.
    if (code === "KeyA" && !typing) return "accept"
    if (code === "KeyR" && !typing) return "resolve"
    return code === "KeyH" ? "history" : null
  }
  if (ctrlKey || metaKey) {
    if (key === "/" || code === "Slash") return "help"
    // On a Mac, Ctrl moves the caret by letters.
    if (shiftKey || ctrlKey === apple) return null
    return code === "KeyF" ? "find" : code === "KeyP" ? "print" : null
  }
  if (key === "Escape") return "text"
  if (code === "F6" && !shiftKey) return "region"
  return key === "?" && !typing ? "help" : null
}

/** The keys of a command, as one would write them. @param {Command} command */
export function chordOf(command) {
  return shown.flatMap(([, keys]) => keys).find(([name]) => name === `keys.${command}`)?.[1][0]?.join(" ") ?? ""
}

export class Shortcuts {
  /** @param {Commands} commands */
  constructor(commands) {
    this.commands = commands
    this.dialog = byId("keys", HTMLDialogElement)
  }

  /** @param {AbortSignal} signal */
  start(signal) {
    // Before the editor, which has uses of its own for Alt and the arrows.
    window.addEventListener("keydown", (event) => this.#press(event), { signal, capture: true })
    this.dialog.addEventListener("click", (event) => event.target === this.dialog && this.dialog.close(), { signal })
    drawWith([], () => this.#draw(), signal)
  }

  help() {
    this.dialog.showModal()
  }

  /** @param {KeyboardEvent} event */
  #press(event) {
    // A dialog has the keyboard for itself.
    if (event.isComposing || event.defaultPrevented || document.querySelector("dialog[open]")) return
    if (event.getModifierState("AltGraph")) return
    const target = event.target instanceof HTMLElement ? event.target : document.body
    const command = commandOf(event, typesInto(target))
    if (command === null) return
    if (command === "text") return this.#back(target)
    // A second time, the browser searches the whole page.
    if (command === "find" && target.closest(".find")) return
    if (NOT_IN_FIELDS.includes(command) && target.matches("input, select, textarea")) return
    const act = command === "help" ? () => this.help() : this.commands[command]
    if (!act) return
    event.preventDefault()
    event.stopPropagation()
    act()
  }

  /** Esc first closes the element that is open at its target. @param {HTMLElement} target */
  #back(target) {
    if (target.closest(".cm-content, details[open], dialog")) return
    // After the field itself has had its say: an empty form closes.
    queueMicrotask(() => this.commands.text())
  }

  #draw() {
    const lists = shown.flatMap(([title, entries]) => {
      const list = el("dl", { class: "key-list" })
      for (const [name, chords] of entries) {
        const command = name.replace("keys.", "")
        if (/** @type {readonly string[]} */ (OF_WRITERS).includes(command) && !(command in this.commands)) continue
        const keys = el("dd")
        for (const chord of chords) keys.append(el("span", { class: "chord" }, ...chord.map((key) => el("kbd", { text: key }))), " ")
        list.append(el("div", {}, el("dt", { text: t(name) }), keys))
      }
      return [el("h3", { text: t(title) }), list]
    })
    // The list opens at its begin, not at the button below it.
    const heading = el("h2", { id: "keys-title", tabindex: "-1", autofocus: "", text: t("keys.title") })
    const close = button(t("common.close"), {}, () => this.dialog.close())
    this.dialog.replaceChildren(heading, ...lists, el("div", { class: "actions" }, close))
  }
}

/** Whether a letter pressed there would be typed. @param {HTMLElement} target */
function typesInto(target) {
  if (target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement) return true
  if (target instanceof HTMLSelectElement) return true
  // A writer whose typing is paused still means letters. A reviewer who reads does not.
  const isReading = document.body.dataset.role === "reviewer" && target.closest("[aria-readonly=true]") !== null
  return target.closest("[contenteditable=true]") !== null && !isReading
}
