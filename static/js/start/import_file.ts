/**
 * The start page makes a document of a file: chosen, or dropped anywhere on the page.
 *
 * A file waits until the user has a name; a refused one stays for another try. Owns one form, and the
 * notice that the page takes a drop.
 */

import { Problem } from "../lib/api.ts"
import { byId, el, say } from "../lib/dom.ts"
import { errorText } from "../lib/error_text.ts"
import { decoded, ENCODINGS, EXTENSIONS, importFile, refusalOf, type Changes } from "../lib/files.ts"
import { i18n, number, t, tCount } from "../lib/i18n.ts"
import { storeInTab } from "../lib/preferences.ts"

/** The acts of the start page for an import. */
interface Page {
  mayGoOn: () => boolean // whether the user has a name; without one the page asks for it
  enter: () => Promise<void> // signs in
  stayed: () => void // nothing was opened: shows the user who has signed in for it
  open: () => void // shows the form
}

/** So much of a text is shown, in UTF-16 units. */
const PREVIEW = 300

export class ImportFile {
  declare page: Page
  #form = byId("file", HTMLFormElement)
  #field = byId("file-field", HTMLInputElement)
  #choose = byId("file-choose", HTMLButtonElement)
  #name = byId("file-name")
  #track = byId("file-track")
  #progress = byId("file-progress", HTMLProgressElement)
  #percent = byId("file-percent")
  #status = byId("file-status")
  #error = byId("file-error")
  #go = byId("file-go", HTMLButtonElement)
  #cancel = byId("file-cancel", HTMLButtonElement)
  #drop = byId("drop-hint")
  #encodings = byId("file-encoding")
  /** The file of the user, until it is a document. */
  #file: File | null = null
  /** The file in UTF-8, by the encoding that the user chooses. */
  #text: (() => File) | null = null
  /** The upload under way. */
  #work: AbortController | null = null
  #wasTried = false

  constructor(page: Page) {
    this.page = page
  }

