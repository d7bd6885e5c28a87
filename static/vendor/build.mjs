// @ts-check
/**
 * Builds the one bundle of third-party code that the page loads, and writes the `modulepreload` lists of
 * the three pages.
 *
 *     cd tests && npm ci && node ../static/vendor/build.mjs          # write the files
 *     cd tests && npm ci && node ../static/vendor/build.mjs --check  # compare them; exit 1 if one differs
 *
 * The page has no other build step. Run this script after a version in `tests/package.json` or an import
 * of the page changes, and commit its output. The same versions produce the same bytes. The bundle is named
 * after the hash of its content, so a cache may store it for ever. `manifest.json` lists the packages in
 * it, and `LICENSES.txt` contains their licences.
 */

import { createHash } from "node:crypto"
import { readFileSync, readdirSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join, posix } from "node:path"
import { fileURLToPath } from "node:url"

import { pagesIn } from "./preloads.mjs"

const here = dirname(fileURLToPath(import.meta.url))
// A worktree may link the folder, and esbuild names its inputs by their real paths.
const packages = realpathSync(join(here, "../../tests/node_modules"))
const esbuild = createRequire(join(packages, "../package.json"))("esbuild")

/** @param {string | Uint8Array} bytes */
const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex")

/** The files to write, by path from this folder, and the package versions that went in. */
async function build() {
  const built = await esbuild.build({
    absWorkingDir: here,
    bundle: true,
    charset: "utf8",
    entryPoints: ["entry.js"],
    format: "esm",
    legalComments: "none",
    metafile: true,
    minify: true,
    nodePaths: [packages],
    target: "es2022",
    write: false,
  })
  const used = packagesOf(Object.keys(built.metafile.inputs))
  const list = used.map(({ name, version, license }) => `${name} ${version} (${license})`)
  const code = `/* ${list.join(" · ")}\n   See LICENSES.txt. */\n${built.outputFiles[0]?.text ?? ""}`
  const name = `editor-${sha256(code).slice(0, 12)}`
  const types = readFileSync(join(here, "entry.js"), "utf8")
  /** @type {Record<string, string>} */
  const files = {
    [`${name}.js`]: code,
    [`${name}.d.ts`]: types.replace("The third-party functions", "The types of the third-party functions"),
    "LICENSES.txt": used.map(licenceOf).join(`\n${"-".repeat(78)}\n\n`),
    "../js/lib/vendor.js": vendorModule(name),
  }
  const manifest = {
    bundle: `${name}.js`,
    sha256: sha256(code),
    bytes: Buffer.byteLength(code),
    esbuild: esbuild.version,
    packages: Object.fromEntries(used.map(({ name, version }) => [name, version])),
  }
  files["manifest.json"] = `${JSON.stringify(manifest, null, 2)}\n`
  return files
}

/**
 * @param {string[]} inputs paths from this folder
 * @returns {{ name: string, version: string, license: string, folder: string }[]}
 */
function packagesOf(inputs) {
  /** @type {Map<string, string>} */
  const folders = new Map()
  for (const input of inputs) {
    // A package may also lie in a `node_modules` above this folder, where Node finds it, too.
    const [, above, name] = /^(.*[\\/]node_modules)[\\/]((?:@[^\\/]+[\\/])?[^\\/]+)/.exec(join(here, input)) ?? []
    if (above && name) folders.set(name.replaceAll("\\", "/"), join(above, name))
  }
  return [...folders].sort().map(([name, folder]) => {
    const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))
    return { name, version, license, folder }
  })
}

/** @param {{ name: string, version: string, license: string, folder: string }} used */
function licenceOf({ name, version, license, folder }) {
  const text = readFileSync(join(folder, "LICENSE"), "utf8").replaceAll("\r\n", "\n").trim()
  return `${name} ${version} (${license})\n\n${text}\n`
}

/** @param {string} name */
function vendorModule(name) {
  return `// @ts-check
/**
 * The only import of third-party code. Written by \`static/vendor/build.mjs\`; do not edit.
 *
 * An import map would be inline in the page, which the content security policy forbids.
 */

export * from "../../vendor/${name}.js"
`
}

/** The pages with their `modulepreload` lists, by path from this folder. */
function pages() {
  const texts = Object.entries(pagesIn(join(here, "..")))
  return Object.fromEntries(texts.map(([name, text]) => [`../${name}`, text]))
}

/** The files of older bundles in this folder. @param {Record<string, string>} files */
function outdated(files) {
  return readdirSync(here).filter((file) => file.startsWith("editor-") && !(file in files))
}

const files = await build()
if (process.argv.includes("--check")) {
  const differs = Object.entries({ ...files, ...pages() }).filter(([path, text]) => {
    try {
      return readFileSync(join(here, path), "utf8") !== text
    } catch {
      return true
    }
  })
  for (const [path] of differs) console.error(`differs: ${posix.join("static/vendor", path)}`)
  for (const path of outdated(files)) console.error(`left over: static/vendor/${path}`)
  process.exitCode = differs.length + outdated(files).length === 0 ? 0 : 1
} else {
  for (const path of outdated(files)) rmSync(join(here, path))
  for (const [path, text] of Object.entries(files)) writeFileSync(join(here, path), text)
  // After the bundle: the lists name it by its new hash.
  for (const [path, text] of Object.entries(pages())) writeFileSync(join(here, path), text)
  console.log(files["manifest.json"])
}
