/**
 * The rule for text that enters the system: from a paste, a drop, a form, a key. The server has the same for REST and
 * imports (`src/domain/text.rs`), and `tests/data/incoming.json` holds the examples of both.
 *
 * - A line break of any kind becomes "\n": Word's soft break is U+000B.
 * - Further control characters go, but the tab; U+FEFF, the halves of surrogate pairs, and U+FFFE and U+FFFF too.
 * - Letters are composed (NFC): macOS decomposes Hangul in names of files, and forms count 각 as one.
 */

const BREAK = /\r\n|[\r\v\f\u0085\u2028\u2029]/g
const CONTROL = /[\0-\x08\x0e-\x1f\x7f-\x9f\ufeff\ufffe\uffff\p{Cs}]/gu

export const incoming = (text: string) => text.replace(BREAK, "\n").replace(CONTROL, "").normalize("NFC")

/** Applies the rule to what is typed, pasted or dropped into the fields of the page. A field of one line has blanks for its breaks. */
export function cleanFields() {
  const clean = (event: InputEvent) => {
    const { target, data, isComposing } = event
    const isLine = target instanceof HTMLInputElement
    if (data === null || isComposing || !(isLine || target instanceof HTMLTextAreaElement)) return
    const text = isLine ? incoming(data).replaceAll("\n", " ") : incoming(data)
    if (text === data) return
    event.preventDefault()
    // Keeps the field's undo history and its longest text, as an assignment would not.
    document.execCommand("insertText", false, text)
  }
  document.addEventListener("beforeinput", clean, { capture: true })
}
