/**
 * The keyboard of the desk, and the list of it.
 *
 * Keys are read by their place (`code`), not by what they type: with Alt held down, a Mac types
 * letters of its own, and with a Korean layout every letter is another one.
 */

import { button, byId, drawWith, el } from "../lib/dom.ts"
import { t, type Sentence } from "../lib/i18n.ts"

type Command = "comment" | "mode" | "next" | "previous" | "accept" | "acceptNext" | "rejectNext" | "acceptAll" | "say" | "view" | "region" | "resolve" | "history" | "find" | "print" | "text" | "help"
type CommonCommands = Record<Exclude<Command, "help" | "mode" | "acceptNext" | "rejectNext" | "say" | "view" | "region">, () => void>
/** Some roles have only a part of them. */
export type Commands = CommonCommands & Partial<Record<"mode" | "acceptNext" | "rejectNext" | "say" | "view" | "region", () => void>>

const apple = /Mac|iPhone|iPad/.test(globalThis.navigator?.platform ?? "")
const names = apple ? { control: "⌘", alt: "⌥" } : { control: "Ctrl", alt: "Alt" }

/** The entries of the list of shortcuts, in groups: a group is its title and a list. */
const shown: readonly (readonly [Sentence, readonly (readonly [Sentence, string[][]])[]])[] = [
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

/** With Ctrl or ⌘ and Alt. */
const WITH_CONTROL: Partial<Record<string, Command>> = { KeyM: "comment", KeyA: "acceptAll", KeyS: "mode", KeyV: "view" }
const OF_WRITERS: readonly Command[] = ["acceptNext", "rejectNext", "say", "view"]
/** In a field these keys are its own. */
const NOT_IN_FIELDS: readonly Command[] = ["acceptNext", "rejectNext", "say"]

/**
 * Which command a key is, if any.
 *
 * @param typing whether the key would type into something
 */
export function commandOf(
  event: Pick<KeyboardEvent, "code" | "key" | "altKey" | "ctrlKey" | "metaKey" | "shiftKey">,
  typing: boolean,
): Command | null {
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

/** The keys of a command, as one would write them. */
export function chordOf(command: Command) {
  return shown.flatMap(([, keys]) => keys).find(([name]) => name === `keys.${command}`)?.[1][0]?.join(" ") ?? ""
}

export class Shortcuts {
  declare commands: Commands
  declare dialog

  constructor(commands: Commands) {
    this.commands = commands
    this.dialog = byId("keys", HTMLDialogElement)
  }

  start(signal: AbortSignal) {
    // Before the editor, which has uses of its own for Alt and the arrows.
    window.addEventListener("keydown", (event) => this.#press(event), { signal, capture: true })
    this.dialog.addEventListener("click", (event) => event.target === this.dialog && this.dialog.close(), { signal })
    drawWith([], () => this.#draw(), signal)
  }

  help() {
    this.dialog.showModal()
  }

  #press(event: KeyboardEvent) {
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

  /** Esc first closes the element that is open at its target. */
  #back(target: HTMLElement) {
    if (target.closest(".cm-content, details[open], dialog")) return
    // After the field itself has had its say: an empty form closes.
    queueMicrotask(() => this.commands.text())
  }

  #draw() {
    const lists = shown.flatMap(([title, entries]) => {
      const list = el("dl", { class: "key-list" })
      for (const [name, chords] of entries) {
        const command = name.replace("keys.", "")
        if ((OF_WRITERS as readonly string[]).includes(command) && !(command in this.commands)) continue
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

/** Whether a letter pressed there would be typed. */
function typesInto(target: HTMLElement) {
  if (target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement) return true
  if (target instanceof HTMLSelectElement) return true
  // A writer whose typing is paused still means letters. A reviewer who reads does not.
  const isReading = document.body.dataset.role === "reviewer" && target.closest("[aria-readonly=true]") !== null
  return target.closest("[contenteditable=true]") !== null && !isReading
}
