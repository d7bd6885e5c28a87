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
  "config/OPERATIONS.md",
  "src/http/PROTOCOL.md",
  "tests/bench/RESULTS.md",
]

/** @param {string} name */
export const read = (name) => readFileSync(join(top, name), "utf8")

/** The fenced blocks of a paper. @param {string} paper @param {string} [kind] */
export const blocks = (paper, kind = "\\w+") =>
  [...paper.matchAll(new RegExp(`^\`\`\`${kind}\\n(.*?)^\`\`\`$`, "gms"))].map(([, code]) => code ?? "")
