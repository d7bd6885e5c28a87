// @ts-check
/** A developer's server of the sources (`static/vendor/watch.mjs`), before a galley. */

import assert from "node:assert/strict"
import { spawn } from "node:child_process"
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { test } from "node:test"
import { fileURLToPath } from "node:url"

// @ts-expect-error -- it comes without types
import { WebSocket } from "ws"

import { Galley } from "./galley.mjs"

const top = fileURLToPath(new URL("../..", import.meta.url))

test("a reload shows a changed source, and the rest is the server's", async (t) => {
  const galley = await Galley.start()
  t.after(() => galley.stop())
  const folder = mkdtempSync(join(tmpdir(), "galley-watch-"))
  t.after(() => rmSync(folder, { recursive: true }))
  cpSync(join(top, "static"), join(folder, "static"), { recursive: true })
  symlinkSync(join(top, "tests"), join(folder, "tests"))
  const watching = spawn(process.execPath, [join(folder, "static/vendor/build.mjs"), "--watch", galley.url, "0"], { stdio: ["ignore", "pipe", "inherit"] })
  t.after(() => watching.kill())
  const url = await address(watching.stdout)

  const desk = await galley.desk("a text")
  const bundles = async () => {
    const page = await fetch(`${url}/d/${desk.document}`)
    const html = await page.text()
    const nonce = /nonce-([\w+/=-]+)/.exec(page.headers.get("content-security-policy") ?? "")?.[1]
    assert.ok(nonce && html.includes(nonce), html)
    const paths = [...html.matchAll(/(?:src|href)='(\/vendor\/[^']+)'/g)].map(([, path]) => path ?? "")
    return (await Promise.all(paths.map(async (path) => (await fetch(url + path)).text()))).join("\n")
  }
  assert.doesNotMatch(await bundles(), /--watched/)
  const sheet = join(folder, "static/css/desk.css")
  writeFileSync(sheet, `${readFileSync(sheet, "utf8")}\n:root { --watched: 1px; }\n`)
  // The watcher of the file system reports a change a moment later.
  while (!(await bundles()).includes("--watched")) continue

  const guest = await fetch(`${url}/api/auth/guest`, { method: "POST", headers: { "content-type": "application/json", origin: url }, body: '{ "name": "Kim" }' })
  assert.equal(guest.status, 201, await guest.text())
  const socket = new WebSocket(`${url.replace("http", "ws")}/ws/share-links/${desk.link}/writer`, ["galley", `galley.token.${desk.writer}`], { origin: url })
  t.after(() => socket.terminate())
  await new Promise((done, fail) => socket.once("message", done).once("error", fail).once("close", fail))
})

/** @param {import("node:stream").Readable} stdout */
async function address(stdout) {
  for await (const line of createInterface({ input: stdout })) {
    const url = /http:\/\/[^\s/]+/.exec(line)?.[0]
    if (url) return url
  }
  throw new Error("it said nothing of an address")
}