  start() {
    this.#field.accept = EXTENSIONS.join(",")
    this.#choose.addEventListener("click", () => this.#field.click())
    this.#field.addEventListener("change", () => {
      const files = [...(this.#field.files ?? [])]
      // The same file may be chosen again after it was saved anew.
      this.#field.value = ""
      this.#take(files)
    })
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault()
      void this.#run()
    })
    this.#cancel.addEventListener("click", () => this.#work?.abort())
    i18n.addEventListener("change", () => this.#draw())
    window.addEventListener("dragover", (event) => this.#over(event))
    window.addEventListener("dragleave", ({ relatedTarget }) => (this.#drop.hidden ||= relatedTarget === null))
    window.addEventListener("drop", (event) => this.#dropped(event))
    window.addEventListener("pageshow", ({ persisted }) => persisted && this.#forget())
    this.#draw()
  }

  /** After a way back from the document that was made. */
  #forget() {
    this.#work = null
    this.#file = this.#text = null
    this.#encodings.replaceChildren()
    say(this.#status)
    this.#draw()
  }

  #over(event: DragEvent) {
    if (!event.dataTransfer?.types.includes("Files")) return
    // Without this the browser opens the file instead of the page.
    event.preventDefault()
    const isTaken = this.#isOpenTo()
    event.dataTransfer.dropEffect = isTaken ? "copy" : "none"
    this.#drop.hidden = !isTaken
  }

  #dropped(event: DragEvent) {
    if (!event.dataTransfer?.types.includes("Files")) return
    event.preventDefault()
    this.#drop.hidden = true
    if (!this.#isOpenTo()) return
    const files = [...event.dataTransfer.files]
    if (this.#form.hidden) this.page.open()
    this.#take(files)
  }

  /** Not before a sign-in, below a dialog, or beside another upload. */
  #isOpenTo() {
    return !byId("ways").hidden && this.#work === null && document.querySelector("dialog[open]") === null
  }

  #take(files: File[]) {
    const [file] = files
    if (!file || this.#work !== null) return
    this.#wasTried = false
    this.#encodings.replaceChildren()
    this.#text = null
    say(this.#status)
    const isOne = files.length === 1
    this.#file = isOne ? file : null
    say(this.#error, () => (isOne ? "" : t("import.one")))
    this.#draw()
    if (this.#file !== null) void this.#run()
  }

  async #run() {
    const file = this.#file
    if (file === null || this.#work !== null) return
    const refusal = refusalOf(file)
    if (refusal) return this.#fail(file, refusal)
    if (!this.page.mayGoOn()) return
    const work = new AbortController()
    this.#work = work
    this.#wasTried = true
    say(this.#error)
    this.#sent(file, 0)
    this.#draw()
    this.#cancel.focus()
    try {
      await this.page.enter()
      const { id, import: changes } = await importFile(this.#text?.() ?? file, { signal: work.signal, sent: (share) => this.#sent(file, share) })
      if (changes) storeInTab(`galley.imported.${id}`, changesSentence(changes))
      location.assign(`/d/${encodeURIComponent(id)}`)
    } catch (error) {
      this.#work = null
      this.page.stayed()
      this.#draw()
      if (work.signal.aborted) say(this.#status, () => t("import.cancelled"))
      else this.#fail(file, error)
      this.#go.focus()
    }
  }

  /**
   * Asks for the encoding of a text, with its begin as it would read: the user chooses, and the page sends the text in UTF-8.
   *
   * @param guess of the server
   */
  async #chooseEncoding(file: File, guess: string) {
    const bytes = await file.arrayBuffer()
    const names = [...new Set([guess === "ISO-2022" ? "iso-2022-jp" : guess.toLowerCase(), ...ENCODINGS])]
    const texts = new Map(names.flatMap((name) => [decoded(bytes, name)].flatMap((text) => (text === null ? [] : [[name, text]]))))
    const [first] = texts.keys()
    if (first === undefined || this.#file !== file) return
    const preview = el("p", { class: "file-preview", id: "file-preview" })
    const choice = el("select", { "aria-describedby": "file-preview" }, ...[...texts.keys()].map((name) => el("option", { value: name, text: ENCODING_NAMES[name] ?? name })))
    const show = () => (preview.textContent = texts.get(choice.value)?.trim().slice(0, PREVIEW) ?? "")
    choice.addEventListener("change", show)
    show()
    const label = el("label", {}, el("span", { "data-t": "import.encoding", text: t("import.encoding") }), choice)
    this.#encodings.replaceChildren(label, preview)
    this.#text = () => new File([texts.get(choice.value) ?? ""], file.name, { type: "text/plain" })
    say(this.#error)
    say(this.#status, () => t("import.encoding.ask", { name: file.name }))
    this.#draw()
    choice.focus()
  }

  #fail(file: File, error: unknown) {
    if (error instanceof Problem && error.encoding !== "") return void this.#chooseEncoding(file, error.encoding)
    const isLost = error instanceof Problem && error.status === 0
    say(this.#status)
    const { name } = file
    say(this.#error, () => (isLost ? t("import.lost") : t("import.failed", { name, why: errorText(error) })))
    // Another try of a file that cannot become a document is no way on.
    const isHopeless = error instanceof Problem && error.kind.startsWith("import-")
    if (isHopeless) this.#file = null
    this.#draw()
    if (isHopeless) this.#choose.focus()
  }

  #sent(file: File, share: number) {
    const percent = Math.floor(100 * share)
    // A sent file cannot be called back: the server may be storing its text.
    const isSent = 1 <= share
    if (isSent) this.#progress.removeAttribute("value")
    else this.#progress.value = percent
    this.#percent.textContent = isSent ? "" : t("export.percent", { percent })
    say(this.#status, () => t(isSent ? "import.reading" : "import.sending", { name: file.name }))
    if (isSent && document.activeElement === this.#cancel) this.#status.focus()
    this.#cancel.hidden = isSent
  }

  #draw() {
    const isBusy = this.#work !== null
    this.#track.hidden = !isBusy
    this.#encodings.hidden = isBusy || this.#text === null
    this.#choose.hidden = isBusy
    this.#cancel.hidden = !isBusy
    this.#go.hidden = isBusy || this.#file === null
    this.#go.textContent = t(this.#text ? "import.encoding.go" : this.#wasTried ? "import.again" : "import.go")
    this.#name.textContent = this.#file === null || isBusy ? "" : t("import.chosen", { name: this.#file.name, size: sizeOf(this.#file.size) })
  }
}

/** The names of encodings, each with its language. */
const ENCODING_NAMES: Readonly<Record<string, string>> = {
  "euc-kr": "한국어 (EUC-KR, CP949)",
  "windows-1252": "Latin (windows-1252)",
  shift_jis: "日本語 (Shift_JIS)",
  "euc-jp": "日本語 (EUC-JP)",
  "iso-2022-jp": "日本語 (ISO-2022-JP)",
  gbk: "简体中文 (GBK)",
  gb18030: "简体中文 (GB18030)",
  big5: "繁體中文 (Big5)",
  "windows-1251": "Кириллица (windows-1251)",
}

/** How the document differs from its file; empty if it does not. */
function changesSentence({ tables, footnotes, comments_left: comments, changes_applied: tracked, ...more }: Changes) {
  const { equations = 0, hidden_passages: hidden = 0, number_formats: { length: formats } = [], left_out: left = {} } = more
  const { pictures = 0, objects = 0, fields = 0, headers = 0, symbols = 0 } = left
  const counts = { tables, footnotes, equations, hidden, formats, comments, pictures, objects, fields, headers, symbols, tracked }
  const kinds = (Object.keys(counts) as (keyof typeof counts)[]).filter((kind) => 0 < counts[kind])
  const parts = kinds.map((kind) => tCount(`import.changed.${kind}`, counts[kind]))
  return parts.length === 0 ? "" : t("import.changed", { parts: parts.join(", ") })
}

function sizeOf(bytes: number) {
  const kilobytes = Math.max(1, Math.ceil(bytes / 1024))
  return kilobytes < 1024 ? `${number(kilobytes)} KB` : `${number(Math.ceil(kilobytes / 102.4) / 10)} MB`
}
