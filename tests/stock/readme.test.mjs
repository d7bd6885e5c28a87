// @ts-check
/** Runs the examples of the papers. `papers.test.mjs` compares the papers with the code. */
import assert from "node:assert/strict"
import { execFileSync, spawnSync } from "node:child_process"
import { randomBytes } from "node:crypto"
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { after, before, test } from "node:test"
import { fileURLToPath, pathToFileURL } from "node:url"

// @ts-expect-error -- it comes without types
import { WebSocket } from "ws"

import { Galley, binary } from "./galley.mjs"
import { blocks, papers, read, top } from "./papers.mjs"

const here = dirname(fileURLToPath(import.meta.url))

/** @type {Galley} */
let galley
/** @type {string} */
let folder
before(async () => {
  galley = await Galley.start({ GALLEY_AUTH__GUESTS: "false" })
  folder = mkdtempSync(join(tmpdir(), "galley-readme-"))
  symlinkSync(join(here, "../node_modules"), join(folder, "node_modules"))
  for (const code of blocks(read("README.md"), "js")) {
    const [, name] = /^\/\/ (\S+\.mjs)$/m.exec(code) ?? []
    assert.ok(name, "an example begins with its name")
    writeFileSync(join(folder, name), code)
  }
})
after(async () => {
  await galley.stop()
  rmSync(folder, { recursive: true, force: true })
})

test("the examples share a document, and two sessions with the stock client hold its seats", async () => {
  const secret = join(galley.folder, "data/secret")
  const env = { ...process.env, SECRET_FILE: secret, ORIGIN: galley.url }
  const said = execFileSync(process.execPath, ["share.mjs"], { cwd: folder, env, encoding: "utf8" })
  const { link, writer, reviewer } = JSON.parse(said)

  Object.assign(globalThis, { WebSocket })
  const { openSession } = await import(pathToFileURL(join(folder, "editor.mjs")).href)
  const origin = galley.url.replace("http", "ws")
  const seats = [["writer", writer], ["reviewer", reviewer]]
  const desk = seats.map(([role, token]) => openSession(origin, link, role, token))
  await Promise.all(desk.map(({ provider }) => new Promise((synced) => provider.once("sync", synced))))
  const [mine, theirs] = desk
  const seen = new Promise((changed) => theirs.text.observe(changed))
  mine.text.insert(mine.text.length, " 🙂")
  await seen
  assert.equal(theirs.text.toString(), "1. 지원동기\n\n저는 물류가 좋습니다. 🙂")
  assert.deepEqual(desk.map(({ editable }) => editable), [true, false])
  const [review = ""] = blocks(read("README.md"), "json")
  const path = `/api/share-links/${link}/reviews`
  const made = await galley.call("POST", path, JSON.parse(review), reviewer)
  assert.equal(made.anchor.quote, "물류가")
  // The first edit of a reviewer closes the socket, and the client does not reconnect.
  const closed = new Promise((ended) => theirs.provider.once("closed", ended))
  theirs.text.insert(0, "REV ")
  assert.equal((await closed).code, 4403)
  assert.equal(mine.text.toString(), "1. 지원동기\n\n저는 물류가 좋습니다. 🙂")
  for (const { provider } of desk) {
    provider.destroy()
    // The document's presence has a timer, which would keep node running.
    provider.doc.destroy()
  }
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
