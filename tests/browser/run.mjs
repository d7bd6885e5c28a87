// @ts-check
/**
 * Runs the test files of this folder, several at once and the longest first, each in a process of its own.
 *
 *     node tests/browser/run.mjs [--tap FILE] [--at-once COUNT] [TEST FILE…]
 *
 * The runner prints the results, writes them as TAP to a file, and fails if a test fails. A file has a browser of its
 * own: the windows of a browser share its clipboard, and its start takes 0.4 s of the processor.
 */

import { setMaxListeners } from "node:events"
import { createWriteStream, readdirSync } from "node:fs"
import { dirname, join } from "node:path"
import { run } from "node:test"
import { spec as Spec, tap } from "node:test/reporters"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"

/** Two keep two cores busy. With four the load was nine, and pages lost races against the tests. */
const FILES_AT_ONCE = "2"

/** The files that take longest. At the end of a run a long file runs alone. @type {readonly string[]} */
const LONGEST = ["axe", "suggesting", "margin", "states", "decisions", "deciding", "partners", "bin", "keyboard_people", "unsaved", "collaboration", "offers"]

const here = dirname(fileURLToPath(import.meta.url))

/** Every test file of the folder, the longest first. */
function testFiles() {
  const names = readdirSync(here).filter((name) => name.endsWith(".test.mjs")).sort()
  const long = LONGEST.map((name) => `${name}.test.mjs`)
  return [...long, ...names.filter((name) => !long.includes(name))].map((name) => join(here, name))
}

const { values, positionals } = parseArgs({
  options: { tap: { type: "string" }, "at-once": { type: "string", default: FILES_AT_ONCE } },
  allowPositionals: true,
})
const files = positionals.length === 0 ? testFiles() : positionals
const stop = new AbortController()
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => stop.abort())
// Each file listens to it.
setMaxListeners(0, stop.signal)
const tests = run({ files, concurrency: Number(values["at-once"]), signal: stop.signal })
tests.on("test:fail", () => (process.exitCode = 1))
tests.compose(new Spec()).pipe(process.stdout)
if (values.tap) tests.compose(tap).pipe(createWriteStream(values.tap))
