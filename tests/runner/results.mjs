// @ts-check
/**
 * The outcome of each test of a step, and the second look at a failed one: it runs again, alone, at most twice.
 *
 * A test that passes then is *unsteady*: the step passes, and the summary names it with its first message. A test that
 * fails three times is a failure, and so is an unsteady one under `GALLEY_STRICT=1`.
 */

import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"

import { SLOW } from "./long_tests.mjs"

/**
 * @typedef {object} Outcome of a test
 * @property {string} name
 * @property {string} of the file or the binary that has it
 * @property {"passed" | "failed" | "skipped"} state
 * @property {number} seconds
 * @property {string} [output] of a failed test: its message, and all that it printed
 */

/** Further attempts of a failed test. */
const AGAIN = 2
/** As many of the slowest tests are printed. */
const SLOWEST = 10
/** A test of a run without `--all` takes no longer, in seconds, or is in `SLOW`. */
const SECONDS_MAX = 10

export class Results {
  /** @type {Outcome[]} */
  outcomes = []
  /** @type {Outcome[]} those that failed and passed later, with the output of the failure */
  unsteady = []
  /** Tests that run with `--all` alone, and whole files of them, which are not counted by tests. */
  left = 0
  leftFiles = 0

  /** @param {boolean} isShort the run is one without `--all` */
  constructor(isShort) {
    this.isShort = isShort
  }

  /** @param {Outcome} outcome */
  add(outcome) {
    this.outcomes.push(outcome)
  }

  get failed() {
    return this.outcomes.filter(({ state }) => state === "failed")
  }

  /**
   * Runs the failed tests again.
   *
   * @param {(test: Outcome) => Promise<boolean>} passes runs one alone
   */
  async tryAgain(passes) {
    for (const test of this.failed) {
      for (let attempt = 1; attempt <= AGAIN && test.state === "failed"; attempt++) {
        console.log(`again (${attempt} of ${AGAIN}): ${test.of} ${test.name}`)
        if (!(await passes(test))) continue
        this.unsteady.push({ ...test })
        if (process.env.GALLEY_STRICT !== "1") test.state = "passed"
        else break
      }
    }
  }

  /** Under `GALLEY_STRICT=1` a test that makes a run without `--all` long is a failure. */
  boundSeconds() {
    if (!this.isShort || process.env.GALLEY_STRICT !== "1") return
    for (const test of this.outcomes) {
      if (test.state !== "passed" || test.seconds <= SECONDS_MAX || test.name in SLOW) continue
      Object.assign(test, { state: "failed", output: `it takes ${test.seconds.toFixed(1)} s without --all: tests/runner/long_tests.mjs` })
    }
  }

  /**
   * Prints the slowest tests and the failures, and writes for `tests/run`: a line `count PASSED FAILED SKIPPED`, a line
   * `left …` of what runs with `--all` alone, lines `folder COUNT NAME`, so that a dropped test is seen, and lines `failed …` and `unsteady …`. The output of each failure
   * gets a file of its own.
   *
   * @param {string} path @param {string} failures the folder of those files
   */
  write(path, failures) {
    this.boundSeconds()
    const slowest = this.outcomes.toSorted((one, other) => other.seconds - one.seconds).slice(0, SLOWEST)
    for (const { seconds, of, name } of slowest) console.log(`slow ${seconds.toFixed(1)} s  ${of} ${name}`)
    const count = (/** @type {Outcome["state"]} */ state) => this.outcomes.filter((one) => one.state === state).length
    const lines = [`count ${count("passed")} ${count("failed")} ${count("skipped")}`]
    const parts = [this.left && `${this.left} tests`, this.leftFiles && `${this.leftFiles} files`].filter(Boolean)
    if (0 < parts.length) lines.push(`left ${parts.join(" and ")}`)
    /** @type {Map<string, number>} */
    const folders = new Map()
    for (const { of, name } of this.outcomes) {
      const folder = of === "suite" ? `suite/${name.split("::")[0]}` : of
      if (!folder.includes(".test.")) folders.set(folder, (folders.get(folder) ?? 0) + 1)
    }
    for (const [folder, tests] of folders) lines.push(`folder ${String(tests).padStart(6)}  ${folder}`)
    for (const [word, tests] of /** @type {const} */ ([["failed", this.failed], ["unsteady", this.unsteady]])) {
      for (const { of, name, output = "" } of tests) {
        const file = join(failures, `${of}-${name}`.replaceAll(/[^\w가-힣.-]+/g, "_").slice(0, 120))
        mkdirSync(dirname(file), { recursive: true })
        writeFileSync(`${file}.log`, output)
        lines.push(`${word} ${of} ${name}: ${firstMessage(output)}`)
        if (word === "failed") console.log(`\n== ${of} ${name}\n${output}`)
      }
    }
    writeFileSync(path, `${lines.join("\n")}\n`)
    if (0 < count("failed")) process.exitCode = 1
  }
}

/** @param {string} output */
function firstMessage(output) {
  const [, message = output] = /panicked at [^\n]*\n(.*)/.exec(output) ?? []
  return message.trim().split("\n")[0]?.slice(0, 300) ?? ""
}
