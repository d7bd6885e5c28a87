/**
 * The keyboard in the margin: each card is one tab stop.
 *
 * Enter goes from a card to its buttons, Esc (`desk/navigation.ts`) goes back to the card, and the arrow keys go
 * to the neighbours. The controls of a card are tab stops only while one of them has the focus. A
 * mutation observer covers the controls that a card draws later.
 */

const CONTROLS = "a[href], button, input, select, textarea"

export class CardKeys {
  declare margin: HTMLElement
  declare focusCard: (id: string) => void
  /** The card whose controls are tab stops. */
  #entered: HTMLElement | null = null

  constructor(margin: HTMLElement, focusCard: (id: string) => void) {
    this.margin = margin
    this.focusCard = focusCard
  }

  start(signal: AbortSignal) {
    this.margin.addEventListener("focusin", (event) => this.#follow(event.target), { signal })
    this.margin.addEventListener("focusout", (event) => this.#follow(event.relatedTarget), { signal })
    this.margin.addEventListener("keydown", (event) => this.#press(event), { signal })
    const drawn = new MutationObserver((changes) => {
      for (const { addedNodes } of changes) for (const node of addedNodes) this.#stop(node)
    })
    drawn.observe(this.margin, { childList: true, subtree: true })
    signal.addEventListener("abort", () => drawn.disconnect())
  }

  /** @param target that has the focus now */
  #follow(target: EventTarget | null) {
    const card = target instanceof Element ? target.closest(".card") : null
    const entered = card instanceof HTMLElement && card !== target ? card : null
    if (entered === this.#entered) return
    const left = this.#entered
    this.#entered = entered
    if (left) this.#stop(left)
    if (entered) this.#stop(entered)
  }

  /** Sets which controls are tab stops. */
  #stop(node: Node) {
    if (!(node instanceof HTMLElement)) return
    const controls = [...node.querySelectorAll(CONTROLS), ...(node.matches(CONTROLS) ? [node] : [])]
    for (const control of controls) {
      const card = control.closest(".card")
      if (!card || card.classList.contains("card-draft")) continue
      const isStop = card === this.#entered
      if (control instanceof HTMLElement && control.tabIndex !== (isStop ? 0 : -1)) control.tabIndex = isStop ? 0 : -1
    }
  }

  #press(event: KeyboardEvent) {
    const { target: card, key } = event
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return
    if (!(card instanceof HTMLElement) || !card.matches(".card")) return
    if (key === "Enter") {
      event.preventDefault()
      return firstControl(card)?.focus()
    }
    const next = neighbour(card, key)
    if (!next) return
    event.preventDefault()
    this.focusCard(next.dataset.card ?? "")
  }
}

/** A decision before the field of a reply. */
function firstControl(card: HTMLElement) {
  const visible = [...card.querySelectorAll(CONTROLS)].filter((control) => control.checkVisibility())
  const first = visible.find((control) => control.matches(".actions button")) ?? visible[0]
  return first instanceof HTMLElement ? first : null
}

function neighbour(card: HTMLElement, key: string) {
  const cards = [...(card.parentElement?.querySelectorAll(":scope > .card[data-card]") ?? [])]
  const at = cards.indexOf(card)
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: cards.length - 1 }[key]
  const next = to === undefined ? undefined : cards[to]
  return next instanceof HTMLElement && next !== card ? next : null
}
