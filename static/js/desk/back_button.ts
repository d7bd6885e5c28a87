/**
 * On a phone the Back button closes what is on top of the page (a dialog, the sheet of comments) and does not
 * leave the page: each open layer has an entry in the browser's history.
 *
 * The layers are observed in the page's markup, so no dialog needs to take part.
 */

/** Windows whose users go back by a gesture or a button of the device. */
const PHONE = "(max-width: 899px), (pointer: coarse)"
/** The key of the number of layers in a history entry. */
const LAYERS = "layers"

export class BackButton {
  declare page: { closeSheet: () => void }
  #phone = window.matchMedia(PHONE)
  /** The open layers, the topmost last. */
  #open: HTMLElement[] = []
  /** The layers of the current history entry, as it was last seen. */
  #depth = 0
  /** An entry is being taken away: the browser does it later. */
  #isGoing = false

  constructor(page: { closeSheet: () => void }) {
    this.page = page
  }

  start(signal: AbortSignal) {
    const observer = new MutationObserver(() => this.#update())
    observer.observe(document.body, { subtree: true, attributes: true, attributeFilter: ["open", "data-sheet"] })
    signal.addEventListener("abort", () => observer.disconnect())
    window.addEventListener("popstate", () => this.#back(), { signal })
    // A reload keeps the entry of a layer, and not the layer.
    if (0 < depth()) history.replaceState(null, "")
    this.#update()
  }

  /** Gives each open layer an entry, and takes those of closed layers away. */
  #update() {
    const isSheetOpen = document.body.dataset.sheet === "open"
    const open: HTMLElement[] = [...document.querySelectorAll("dialog")].filter((dialog) => dialog.open)
    if (isSheetOpen) open.push(document.body)
    this.#open = [...this.#open.filter((layer) => open.includes(layer)), ...open.filter((layer) => !this.#open.includes(layer))]
    const missing = this.#open.length - depth()
    if (this.#isGoing) return
    this.#isGoing = missing < 0
    if (missing < 0) history.go(missing)
    else if (this.#phone.matches) {
      for (let at = 0; at < missing; at++) history.pushState({ [LAYERS]: depth() + 1 }, "")
    }
    this.#depth = depth()
  }

  /** The user went back, or an entry of a closed layer was taken away. */
  #back() {
    const isOurs = this.#isGoing || this.#depth <= depth()
    this.#isGoing = false
    while (!isOurs && depth() < this.#open.length) {
      const layer = this.#open.pop()
      if (layer instanceof HTMLDialogElement) layer.close()
      else this.page.closeSheet()
    }
    this.#update()
  }
}

/** The number of layers that the current history entry has. */
function depth() {
  const layers = history.state?.[LAYERS]
  return typeof layers === "number" ? layers : 0
}
