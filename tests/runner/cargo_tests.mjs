// @ts-check
/**
 * Runs test binaries of cargo in two lanes. Each binary runs even if an earlier one fails.
 *
 *     node tests/runner/cargo_tests.mjs [--short] [--result FILE] [--failures FOLDER] NAME=BINARY…
 *
 * With `--short` long tests are left out or take their shorter form (`long_tests.mjs`).
 *
 * The library of the tests prints times as JSON alone, which a stable compiler calls unstable: `RUSTC_BOOTSTRAP` is set for
 * the run of the binaries, and no crate is compiled with it.
 */

import { execFileSync, spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { parseArgs } from "node:util"

import { LONG, SHORT, WAITING } from "./long_tests.mjs"
import { Results } from "./results.mjs"

const { values, positionals } = parseArgs({
  options: { short: { type: "boolean", default: false }, result: { type: "string", default: "/dev/null" }, failures: { type: "string", default: "failures" } },
  allowPositionals: true,
})

/**
 * @param {string} of the binary's name @param {string} path @param {string[]} arguments_
 * @returns {Promise<import("./results.mjs").Outcome[]>}
 */
async function outcomes(of, path, arguments_) {
  const words = ["-Z", "unstable-options", "--format", "json", "--report-time", ...arguments_]
  const child = spawn(path, words, { env: { ...process.env, ...(values.short ? SHORT : {}), RUSTC_BOOTSTRAP: "1" }, stdio: ["ignore", "pipe", "inherit"] })
  /** @type {Promise<number | null>} */
  const ended = new Promise((done) => child.once("close", done))
  /** @type {import("./results.mjs").Outcome[]} */
  const found = []
  const running = new Set()
  for await (const line of createInterface({ input: child.stdout })) {
    if (!line.startsWith("{ \"type\": \"test\"")) {
      // A process of a test printed it beside the library.
      if (!line.startsWith("{ \"type\": \"suite\"")) console.log(line)
      continue
    }
    const { name, event, exec_time: seconds = 0, stdout: output = "" } = JSON.parse(line)
    // A test of more than a minute is announced, and goes on.
    if (event === "timeout") continue
    if (event === "started") {
      running.add(name)
      continue
    }
    running.delete(name)
    const state = event === "ok" ? "passed" : event === "ignored" ? "skipped" : "failed"
    found.push({ name, of, state, seconds, output })
    console.log(`${state} ${of} ${name} (${seconds.toFixed(1)} s)`)
  }
  const status = await ended
  const isWhole = status === 0 || found.some(({ state }) => state === "failed")
  if (!isWhole) found.push({ name: "(the binary)", of, state: "failed", seconds: 0, output: `ended with ${status} in ${[...running].join(", ")}` })
  return found
}

const binaries = new Map(positionals.map((word) => /** @type {[string, string]} */ (word.split("="))))
if (binaries.size < positionals.length) throw new Error("two binaries have one name")
const results = new Results(values.short)

/** The names of the tests of a binary that run now. @param {string} of @param {string} path */
function namesOf(of, path) {
  const listed = execFileSync(path, ["--list", "--format", "terse"], { encoding: "utf8" }).split("\n")
  const all = listed.filter((line) => line.endsWith(": test")).map((line) => line.slice(0, -": test".length))
  if (!values.short) return all
  const long = LONG[of] ?? []
  const output = "the list of long tests names no test"
  for (const one of long) if (!all.some((name) => one.test(name))) results.add({ name: String(one), of: "long_tests.mjs", state: "failed", seconds: 0, output })
  const names = all.filter((name) => !long.some((one) => one.test(name)))
  results.left += all.length - names.length
  return names
}

/** The lanes run beside each other: of tests that compute, and of tests that wait. @type {[string, string, string[]][][]} */
const lanes = [[], []]
for (const [of, path] of binaries) {
  const names = namesOf(of, path)
  const waits = (/** @type {string} */ name) => of !== "suite" || WAITING.test(name)
  lanes[0]?.push([of, path, names.filter((name) => !waits(name))])
  lanes[1]?.push([of, path, names.filter(waits)])
}
await Promise.all(lanes.map(async (lane) => {
  for (const [of, path, names] of lane) {
    if (names.length === 0) continue
    for (const outcome of await outcomes(of, path, ["--exact", ...names])) results.add(outcome)
  }
}))
await results.tryAgain(async ({ name, of }) => {
  const path = binaries.get(of)
  if (path === undefined) return false
  const found = await outcomes(of, path, name.startsWith("(") ? [] : ["--exact", name])
  return 0 < found.length && found.every(({ state }) => state === "passed")
})
results.write(values.result, values.failures)
