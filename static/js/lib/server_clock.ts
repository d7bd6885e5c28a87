/**
 * The server's clock as the page measures it. The machine's clock may be wrong by hours, or be set while the page is open.
 *
 * The server reads the `Date` of an answer between request and answer. So each answer bounds the difference between its
 * clock and the monotonic clock of the page, and `now` is the machine's clock within these bounds.
 */

/** `Date` counts whole seconds. In ms. */
const DATE_STEP = 1_000
/** The two clocks of the machine move apart by more: one was set, or one stood still while the machine slept. In ms. */
const APART_MAX = 2_000
/** A measurement that failed is repeated after so long, in ms. */
const MEASURE_AGAIN = 5_000

/** The bounds of the server's clock above the monotonic one, in ms. */
let [least, most] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY]
/** The machine's clock above the monotonic one at the last answer, in ms. */
let apart = Number.NaN
let measuredAt = Number.NEGATIVE_INFINITY

/** Measures by an answer. @param sent when its request was sent, by `performance.now()` */
export function measureBy({ headers }: Pick<Response, "headers">, sent: number) {
  const date = Date.parse(headers.get("date") ?? "")
  if (Number.isNaN(date)) return
  const [from, to] = [date - performance.now(), date + DATE_STEP - sent]
  const isWithin = from <= most && least <= to
  least = isWithin ? Math.max(least, from) : from
  most = isWithin ? Math.min(most, to) : to
  apart = Date.now() - performance.now()
}

/** The time by the server's clock, in ms since 1970; by the machine's before the first answer. */
export function now() {
  const monotonic = performance.now()
  const isApart = APART_MAX < Math.abs(Date.now() - monotonic - apart)
  if (isApart && measuredAt + MEASURE_AGAIN < monotonic) {
    measuredAt = monotonic
    fetch("/api/auth", { method: "HEAD" }).then((answer) => measureBy(answer, monotonic), () => undefined)
  }
  return Math.round(Math.min(Math.max(Date.now(), monotonic + least), monotonic + most))
}
