// @ts-check
/**
 * Lets node import the page's sources, whose types it removes by itself from 22.18 on:
 *
 *     node --import ./tests/runner/typescript.mjs --test tests/ui/FILE
 */

import { readFile } from "node:fs/promises"
import { register } from "node:module"
import { fileURLToPath } from "node:url"
import { isMainThread } from "node:worker_threads"

// Node loads this file once more for its hooks, in a thread of their own.
if (isMainThread && !("typescript" in process.features)) register(import.meta.url)

/** @type {import("node:module").LoadHook} */
export async function load(url, context, next) {
  if (!/\.ts(\?|$)/.test(url)) return next(url, context)
  const { transform } = await import("esbuild")
  const { code } = await transform(await readFile(fileURLToPath(url), "utf8"), { loader: "ts" })
  return { format: "module", source: code, shortCircuit: true }
}
