// @ts-check
/** Runs the README's examples and compares its settings with the code, in both languages. */
import assert from "node:assert/strict"
import { execFileSync } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { after, before, test } from "node:test"
import { fileURLToPath, pathToFileURL } from "node:url"

// @ts-expect-error -- it comes without types
import { WebSocket } from "ws"

import { Galley } from "./galley.mjs"

const here = dirname(fileURLToPath(import.meta.url))
const top = join(here, "../..")
const languages = ["README.md", "README.ko.md"]

/** @param {string} name */
const read = (name) => readFileSync(join(top, name), "utf8")

/** The fenced blocks of a page. @param {string} page @param {string} [kind] */
const blocks = (page, kind = "\\w+") =>
  [...page.matchAll(new RegExp(`^\`\`\`${kind}\\n(.*?)^\`\`\`$`, "gms"))].map(([, code]) => code ?? "")

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

test("the examples share a document, and two users acquire seats with the stock client", async () => {
  const secret = join(galley.folder, "data/secret")
  const env = { ...process.env, SECRET_FILE: secret, ORIGIN: galley.url }
  const said = execFileSync(process.execPath, ["share.mjs"], { cwd: folder, env, encoding: "utf8" })
  const { link, writer, reviewer } = JSON.parse(said)

  Object.assign(globalThis, { WebSocket })
  const { sit } = await import(pathToFileURL(join(folder, "editor.mjs")).href)
  const origin = galley.url.replace("http", "ws")
  const desk = [sit(origin, link, "writer", writer), sit(origin, link, "reviewer", reviewer)]
  await Promise.all(desk.map(({ provider }) => new Promise((synced) => provider.once("sync", synced))))
  const [mine, theirs] = desk
  const seen = new Promise((changed) => theirs.text.observe(changed))
  mine.text.insert(mine.text.length, " 🙂")
  await seen
  assert.equal(theirs.text.toString(), "1. 지원동기\n\n저는 물류가 좋습니다. 🙂")
  assert.deepEqual(desk.map(({ editable }) => editable), [true, false])
  // The server closes an editor that ignores that after its first edit, and the client stays closed.
  const closed = new Promise((ended) => theirs.provider.once("closed", ended))
  theirs.text.insert(0, "REV ")
  assert.equal((await closed).code, 4403)
  assert.equal(mine.text.toString(), "1. 지원동기\n\n저는 물류가 좋습니다. 🙂")
  for (const { provider } of desk) {
    provider.destroy()
    // Its presence has a timer of its own, which would keep node running.
    provider.doc.destroy()
  }
})

test("both languages show the same code", () => {
  const [english, korean] = languages.map((name) => blocks(read(name)))
  assert.deepEqual(korean, english)
})

for (const name of languages) {
  test(`${name} has every setting with its default`, () => {
    let section = ""
    /** @type {Record<string, string>} */
    const wanted = {}
    for (const line of read("config/default.toml").split("\n")) {
      section = /^\[(\w+)\]$/.exec(line)?.[1] ?? section
      const [, set, key, value] = /^(# )?([a-z_]+) = (.+)$/.exec(line) ?? []
      if (key && value) wanted[`${section}.${key}`] = set ? "" : value
    }
    assert.ok(Object.keys(wanted).length > 20)
    /** @type {Record<string, string>} */
    const told = {}
    const settings = read(name).split(/^## /m).find((part) => part.includes("`server.listen`"))
    const rows = (settings ?? "").matchAll(/^\| ((?:`[a-z]+\.[a-z_]+`(?:, )?)+) \| (?:`(.+?)`|[^`|]+) \|/gm)
    for (const [, keys, value] of rows) {
      for (const [, key] of keys?.matchAll(/`(.+?)`/g) ?? []) told[key ?? ""] = value ?? ""
    }
    assert.deepEqual(told, wanted)
  })

  test(`${name} links to what is there`, () => {
    for (const [, target] of read(name).matchAll(/\]\(([^)#:]+)\)/g)) {
      assert.ok(existsSync(join(top, target ?? "")), target)
    }
  })
}
