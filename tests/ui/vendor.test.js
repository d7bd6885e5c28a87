// @ts-check
/** The committed bundles are those of their manifest, with the pinned packages. */

import assert from "node:assert/strict"
import { readFileSync, readdirSync } from "node:fs"
import { test } from "node:test"

const folder = new URL("../../static/vendor/", import.meta.url)
const read = (/** @type {string} */ name) => readFileSync(new URL(name, folder), "utf8")
/** @type {{ bytes: Record<string, number>, pages: Record<string, string>, packages: Record<string, string> }} */
const manifest = JSON.parse(read("manifest.json"))

test("the bundles are those that the manifest names", () => {
  const bundles = readdirSync(folder).filter((file) => file.includes("-"))
  assert.deepEqual(bundles.sort(), Object.keys(manifest.bytes).sort())
  for (const name of bundles) assert.equal(Buffer.byteLength(read(name)), manifest.bytes[name], name)
})

test("a page has one script and one style sheet, and the desk alone has the editor", () => {
  for (const [page, tags] of Object.entries(manifest.pages)) {
    assert.equal([...tags.matchAll(/rel='stylesheet'/g)].length, 1, page)
    assert.equal([...tags.matchAll(/type='module'/g)].length, page === "not_found.html" ? 0 : 1, page)
    const scripts = [...tags.matchAll(/\/vendor\/([\w-]+\.js)/g)].map(([, name = ""]) => read(name))
    assert.equal(scripts.some((script) => script.includes("cm-content")), page === "editor.html", page)
  }
})

test("the bundles hold the versions that are pinned", () => {
  const pinned = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"))
  const wanted = /** @type {Record<string, string>} */ (pinned.devDependencies)
  for (const [name, version] of Object.entries(wanted)) {
    if (name in manifest.packages) assert.equal(manifest.packages[name], version, name)
  }
  for (const name of Object.keys(manifest.packages)) assert.ok(read("LICENSES.txt").includes(`${name} `), name)
})

test("the bundles request nothing from another origin", () => {
  for (const name of Object.keys(manifest.bytes)) assert.doesNotMatch(read(name), /\bimport\((?!"\.\/)|\beval\(|\bnew Function\(/, name)
})
