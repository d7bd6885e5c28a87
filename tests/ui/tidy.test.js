// @ts-check
/** The rules of the page's code that a machine can hold. */

import assert from "node:assert/strict"
import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, normalize } from "node:path"
import { test } from "node:test"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../../static/", import.meta.url))
const LINES_MAX = 400

/** @param {string} end */
const files = (end) =>
  readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(end) && !file.startsWith("vendor"))
    .map((file) => ({ file, text: readFileSync(join(root, file), "utf8") }))

test("every file is one subject: typed, introduced and short", () => {
  for (const { file, text } of files(".js")) {
    assert.match(text, /^\/\/ @ts-check\n\/\*\*/, `${file} begins with its type check and says what it is`)
    assert.ok(text.split("\n").length <= LINES_MAX, `${file} is too long`)
  }
  for (const { file, text } of files(".css")) {
    assert.match(text, /^\/\*/, `${file} says what it is`)
    assert.ok(text.split("\n").length <= LINES_MAX, `${file} is too long`)
  }
})

test("text from people never becomes markup, and the content security policy has nothing to forbid", () => {
  for (const { file, text } of files(".js")) {
    assert.doesNotMatch(text, /innerHTML|outerHTML|insertAdjacentHTML|document\.write/, file)
    assert.doesNotMatch(text, /setAttribute\("style"|\beval\(|new Function/, file)
  }
  for (const { file, text } of files(".html")) {
    assert.doesNotMatch(text, /<script(?![^>]*\ssrc=)|<style|\sstyle=|\son[a-z]+=/, file)
    assert.doesNotMatch(text, /(?:src|href)="(?:https?:)?\/\//, `${file} loads from another host`)
  }
  for (const { file, text } of files(".css")) assert.doesNotMatch(text, /@import|url\(/, file)
})

test("what an address in the markup names is there", () => {
  for (const { file, text } of files(".html")) {
    for (const [, path] of text.matchAll(/(?:src|href)="\/([^"#]+\.[a-z]+)"/g)) {
      assert.doesNotThrow(() => readFileSync(join(root, path ?? "")), `${file}: ${path}`)
    }
  }
})

/** @returns {Map<string, string[]>} what each module imports */
function imports() {
  const modules = files(".js").map(({ file, text }) => {
    const found = [...text.matchAll(/^(?:import|export)\b[^"]*?from "(\.[^"]+)"/gms)]
    const paths = found.map(([, path]) => normalize(join(dirname(file), path ?? "")))
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
})

test("a page names every module that it needs, so that none waits for another to be read", () => {
  const graph = imports()
  for (const { file, text } of files(".html")) {
    const [, first = ""] = /<script type="module" src="\/([^"]+)">/.exec(text) ?? []
    const needs = new Set([first])
    for (const module of needs) for (const next of graph.get(module) ?? []) needs.add(next)
    needs.delete(first)
    const named = [...text.matchAll(/<link rel="modulepreload" href="\/([^"]+)">/g)].map(([, path]) => path)
    assert.deepEqual(named.toSorted(), [...needs].toSorted(), file)
  }
})
