/** The jobs of all servers: whether one runs, when the next run is due, and the last runs. Owns one section. */

import { byId, el, isDrawn, svg } from "../lib/dom.ts"
import { clock, i18n, number, t, when } from "../lib/i18n.ts"
import { jobs as readJobs, type Job, type JobRun } from "../lib/operations_api.ts"
import { now } from "../lib/server_clock.ts"
import { Section } from "./section.ts"

const HEADS = [
  "admin.jobs.started",
  "admin.jobs.duration",
  "admin.jobs.outcome",
  "admin.jobs.counts",
  "admin.node",
] as const

/** A length of time to some digits. */
export function seconds(ms: number) {
  const digits = ms < 1_000 ? 2 : ms < 10_000 ? 1 : 0
  const value = new Intl.NumberFormat(i18n.language, { minimumFractionDigits: digits, maximumFractionDigits: digits })
  return t("admin.seconds", { count: value.format(Math.max(0, ms) / 1_000) })
}

/** The word for a value of a server, or the value: a newer server may have others. */
const wordOf = (name: string, value: string) => i18n.sentences[name] ?? value

/** The effect of a run: each number with its name, in the order of the dictionary. */
export function countsSentence(counts: Record<string, number>) {
  const names = Object.keys(i18n.sentences)
  const order = (name: string) => names.indexOf(`admin.jobs.count.${name}`) >>> 0
  const parts = Object.entries(counts)
    .filter(([, count]) => count !== 0)
    .sort(([a], [b]) => order(a) - order(b))
    .map(([name, count]) => `${wordOf(`admin.jobs.count.${name}`, name)} ${number(count)}`)
  return parts.length === 0 ? t("admin.jobs.counts.none") : parts.join(", ")
}

/** Whether it runs, and when it runs next. */
export function jobSentence({ running, next_at: next, estimate_ms: estimate }: Job) {
  const now = running === null
    ? t("admin.jobs.next", { time: clock(new Date(next), { seconds: true }) })
    : t("admin.jobs.running", { node: running.node, time: clock(new Date(running.since), { seconds: true }) })
  return `${now} ${t("admin.jobs.estimate", { long: seconds(estimate) })}`
}

/** A state as a shape beside its word: what is wrong has a colour, too. */
export function stateSign(state: string) {
  return el("span", { class: "state", "data-state": state, "aria-hidden": "true" })
}

/**
 * Runs of one server that follow each other with the same outcome and effect, as one.
 *
 * @param runs the latest first
 */
export function foldRuns(runs: readonly JobRun[]) {
  const folded: JobRun[][] = []
  const keyOf = ({ node, outcome, counts }: JobRun) => JSON.stringify([node, outcome, counts])
  for (const run of runs) {
    const last = folded.at(-1)
    if (last?.[0] && run.ended_at !== null && keyOf(last[0]) === keyOf(run)) last.push(run)
    else folded.push([run])
  }
  return folded
}

export class JobsSection extends Section<{ jobs: Job[] }> {
  constructor() {
    super("admin.jobs.failed", readJobs)
  }

  draw() {
    byId("jobs").hidden = this.found === null && this.why() === ""
    if (isDrawn(this, this.found, this.why())) return
    const error = this.why() === "" ? [] : [el("p", { class: "form-error", text: this.why() })]
    const focused = document.activeElement?.id ?? ""
    byId("jobs-list").replaceChildren(...error, ...(this.found?.jobs ?? []).map((job) => this.#job(job)))
    // The frame of a table scrolls by keyboard.
    if (focused.startsWith("job-")) document.getElementById(focused)?.focus()
  }

  #job(job: Job) {
    const name = wordOf(`admin.job.${job.job}`, job.job)
    const heads = HEADS.map((head) => el("th", { scope: "col", class: head === "admin.jobs.duration" ? "number" : "", text: t(head) }))
    const caption = el("caption", { class: "hidden", text: t("admin.jobs.runs", { name }) })
    const table = el("table", {}, caption, el("thead", {}, el("tr", {}, ...heads)), el("tbody", {}, ...foldRuns(job.last_runs).map(runRow)))
    const frame = el("div", { id: `job-${job.job}`, class: "table-frame", role: "region", "aria-label": t("admin.jobs.runs", { name }), tabindex: "0" }, table)
    const runs = job.last_runs.length === 0 ? [el("p", { class: "quiet", text: t("admin.jobs.none") })] : [sparkline(job.last_runs), frame]
    return el("section", {}, el("h3", { text: name }), el("p", { class: "job-now", text: jobSentence(job) }), ...runs)
  }
}

/** The runs at one look, the latest at the right; the table beside it says the same. */
function sparkline(runs: readonly JobRun[]) {
  const effects = [...runs].reverse().map(({ outcome, counts }) => ({ outcome, effect: Object.values(counts).reduce((sum, count) => sum + count, 0) }))
  const most = Math.max(1, ...effects.map(({ effect }) => effect))
  const marks = effects.map(({ outcome, effect }, at) => {
    const x = at * 7
    if (outcome !== "done" && outcome !== "running") return svg("path", { class: "run-bad", d: `M${x} 16l5 5m0-5l-5 5` })
    const height = effect === 0 ? 2 : 4 + (16 * effect) / most
    return svg("rect", { class: effect === 0 ? "run-idle" : "run-done", x: `${x}`, y: `${22 - height}`, width: "5", height: `${height}`, rx: "1" })
  })
  return svg("svg", { class: "runs", viewBox: `0 0 ${runs.length * 7} 24`, width: `${runs.length * 7}`, height: "24", "aria-hidden": "true" }, ...marks)
}

/** Runs of one minute differ by their seconds. */
function momentOf(start: string) {
  const date = new Date(start)
  return date.toDateString() === new Date(now()).toDateString() ? clock(date, { seconds: true }) : when(date)
}

/** @param runs equal ones, the latest first */
function runRow(runs: JobRun[]) {
  const [{ started_at: start, ended_at: end, node, outcome, counts }] = runs as [JobRun]
  const duration = end === null ? "–" : seconds(Date.parse(end) - Date.parse(start))
  const first = runs.at(-1)?.started_at ?? start
  const times = 1 < runs.length ? `${number(runs.length)} × ` : ""
  return el(
    "tr",
    {},
    el("th", { scope: "row", text: first === start ? momentOf(start) : `${momentOf(first)} – ${momentOf(start)}` }),
    el("td", { class: "number", text: duration }),
    el("td", {}, stateSign(outcome), wordOf(`admin.jobs.outcome.${outcome}`, outcome)),
    el("td", { class: "counts", text: times + countsSentence(counts) }),
    el("td", { class: "id", title: node, text: node }),
  )
}
