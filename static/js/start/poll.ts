/**
 * Reads again and again while the page is visible: soon after a change, and less and less often without one.
 * A failed read waits longest, so that many pages do not load a server that has trouble.
 */

/** The first interval, in ms. */
const SHORTEST = 4_000
/** The last one, in ms. */
const LONGEST = 60_000
/** Share of an interval by which pages that opened together drift apart. */
const JITTER = 0.2

export type Outcome = "changed" | "same" | "failed"

/** The interval after that outcome, in ms. @param delay the one before */
export function nextDelay(delay: number, outcome: Outcome) {
  if (outcome === "changed") return SHORTEST
  return Math.min(LONGEST, delay * (outcome === "failed" ? 2 : 1.5))
}

export class Poll {
  declare work: () => Promise<Outcome>
  #delay = SHORTEST
  #timer = 0
  #runs = 0

  /** @param work reads once */
  constructor(work: () => Promise<Outcome>) {
    this.work = work
  }

  /** Reads whenever the page is visible again; the first read is the caller's. */
  start() {
    document.addEventListener("visibilitychange", () => document.hidden || this.now())
  }

  /** Reads now, and soon again: something happens. */
  now() {
    this.#delay = SHORTEST
    return this.#run()
  }

  async #run() {
    window.clearTimeout(this.#timer)
    const run = ++this.#runs
    const outcome = await this.work()
    // A later run has set the timer.
    if (run !== this.#runs) return
    this.#delay = nextDelay(this.#delay, outcome)
    const drift = 1 + JITTER * (Math.random() - 0.5)
    // A page that is visible again reads at once.
    this.#timer = window.setTimeout(() => document.hidden || this.#run(), this.#delay * drift)
  }
}
