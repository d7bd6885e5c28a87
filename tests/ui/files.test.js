// @ts-check
/** Documents as files: what the page knows of the server's formats, names and bounds. */

import assert from "node:assert/strict"
import { readFileSync } from "node:fs"
import { test } from "node:test"

import { FORMATS, IMPORT_BYTES_MAX, importFile, nameIn, pauseIn, refusalOf } from "../../static/js/lib/files.ts"

/** @param {string} path */
const source = (path) => readFileSync(new URL(`../../src/${path}`, import.meta.url), "utf8")

test("the page offers each format of the server, and its bound of an import is the server's", () => {
  const [, formats = ""] = /pub enum ExportFormat \{(.*?)^\}/ms.exec(source("domain/export.rs")) ?? []
  const variants = formats.matchAll(/(?:serialize = "(\w+)"\)\]\s+)?\b([A-Z][a-z]+),\n/g)
  const names = [...variants].map(([, name, variant = ""]) => name ?? variant.toLowerCase())
  assert.deepEqual([...FORMATS].sort(), names.sort())
  const [, factors = ""] = /IMPORT_BYTES_MAX: usize = ([\d* ]+);/.exec(source("files/import/mod.rs")) ?? []
  const bound = factors.split("*").reduce((product, factor) => product * Number(factor), 1)
  assert.equal(IMPORT_BYTES_MAX, bound)
})

test("a file is refused by its name or its length before it is sent", () => {
  for (const name of ["a.docx", "글.MD", "x.y.txt", "a.markdown"]) assert.equal(refusalOf({ name, size: IMPORT_BYTES_MAX }), null, name)
  for (const name of ["a.doc", "a.hwp", "docx", "folder", "a.docx.exe"]) assert.equal(refusalOf({ name, size: 1 })?.kind, "import-format", name)
  assert.equal(refusalOf({ name: "a.docx", size: IMPORT_BYTES_MAX + 1 })?.kind, "import-too-large")
})

test("the name of a file comes from its header, and a broken header names none", () => {
  assert.equal(nameIn("attachment; filename=\"document.docx\"; filename*=UTF-8''%EA%B8%80%20_1_.docx"), "글 _1_.docx")
  for (const header of ["", "attachment", "attachment; filename*=UTF-8''%E"]) assert.equal(nameIn(header), null, header)
})

test("the pause before the next request is the server's, within bounds", () => {
  assert.equal(pauseIn("1"), 1_000)
  for (const header of [null, "", "0", "-3", "Mon, 23 Nov 2026 15:00:00 GMT"]) assert.equal(pauseIn(header), 200)
  assert.equal(pauseIn("3600"), 10_000)
})

test("an import whose signal was aborted before it sends nothing", async () => {
  const reason = new Error("cancelled")
  const sent = () => assert.fail("the file is sent")
  await assert.rejects(importFile(new File(["a"], "a.txt"), { signal: AbortSignal.abort(reason), sent }), reason)
})
