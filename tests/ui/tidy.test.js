// @ts-check
/** The mechanical rules of the page's code. */

import assert from "node:assert/strict"
import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, normalize } from "node:path"
import { test } from "node:test"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../../static/", import.meta.url))
const LINES_MAX = 400
const FOLDERS = ["admin", "desk", "history", "identity", "lib", "notify", "reviews", "seat", "sections", "start", "suggest", "unsaved"]
/** The scripts that are no modules: one runs before the first paint, one without a page. */
const PRE_PAINT = "js/lib/pre_paint.ts"
const SERVICE_WORKER = "service_worker.js"

/** @param {string} end */
const files = (end) =>
  readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(end) && !file.startsWith("vendor"))
    .map((file) => ({ file, text: readFileSync(join(root, file), "utf8") }))

const isBuilt = (/** @type {string} */ file) => file.endsWith(".d.ts") || file === "client/galley.js"
const scripts = () => [...files(".js"), ...files(".ts")].filter(({ file }) => !isBuilt(file))

test("every file is one subject: typed, introduced and short", () => {
  for (const { file, text } of scripts()) {
    assert.match(text, file.endsWith(".ts") ? /^\/\*\*/ : /^\/\/ @ts-check\n\/\*\*/, `${file} says what it is`)
    assert.ok(text.split("\n").length <= LINES_MAX, `${file} is too long`)
  }
  for (const { file, text } of files(".css")) {
    assert.match(text, /^\/\*/, `${file} says what it is`)
    assert.ok(text.split("\n").length <= LINES_MAX, `${file} is too long`)
  }
})

test("text of users never becomes markup, and the content security policy has nothing to forbid", () => {
  for (const { file, text } of scripts()) {
    assert.doesNotMatch(text, /innerHTML|outerHTML|insertAdjacentHTML|document\.write/, file)
    assert.doesNotMatch(text, /setAttribute\("style"|\beval\(|new Function/, file)
  }
  for (const { file, text } of files(".html")) {
    assert.doesNotMatch(text, /<script(?![^>]*\ssrc=)|<style|\sstyle=|\son[a-z]+=/, file)
    assert.doesNotMatch(text, /(?:src|href)="(?:https?:)?\/\//, `${file} loads from another host`)
  }
  for (const { file, text } of files(".css")) assert.doesNotMatch(text, /@import|url\(/, file)
})

test("every address in the markup names an existing file", () => {
  for (const { file, text } of files(".html")) {
    for (const [, path] of text.matchAll(/(?:src|href)="\/([^"#]+\.[a-z]+)"/g)) {
      assert.doesNotThrow(() => readFileSync(join(root, path ?? "")), `${file}: ${path}`)
    }
  }
})

// A property with an unknown value is discarded as a whole: one such padding left a page without margins.
test("each page defines every value that its style sheets use without a fallback", () => {
  const code = scripts().map(({ text }) => text).join("\n")
  for (const { file, text } of files(".html")) {
    const paths = [...text.matchAll(/rel="stylesheet" href="\/(css\/[^"]+)"/g)].map(([, path]) => path ?? "")
    const sheets = paths.map((path) => readFileSync(join(root, path), "utf8")).join("\n")
    for (const [, name] of sheets.matchAll(/var\((--[\w-]+)\)/g)) {
      const isDefined = new RegExp(`^\\s*${name}:`, "m").test(sheets) || code.includes(`"${name}"`)
      assert.ok(isDefined, `${file}: ${name}`)
    }
  }
})

/** @returns {Map<string, string[]>} what each module imports, but for types */
function imports() {
  const modules = scripts().map(({ file, text }) => {
    const found = [...text.matchAll(/^(?:import|export)\b(?! (?:type|interface)\b)[^"]*?from "(\.[^"]+)"|\bawait import\("(\.[^"]+)"\)/gms)]
    const paths = found.map(([, path, later]) => normalize(join(dirname(file), path ?? later ?? "")))
    return /** @type {const} */ ([normalize(file), paths])
  })
  return new Map(modules)
}

test("modules import in one direction", () => {
  const graph = imports()
  /** @param {string} file @param {string[]} way */
  const walk = (file, way) => {
    assert.ok(!way.includes(file), `a circle: ${[...way, file].join(" → ")}`)
    for (const next of graph.get(file) ?? []) walk(next, [...way, file])
  }
  for (const file of graph.keys()) walk(file, [])
  // Of `suggest` the view imports `sync`, and that the pure model.
  const level = (/** @type {string} */ file) => ["model", "sync", "view"].indexOf(/^js.suggest.(\w+)./.exec(file)?.[1] ?? "")
  for (const [file, needs] of graph) {
    if (level(file) !== -1) assert.deepEqual(needs.filter((next) => level(file) < level(next)), [], file)
  }
})

/** The entry module of a page. @param {string} page */
const entryOf = (page) => /<script type="module" src="\/([^"]+)">/.exec(page)?.[1] ?? ""

/** The modules that `entry` imports, directly or not. @param {string} entry */
function needsOf(entry) {
  const graph = imports()
  const needs = new Set([entry])
  for (const module of needs) for (const next of graph.get(module) ?? []) needs.add(next)
  needs.delete(entry)
  return needs
}

test("the modules lie in twelve folders, a page begins in a main.ts, and every module belongs to a page or to the client package", () => {
  const needed = needsOf("client/session.ts").add("client/session.ts")
  const modules = scripts().map(({ file }) => normalize(file)).filter((file) => file !== SERVICE_WORKER && !needed.has(file))
  const folders = new Set(modules.map((file) => file.split("/")[1] ?? ""))
  assert.deepEqual([...folders].sort(), [...FOLDERS, "store.ts"].sort())
  const reached = new Set([PRE_PAINT])
  for (const { file, text } of files(".html")) {
    const entry = entryOf(text)
    // The page of an unknown address has no module, and that of the API only a bundle.
    if (entry === "" && ["docs.html", "not_found.html"].includes(file)) continue
    assert.match(entry, /^js\/[a-z]+\/main\.ts$/, file)
    for (const module of needsOf(entry).add(entry)) reached.add(module)
  }
  assert.deepEqual(modules.filter((file) => !reached.has(file)), [], "no page imports it")
})
