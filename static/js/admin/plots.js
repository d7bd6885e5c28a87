// @ts-check
/** The last hour of all servers as three plots, readable without colour. Owns one section. */

import { byId, el, svg, write } from "../lib/dom.js"
import { clock, number, t } from "../lib/i18n.js"
import { series as readSeries } from "../lib/operations_api.js"
import { Section } from "./section.js"

/** @typedef {import("../lib/operations_api.js").Series} Series */

const PLOTS = /** @type {const} */ (["seats", "edits", "renewal_p99_ms"])
/** The field of the line, in units of the view box. */
const [WIDTH, HEIGHT, TOP, BASE] = [326, 96, 18, 78]

/** The least of 1, 2, 4, 6, 10, 20, … that is not below `most`: even, so that its half is a number, too. @param {number} most */
export function scaleTop(most) {
  const power = 10 ** Math.floor(Math.log10(Math.max(most, 2)))
  return [1, 2, 4, 6, 10].map((step) => step * power).find((top) => most <= top && top % 2 === 0) ?? 10 * power
}

/**
 * The path of the line and that of the area below it; each run of minutes with a value is a part of its own.
 *
 * @param {readonly (number | null)[]} values
 * @param {number} top
 */
export function paths(values, top) {
  const x = (/** @type {number} */ at) => ((at * WIDTH) / (values.length - 1)).toFixed(1)
  const y = (/** @type {number} */ value) => (BASE - (value * (BASE - TOP)) / top).toFixed(1)
  let [line, area] = ["", ""]
  for (let at = 0; at < values.length; at += 1) {
    const from = at
    let part = ""
    for (let value; (value = values[at] ?? null) !== null; at += 1) part += `${part === "" ? "M" : "L"}${x(at)} ${y(value)}`
    if (part === "") continue
    // A minute alone is a short line.
    line += at - from === 1 ? `${part}h1` : part
    area += `${part}L${x(at - 1)} ${BASE}L${x(from)} ${BASE}Z`
  }
  return { line, area }
}

/** @extends {Section<Series>} */
export class Plots extends Section {
  constructor() {
    super("admin.plots.failed", readSeries)
  }

  draw() {
    byId("plots").hidden = this.found === null && this.why() === ""
    const { found: series } = this
    byId("plots-list").replaceChildren(...(series === null ? [] : PLOTS.map((name) => figure(name, series))))
    const missing = series?.missing ?? []
    const sentence = missing.length === 0 ? "" : t("admin.plots.missing", { count: number(missing.length), nodes: missing.join(", ") })
    write(byId("plots-missing"), this.why() || sentence)
  }
}

/** @param {typeof PLOTS[number]} name @param {Series} series */
function figure(name, series) {
  const values = series[name]
  const of = (/** @type {number} */ value) => t(`admin.plots.${name}.value`, { count: number(name === "renewal_p99_ms" ? Math.round(value * 10) / 10 : value) })
  const time = (/** @type {number} */ at) => clock(new Date(series.minutes[at] ?? 0))
  const drawn = values.filter((value) => value !== null)
  // The newest minute has not ended: its edits are still counted.
  const latest = (name === "edits" ? values.at(-2) : undefined) ?? values.at(-1) ?? null
  const most = Math.max(0, ...drawn)
  const sentence = drawn.length === 0
    ? t("admin.plots.none")
    : t("admin.plots.range", { least: of(Math.min(...drawn)), most: of(most), time: time(values.indexOf(most)) })
  const now = latest === null ? "–" : of(latest)
  const title = t(`admin.plots.${name}`)
  const drawing = svg("svg", { viewBox: `0 0 360 ${HEIGHT}`, role: "img", "aria-label": `${title}: ${now}. ${sentence}` }, ...lines(values, time))
  return el(
    "figure",
    { id: `plot-${name}`, class: "plot" },
    el("figcaption", {}, el("span", { class: "plot-title", text: title }), el("strong", { class: "plot-now figures", text: now })),
    drawing,
    el("p", { class: "quiet", text: sentence }),
  )
}

/** @param {readonly (number | null)[]} values @param {(at: number) => string} time */
function lines(values, time) {
  const top = scaleTop(Math.max(0, ...values.filter((value) => value !== null)))
  const { line, area } = paths(values, top)
  const grid = [0, 0.5, 1].flatMap((part) => {
    const y = BASE - part * (BASE - TOP)
    return [svg("path", { class: "plot-grid", d: `M0 ${y}H${WIDTH}` }), words(360, y + 4, "end", number(part * top))]
  })
  const latest = values.at(-1) ?? null
  const end = latest === null ? [] : [svg("circle", { class: "run-done", cx: String(WIDTH), cy: String(BASE - (latest * (BASE - TOP)) / top), r: "2.5" })]
  const times = /** @type {const} */ ([[0, "start"], [30, "middle"], [59, "end"]])
  return [
    ...grid,
    svg("path", { class: "plot-area", d: area }),
    svg("path", { class: "plot-line", d: line }),
    ...end,
    ...times.map(([at, anchor]) => words((at * WIDTH) / 59, HEIGHT - 2, anchor, time(at))),
  ]
}

/** @param {number} x @param {number} y @param {string} anchor @param {string} text */
function words(x, y, anchor, text) {
  const element = svg("text", { class: "plot-tick", x: String(x), y: String(y), "text-anchor": anchor })
  element.textContent = text
  return element
}
