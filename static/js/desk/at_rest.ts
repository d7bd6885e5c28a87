/** Compares the editor with the shared text at rest: a difference would be called saved. */

/** After the last change, in ms. */
const REST = 1_000

export class AtRest {
  declare mend: () => boolean | null
  declare mended: () => void
  #timer = 0

  /** @param mend whether there was a difference, which is mended; `null`: the text is not at rest */
  constructor(mend: () => boolean | null, mended: () => void) {
    this.mend = mend
    this.mended = mended
  }

  /** A text has changed. @param differs whether the other one should have, too: then the look is not put off by typing */
  changed(differs: boolean) {
    window.clearTimeout(this.#timer)
    this.#timer = window.setTimeout(() => this.#look(), differs ? 0 : REST)
  }

  stop() {
    window.clearTimeout(this.#timer)
  }

  #look() {
    const isMended = this.mend()
    if (isMended === null) this.changed(false)
    else if (isMended) this.mended()
  }
}
