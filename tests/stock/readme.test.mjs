// @ts-check
/** Runs the examples of the papers. `papers.test.mjs` compares the papers with the code. */
import assert from "node:assert/strict"
import { execFileSync } from "node:child_process"
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

/** The server accepts a settings file. @param {string} file @param {string[]} [flags] */
const accepts = (file, flags = []) => {
  const command = ["check-config", "--config", file, ...flags]
  const said = execFileSync(binary, command, { cwd: folder, encoding: "utf8" })
  assert.ok(said.includes("[locks]"), said)
}

test("the server accepts the settings examples of the papers", () => {
  const examples = papers.flatMap((name) => blocks(read(name), "toml"))
  assert.ok(examples.length > 1)
  for (const [at, code] of examples.entries()) {
    writeFileSync(join(folder, `${at}.toml`), code)
    // The examples show one section: the database is that of config/production.toml.
    accepts(`${at}.toml`, ["--database-url", "postgres://galley@db.internal/galley"])
  }
  assert.ok(read("config/OPERATIONS.md").includes("galley --config config/production.toml"))
  accepts(join(top, "config/production.toml"))
})
