// @ts-check
/**
 * Writes `tests/data/advisories.json`: the advisories of a clone of rustsec/advisory-db that name a crate of
 * our lock files. `tests/tidy` compares the versions.
 *
 *     node tests/tidy/advisories.mjs PATH_OF_THE_CLONE
 *
 * The file holds facts alone: id, crate, and the ranges of versions that are safe, as [first, end].
 */
import { execFileSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const top = join(dirname(fileURLToPath(import.meta.url)), "../..")
const file = join(top, "tests/data/advisories.json")
const clone = process.argv[2] ?? ""

/** @param {string[]} words */
const git = (...words) =>
  execFileSync("git", ["-C", clone, ...words], { encoding: "utf8", maxBuffer: 2 ** 26 }).trim()

/** The names in the lock files. */
const crates = [...new Set(["Cargo.lock", "tests/guide/Cargo.lock"].flatMap((name) =>
  [...readFileSync(join(top, name), "utf8").matchAll(/^name = "(.+)"$/gm)].map(([, crate]) => crate ?? "")))].sort()

/** The first version after one, at that place. @param {string} version @param {number} place */
const next = (version, place) => {
  const parts = [0, 1, 2].map((at) => Number(version.split(".")[at] ?? 0))
  return parts.map((part, at) => (at < place ? part : at === place ? part + 1 : 0)).join(".")
}

/** The first version and the end of a requirement such as ">= 0.9.3, < 0.10.0". @param {string} text */
const range = (text) => {
  let [first, end] = ["0", /** @type {string | null} */ (null)]
  for (const part of text.split(",")) {
    const [, sign = "", version = ""] = /^\s*(>=|<=|>|<|=|\^|)\s*(\d+(?:\.\d+){0,2})/.exec(part) ?? []
    if (!version) throw new Error(`not understood: ${text}`)
    if (sign === ">=") first = version
    else if (sign === ">") first = next(version, 2)
    else if (sign === "<") end = version
    else if (sign === "<=") end = next(version, 2)
    else {
      // Cargo reads a bare version as a caret: up to the next change of its first part that is not 0.
      const place = sign === "=" ? 2 : Math.max(0, version.split(".").findIndex((it) => it !== "0"))
      ;[first, end] = [version, next(version, place)]
    }
  }
  return [first, end]
}

/** The texts of a list of the document. @param {string} text @param {string} name */
const list = (text, name) => {
  const [, inside = ""] = new RegExp(`^${name} = \\[([^\\]]*)\\]`, "m").exec(text) ?? []
  return [...inside.matchAll(/"([^"]+)"/g)].map(([, found]) => found ?? "")
}

const paths = git("ls-tree", "-r", "--name-only", "HEAD", "crates/").split("\n")
const advisories = paths.filter((path) => crates.includes(path.split("/")[1] ?? "")).flatMap((path) => {
  const text = git("show", `HEAD:${path}`).split("```")[1] ?? ""
  if (/^withdrawn = /m.test(text)) return []
  const id = /^id = "(.+)"$/m.exec(text)?.[1] ?? ""
  const safe = [...list(text, "patched"), ...list(text, "unaffected")].map(range)
  return [{ id, crate: path.split("/")[1], safe }]
})
const { accepted } = JSON.parse(readFileSync(file, "utf8"))
const [commit, date] = git("log", "-1", "--format=%H %cs").split(" ")
const head = { source: "rustsec/advisory-db", commit, date, accepted, crates: crates.join(" ") }
const rows = advisories.map((row) => `    ${JSON.stringify(row)}`).join(",\n")
writeFileSync(file, `${JSON.stringify(head, null, 2).slice(0, -2)},\n  "advisories": [\n${rows}\n  ]\n}\n`)
