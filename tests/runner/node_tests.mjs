// @ts-check
/**
 * Runs node's test files, several at once and the longest first, each in a process of its own.
 *
 *     node tests/runner/node_tests.mjs [--at-once COUNT] [--short] [--result FILE] [--failures FOLDER] FOLDER|FILE…
 *
 * With `--short` long tests take their shorter form (`long_tests.mjs`), and of a folder with `roads.mjs` the main roads run
 * alone; one that names no test of its file fails.
 *
 * A browser test file has a browser of its own: the windows of a browser share its clipboard, and its start takes 0.4 s
 * of the processor. Two files at once use 1.1 of two cores, as each waits for its servers; three leave little of them idle.
 */

import { setMaxListeners } from "node:events"
import { existsSync, readdirSync, statSync } from "node:fs"
import { basename, join, resolve } from "node:path"
import { run } from "node:test"
import { pathToFileURL } from "node:url"
import { parseArgs } from "node:util"

import { SHORT } from "./long_tests.mjs"
import { Results } from "./results.mjs"

/** A file that takes longer hangs: it ends, and the test that it was in fails by name. */
const FILE_MS_MAX = 900_000

/** The files that take longest. At the end of a run a long file runs alone. @type {readonly string[]} */
const LONGEST = ["axe", "talk", "fuzz", "states", "suggesting", "text_and_window", "editor", "partners", "margin", "find_print", "offers", "collaboration", "error_states", "clock"]

const { values, positionals } = parseArgs({
  options: {
    "at-once": { type: "string", default: "2" },
    short: { type: "boolean", default: false },
    result: { type: "string", default: "/dev/null" },
    failures: { type: "string", default: "failures" },
  },
  allowPositionals: true,
})
const stop = new AbortController()
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => stop.abort())
// Each file listens to it.
setMaxListeners(0, stop.signal)

/** @param {string} path */
const filesOf = (path) =>
  statSync(path).isDirectory() ? readdirSync(path).filter((name) => /\.test\.m?js$/.test(name)).sort().map((name) => join(path, name)) : [path]

const subjectOf = (/** @type {string} */ file) => basename(file).split(".")[0] ?? ""

/** @param {string} file */
function rank(file) {
  const at = LONGEST.indexOf(subjectOf(file))
  return at < 0 ? LONGEST.length : at
}

/**
 * @param {string} path @param {RegExp} [only] tests of that name
 * @returns {Promise<import("./results.mjs").Outcome[]>}
 */
function outcomes(path, only) {
  return new Promise((done, fail) => {
    if (stop.signal.aborted) return done([])
    /** @type {import("./results.mjs").Outcome[]} */
    const found = []
    let begun = basename(path)
    const take = (/** @type {"passed" | "failed"} */ state) => (/** @type {any} */ { name, file, skip, todo, details }) => {
      const { type, duration_ms: duration, error } = details
      const isOther = typeof skip === "string" && skip.includes("does not match pattern")
      if (type === "suite") return
      if (isOther) {
        results.left += 1
        return
      }
      const isSkipped = skip !== undefined || todo !== undefined
      const of = basename(file ?? name)
      const output = error ? `${name === path ? `after the begin of “${begun}”: ` : ""}${error.cause?.stack ?? error.stack ?? error}` : ""
      found.push({ name, of, state: isSkipped ? "skipped" : state, seconds: duration / 1_000, output })
      console.log(`${isSkipped ? "skipped" : state} ${of} ${name} (${(duration / 1_000).toFixed(1)} s)`)
    }
    // A handle that a test leaves open does not keep its file.
    const tests = run({ files: [path], signal: stop.signal, timeout: FILE_MS_MAX, forceExit: true, ...(only ? { testNamePatterns: [only] } : {}) })
    tests.on("test:dequeue", ({ name }) => {
      begun = name
    })
    tests.on("test:pass", take("passed"))
    tests.on("test:fail", take("failed"))
    for (const stream of /** @type {const} */ (["test:stdout", "test:stderr"])) tests.on(stream, ({ message }) => process.stdout.write(message))
    tests.on("error", fail)
    // The processes of a file that is killed hold its output open until the step ends them.
    const late = setTimeout(() => done(found), FILE_MS_MAX + 10_000)
    tests.on("end", () => {
      clearTimeout(late)
      done(found)
    })
    tests.resume()
  })
}

/** @param {string} words */
const escaped = (words) => words.replaceAll(/[\\^$.*+?()[\]{}|/]/g, "\\$&")

/** A pattern of the names that begin like one of these. @param {readonly string[]} starts */
const patternOf = (starts) => new RegExp(`^(?:${starts.map(escaped).join("|")})`, "u")

const list = join(resolve(positionals[0] ?? ""), "roads.mjs")
/** The beginnings of names, by file. @type {Readonly<Record<string, readonly string[]>> | null} */
const roads = values.short && existsSync(list) ? (await import(pathToFileURL(list).href)).ROADS : null
const all = positionals.flatMap(filesOf).map((path) => resolve(path))
const files = all.filter((path) => roads === null || subjectOf(path) in roads).sort((one, other) => rank(one) - rank(other))
const results = new Results(values.short)
results.leftFiles = all.length - files.length
if (values.short) Object.assign(process.env, SHORT)
// The test files import sources of the page.
process.env.NODE_OPTIONS = `--import=${new URL("typescript.mjs", import.meta.url).href}`
// For the pages of a failed test: `tests/browser/support.mjs`.
process.env.GALLEY_FAILURES = resolve(values.failures)
const waiting = [...files]
await Promise.all(Array.from({ length: Number(values["at-once"]) }, async () => {
  for (let path = waiting.shift(); path && !stop.signal.aborted; path = waiting.shift()) {
    const starts = roads?.[subjectOf(path)]
    for (const outcome of await outcomes(path, starts && patternOf(starts))) results.add(outcome)
  }
}))
for (const [subject, names] of Object.entries(roads ?? {})) {
  const isThere = (/** @type {string} */ start) => results.outcomes.some(({ name, of }) => subjectOf(of) === subject && name.startsWith(start))
  const output = "the road names no test of its file"
  for (const name of names) if (!isThere(name)) results.add({ name, of: "roads.mjs", state: "failed", seconds: 0, output })
}
process.env.GALLEY_TRACE = "1"
const { left } = results
await results.tryAgain(async ({ name, of }) => {
  const path = files.find((path) => basename(path) === of)
  if (path === undefined) return false
  // A file that fails outside of its tests has its path as its name.
  const found = await outcomes(path, path === name ? undefined : new RegExp(`^${escaped(name)}$`, "u"))
  return 0 < found.length && found.every(({ state }) => state === "passed")
})
results.left = left
results.write(values.result, values.failures)
