// @ts-check
/** Runs the tools of other products, at the versions of `package-lock.json`, over `/openapi.json`. */
import assert from "node:assert/strict"
import { execFile } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { after, before, test } from "node:test"
import { promisify } from "node:util"

import { openapi, top } from "./papers.mjs"

/** @type {string} */
let folder
/** @type {string} */
let document
before(() => {
  folder = mkdtempSync(join(tmpdir(), "galley-openapi-"))
  document = join(folder, "openapi.json")
  writeFileSync(document, JSON.stringify(openapi(), null, 2))
})
after(() => rmSync(folder, { recursive: true, force: true }))

/** The output of a package's command; rejects if it fails. @param {string} script @param {string[]} words */
const run = async (script, ...words) => {
  const path = join(top, "tests/node_modules", script)
  // No tool reports its use, or looks for a newer version of itself.
  const quiet = { REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" }
  const options = { cwd: folder, env: { ...process.env, ...quiet } }
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [path, ...words], options)
  return stdout + stderr
}

/** @type {Record<string, { operationId: string }>[]} */
const paths = Object.values(openapi().paths)
const operations = paths.flatMap((methods) => Object.values(methods).map(({ operationId }) => operationId))

test("openapi-typescript writes the type of every operation", async () => {
  await run("openapi-typescript/bin/cli.js", document, "--output", "types.ts")
  const types = readFileSync(join(folder, "types.ts"), "utf8")
  assert.ok(operations.length > 50)
  for (const name of operations) assert.match(types, new RegExp(`^    ${name}: {$`, "m"))
})

test("redocly lint finds no error, and no example that contradicts its schema", async () => {
  const said = await run("@redocly/cli/bin/cli.js", "lint", "--format=stylish", document)
  assert.match(said, /validated in/)
  assert.doesNotMatch(said, / error |invalid-.*-examples?/)
})

test("@hey-api/openapi-ts writes a client with a function for every operation", async () => {
  const words = ["--input", document, "--output", "client", "--no-log-file"]
  await run("@hey-api/openapi-ts/bin/run.js", ...words)
  const client = readFileSync(join(folder, "client/sdk.gen.ts"), "utf8")
  for (const name of operations) assert.ok(client.includes(`export const ${name} = `), name)
})
