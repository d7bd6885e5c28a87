// @ts-check
/** The committed bundle equals the built one. */

import assert from "node:assert/strict"
import { createHash } from "node:crypto"
import { readFileSync, readdirSync } from "node:fs"
import { test } from "node:test"

const folder = new URL("../../static/vendor/", import.meta.url)
const manifest = JSON.parse(readFileSync(new URL("manifest.json", folder), "utf8"))
const bundle = readFileSync(new URL(manifest.bundle, folder))

test("the committed bundle is the one its manifest names", () => {
  const hash = createHash("sha256").update(bundle).digest("hex")
  assert.equal(hash, manifest.sha256)
  assert.equal(bundle.length, manifest.bytes)
  assert.equal(manifest.bundle, `editor-${hash.slice(0, 12)}.js`)
})

test("there is one bundle, and the page imports that one", () => {
  const bundles = readdirSync(folder).filter((file) => /^editor-.*\.js$/.test(file))
  assert.deepEqual(bundles, [manifest.bundle])
  const module = readFileSync(new URL("../js/lib/vendor.js", folder), "utf8")
  assert.ok(module.includes(`"../../vendor/${manifest.bundle}"`))
})

test("the bundle holds the versions that are pinned", () => {
  const pinned = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"))
  const wanted = /** @type {Record<string, string>} */ (pinned.devDependencies)
  for (const [name, version] of Object.entries(wanted)) {
    if (name in manifest.packages) assert.equal(manifest.packages[name], version, name)
  }
  const licences = readFileSync(new URL("LICENSES.txt", folder), "utf8")
  for (const name of Object.keys(manifest.packages)) assert.ok(licences.includes(`${name} `), name)
})

test("the bundle requests nothing from another origin", () => {
  assert.doesNotMatch(bundle.toString("utf8"), /\b(?:import\(|eval\(|new Function\()/)
})
