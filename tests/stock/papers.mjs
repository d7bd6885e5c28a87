// @ts-check
/** The papers of the repository, for the tests that run their examples and compare them with the code. */
import { readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

export const top = join(dirname(fileURLToPath(import.meta.url)), "../..")
export const languages = ["README.md", "README.ko.md"]
export const papers = [
  "SECURITY.md",
  ...languages,
  "config/EMBEDDING.md",
  "config/OPERATIONS.md",
  "src/http/PROTOCOL.md",
  "tests/bench/RESULTS.md",
]

/** @param {string} name */
export const read = (name) => readFileSync(join(top, name), "utf8")

/** The fenced blocks of a paper. @param {string} paper @param {string} [kind] */
export const blocks = (paper, kind = "\\w+") =>
  [...paper.matchAll(new RegExp(`^\`\`\`${kind}\\n(.*?)^\`\`\`$`, "gms"))].map(([, code]) => code ?? "")

/** The OpenAPI document, joined of the files that `build.rs` lists; a name of two files is an error. */
export const openapi = () => {
  const files = [...read("build.rs").matchAll(/"(src\/[\w/]+\.json)"/g)].map(([, name]) => name ?? "")
  const parts = files.map((name) => JSON.parse(read(name)))
  const document = parts.find((part) => part.openapi)
  for (const part of parts.filter((part) => part !== document)) {
    addAll(document.paths, part.paths)
    addAll(document.components.schemas, part.components?.schemas ?? {})
  }
  return document
}

/** @param {Record<string, object>} to @param {Record<string, object>} from */
const addAll = (to, from) => {
  for (const [name, value] of Object.entries(from)) {
    if (name in to) throw new Error(`${name} stands in two files of the OpenAPI document`)
    to[name] = value
  }
}
