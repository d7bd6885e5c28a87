// @ts-check
/** Runs the examples of the papers but for `config/EMBEDDING.md`, which needs a browser. `papers.test.mjs` compares the papers with the code. */
import assert from "node:assert/strict"
import { execFileSync, spawnSync } from "node:child_process"
import { randomBytes } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { after, before, test } from "node:test"
import { pathToFileURL } from "node:url"

import { binary } from "./galley.mjs"
import { blocks, papers, read, top } from "./papers.mjs"

/** @type {string} */
let folder
before(() => {
  folder = mkdtempSync(join(tmpdir(), "galley-readme-"))
  for (const code of blocks(read("README.md"), "js")) {
    const [, name] = /^\/\/ (\S+\.mjs)$/m.exec(code) ?? []
    assert.ok(name, "an example begins with its name")
    writeFileSync(join(folder, name), code)
  }
})
after(() => {
  rmSync(folder, { recursive: true, force: true })
})

test("the receiver of webhooks accepts the request of the README at its time only", async () => {
  const { verified } = await import(pathToFileURL(join(folder, "webhook.mjs")).href)
  const vector = /`(\w{16})`.*?`(\d{10})`.*?`({})`.*?`([0-9a-f]{64})`/s.exec(read("README.md")) ?? []
  const [, secret, time, body = "", v1] = vector
  const at = (/** @type {number} */ now) => verified(Buffer.from(body), `t=${time},v1=${v1}`, secret, now)
  assert.deepEqual(at(Number(time) + 300), {})
  assert.equal(at(Number(time) + 301), null)
  assert.equal(verified(Buffer.from(body), `t=${time},v1=${v1}`, secret), null)
})

/** The server accepts a settings file. @param {string} file @param {string[]} [flags] */
const accepts = (file, flags = []) => {
  const command = ["check-config", "--config", file, ...flags]
  const said = execFileSync(binary, command, { cwd: folder, encoding: "utf8" })
  assert.ok(said.includes("[locks]"), said)
}

/** `check-config` and the server reject settings. @param {string} settings @param {RegExp} line */
const refuses = (settings, line) => {
  writeFileSync(join(folder, "refused.toml"), settings)
  for (const command of ["check-config", "serve"]) {
    const ran = spawnSync(binary, [command, "--config", "refused.toml"], { cwd: folder, encoding: "utf8" })
    assert.equal(ran.status, 2, command)
    assert.match(ran.stderr, line)
  }
}

test("the server accepts the settings examples of the papers", () => {
  const examples = papers.flatMap((name) => blocks(read(name), "toml"))
  assert.ok(examples.length > 1)
  for (const [at, code] of examples.entries()) {
    const own = code.replace(/^secret = ".*?"/m, `secret = "${randomBytes(32).toString("hex")}"`)
    writeFileSync(join(folder, `${at}.toml`), own)
    if (own !== code) refuses(code, /notify\.webhooks\[0\]\.secret: must be .* no example of the manual/)
    // The examples show one section: the database is that of config/production.toml.
    accepts(`${at}.toml`, ["--database-url", "postgres://galley@db.internal/galley"])
  }
  assert.ok(read("config/OPERATIONS.md").includes("galley --config config/production.toml"))
  accepts(join(top, "config/production.toml"))
})
