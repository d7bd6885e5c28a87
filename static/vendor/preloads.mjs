// @ts-check
/**
 * Writes the `modulepreload` lists of the pages from the imports of their modules.
 *
 * A browser finds an import only after it has read the module that contains it. Without the list, the
 * deepest module starts loading after several round trips. `build.mjs` writes the lists and checks them.
 */

import { readFileSync, readdirSync } from "node:fs"
import { join, posix } from "node:path"

const IMPORT = /^(?:import|export)\b[^"]*?from "(\.[^"]+)"/gms
const ENTRY = /^( *)<script type="module" src="\/([^"]+)"><\/script>\n/m
const LIST = /^ *<link rel="modulepreload"[^\n]*\n/gm

/**
 * The pages with their current lists.
 *
 * @param {string} root the folder that the server serves as `/`
 * @returns {Record<string, string>} text by file name
 */
export function pagesIn(root) {
  const names = readdirSync(root).filter((name) => name.endsWith(".html"))
  const pages = names.map((name) => [name, withList(root, readFileSync(join(root, name), "utf8"))])
  return Object.fromEntries(pages)
}

/** @param {string} root @param {string} page */
function withList(root, page) {
  return page.replace(LIST, "").replace(ENTRY, (script, indent, entry) => {
    const links = preloads(root, entry).map((path) => `${indent}<link rel="modulepreload" href="/${path}">\n`)
    return script + links.join("")
  })
}

/**
 * The modules that an entry imports, directly or not. The bundle is the largest file, so it comes first.
 *
 * @param {string} root @param {string} entry
 */
function preloads(root, entry) {
  const found = new Set([entry])
  for (const module of found) {
    if (isBundle(module)) continue
    for (const [, path = ""] of readFileSync(join(root, module), "utf8").matchAll(IMPORT)) {
      found.add(posix.join(posix.dirname(module), path))
    }
  }
  found.delete(entry)
  const paths = [...found].sort()
  return [...paths.filter(isBundle), ...paths.filter((path) => !isBundle(path))]
}

/** @param {string} path */
const isBundle = (path) => path.startsWith("vendor/")
