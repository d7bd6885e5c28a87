/**
 * Stores written text that is not sent: the form of a new review, replies, and edits of replies. A reload and a crash of
 * the tab keep it; it ends with the tab, so that the next user of a shared computer does not see it.
 */

interface NewReview {
  quote: string
  from: number // where the quote began, in UTF-16 units
  body: string
  suggestion: string
  suggests: boolean
  whole?: boolean // whether it is on the whole text: there is no quote
}

type TextStorage = Pick<Storage, "getItem" | "setItem" | "removeItem">

export class WrittenDrafts {
  declare prefix
  declare open: () => TextStorage
  /** By name. Without storage, or without room in it, the page still has them. */
  #texts: Map<string, string> = new Map()

  /** @param open the storage; it throws where a browser forbids it */
  constructor(link: string, open: () => TextStorage = () => sessionStorage) {
    this.prefix = `galley:written:${link}:`
    this.open = open
    this.#try((storage) => {
      for (const key of Object.keys(storage)) {
        if (key.startsWith(this.prefix)) this.#texts.set(key.slice(this.prefix.length), storage.getItem(key) ?? "")
      }
    })
  }

  /** All of it, for its author to copy. */
  get all() {
    const { suggests = false, suggestion = "", body = "" } = this.newReview ?? {}
    const others = [...this.#texts].filter(([name]) => name !== "new").map(([, text]) => text)
    return [...(suggests ? [suggestion] : []), body, ...others].filter((text) => text.trim() !== "")
  }

  /** Discards all of it. */
  clear() {
    for (const name of [...this.#texts.keys()]) this.write(name, "")
  }

  get newReview(): NewReview | null {
    const stored = this.read("new")
    try {
      return stored === "" ? null : JSON.parse(stored)
    } catch {
      return null
    }
  }

  set newReview(written: NewReview | null) {
    this.write("new", written === null ? "" : JSON.stringify(written))
  }

  /** @param name of a reply, or of an edit of one */
  read(name: string) {
    return this.#texts.get(name) ?? ""
  }

  write(name: string, text: string) {
    if (text === "") this.#texts.delete(name)
    else this.#texts.set(name, text)
    this.#try((storage) => (text === "" ? storage.removeItem(this.prefix + name) : storage.setItem(this.prefix + name, text)))
  }

  #try(act: (storage: TextStorage) => void) {
    try {
      act(this.open())
    } catch {
      // The page still has it.
    }
  }
}

/** The occurrence of a quote nearest to where it began, or `null`. */
export function nearest(text: string, { quote, from }: Pick<NewReview, "quote" | "from">): { from: number, to: number } | null {
  if (quote === "") return null
  const before = text.lastIndexOf(quote, from)
  const after = text.indexOf(quote, from)
  if (before === -1 && after === -1) return null
  const at = after === -1 || (before !== -1 && from - before < after - from) ? before : after
  return { from: at, to: at + quote.length }
}
