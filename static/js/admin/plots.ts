/** The last hour of all servers as three plots, readable without colour. Owns one section. */

import { byId, el, svg, write } from "../lib/dom.ts"
import { clock, number, t } from "../lib/i18n.ts"
import { series as readSeries, type Series } from "../lib/operations_api.ts"
import { Section } from "./section.ts"

const PLOTS = ["seats", "edits", "renewal_p99_ms"] as const
/** The field of the line, in units of the view box. */
const [WIDTH, HEIGHT, TOP, BASE] = [326, 96, 18, 78]

/** The least of 1, 2, 4, 6, 10, 20, … that is not below `most`: even, so that its half is a number, too. */
export function scaleTop(most: number) {
  const power = 10 ** Math.floor(Math.log10(Math.max(most, 2)))
  return [1, 2, 4, 6, 10].map((step) => step * power).find((top) => most <= top && top % 2 === 0) ?? 10 * power
}

/** The path of the line and that of the area below it; each run of minutes with a value is a part of its own. */
export function paths(values: readonly (number | null)[], top: number) {
  const x = (at: number) => ((at * WIDTH) / (values.length - 1)).toFixed(1)
  const y = (value: number) => (BASE - (value * (BASE - TOP)) / top).toFixed(1)
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

export class Plots extends Section<Series> {
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

function figure(name: typeof PLOTS[number], series: Series) {
  const values = series[name]
  const of = (value: number) => t(`admin.plots.${name}.value`, { count: number(name === "renewal_p99_ms" ? Math.round(value * 10) / 10 : value) })
  const time = (at: number) => clock(new Date(series.minutes[at] ?? 0))
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

function lines(values: readonly (number | null)[], time: (at: number) => string) {
  const top = scaleTop(Math.max(0, ...values.filter((value) => value !== null)))
  const { line, area } = paths(values, top)
  const grid = [0, 0.5, 1].flatMap((part) => {
    const y = BASE - part * (BASE - TOP)
    return [svg("path", { class: "plot-grid", d: `M0 ${y}H${WIDTH}` }), words(360, y + 4, "end", number(part * top))]
  })
  const latest = values.at(-1) ?? null
  const end = latest === null ? [] : [svg("circle", { class: "run-done", cx: String(WIDTH), cy: String(BASE - (latest * (BASE - TOP)) / top), r: "2.5" })]
  const times = [[0, "start"], [30, "middle"], [59, "end"]] as const
  return [
    ...grid,
    svg("path", { class: "plot-area", d: area }),
    svg("path", { class: "plot-line", d: line }),
    ...end,
    ...times.map(([at, anchor]) => words((at * WIDTH) / 59, HEIGHT - 2, anchor, time(at))),
  ]
}

function words(x: number, y: number, anchor: string, text: string) {
  const element = svg("text", { class: "plot-tick", x: String(x), y: String(y), "text-anchor": anchor })
  element.textContent = text
  return element
}
