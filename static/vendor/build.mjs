// @ts-check
/**
 * Builds what the server embeds: a script and a style sheet for each page, the modules that the scripts
 * share, and a file for each language; the bundle of the page at `/docs`; the client package of host products
 * with its types; `editor.js`, the third-party code that the sources load; and the types of the OpenAPI
 * document.
 *
 *     cd tests && npm ci && node ../static/vendor/build.mjs          # write the files
 *     cd tests && npm ci && node ../static/vendor/build.mjs --check  # compare them; exit 1 if one differs
 *     cd tests && npm ci && node ../static/vendor/build.mjs --watch  # serve the sources: watch.mjs
 *
 * Run this script after a change in `static`, of an `openapi` file or of a version in `tests/package.json`, and commit its output.
 * The same sources produce the same bytes. A file is named after the hash of its content, so a cache may
 * store it for ever. `manifest.json` has the packages, the sizes of the files, and for each page the tags
 * that `build.rs` puts in place of those of the sources; `LICENSES.txt` has the licences.
 */

import { createHash } from "node:crypto"
import { readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { basename, dirname, join, posix } from "node:path"
import { fileURLToPath } from "node:url"

import { openapiTypes } from "./openapi_types.mjs"

const here = dirname(fileURLToPath(import.meta.url))
const root = join(here, "..")
const packages = join(here, "../../tests/node_modules")
const load = createRequire(join(packages, "../package.json"))
const esbuild = load("esbuild")

const LICENCE = /^(LICENSE|NOTICE|.*-es-bundle\.js\.LICENSE\.txt)$/

/** The scripts and style sheets of a page, by their entry in `static/js`. */
const PAGES = { start: "index.html", desk: "editor.html", admin: "admin.html" }
/** The pages without a script. */
const PLAIN = { not_found: "not_found.html" }
/** The sources of the client package with public types, in the order of their dependencies. The last is the entry. */
const CLIENT = ["failures.ts", "reviews.ts", "session.ts"]
/** The script before the first paint, which is no module. */
const PRE_PAINT = "js/lib/pre_paint.ts"
const HASHED = /-[0-9A-Z]{8}\.(?:css|js)$/

/** The name of a file with this content. @param {string} name @param {string} text @param {string} end */
const hashed = (name, text, end) => `${name}-${createHash("sha256").update(text).digest("hex").slice(0, 8).toUpperCase()}${end}`

/** The files to write, by path from this folder, and the package versions that went in. */
async function build() {
  const editor = await bundle(["entry.js"], { format: "esm" })
  const docs = await bundle(["docs_entry.js"], { format: "iife" })
  const pages = await pageFiles()
  const used = packagesOf([...editor.inputs, ...docs.inputs])
  const [code = "", script = "", style = ""] = [...Object.values(editor.texts), ...Object.values(docs.texts)]
  const types = readFileSync(join(here, "entry.js"), "utf8")
  /** @type {Record<string, string>} */
  const files = {
    ...pages.files,
    "editor.js": `${headOf(editor.inputs)}${code}`,
    "editor.d.ts": types.replace("The third-party functions", "The types of the third-party functions"),
    "LICENSES.txt": used.map(licenceOf).join(`\n${"-".repeat(78)}\n\n`),
    "docs.js": `${headOf(docs.inputs)}${script}`,
    "docs.css": `${headOf(docs.inputs)}${style}`,
    ...await clientFiles(),
  }
  const manifest = {
    esbuild: esbuild.version,
    packages: Object.fromEntries(used.map(({ name, version }) => [name, version])),
    pages: pages.tags,
    bytes: Object.fromEntries(Object.entries(pages.files).map(([name, text]) => [name, Buffer.byteLength(text)])),
  }
  files["../js/lib/openapi.d.ts"] = await openapiTypes()
  files["manifest.json"] = `${JSON.stringify(manifest, null, 2)}\n`
  return files
}

/**
 * Imports the packages themselves where the sources import `vendor.ts`: a page then has only those that it
 * uses, because esbuild assigns whole files to pages.
 */
const packagesByPage = {
  name: "packages-by-page",
  /** @param {any} build */
  setup(build) {
    const lists = [...readFileSync(join(here, "entry.js"), "utf8").matchAll(/^export (?:\{([^}]+)\}|\* as (\w+)) from "([^"]+)"/gm)]
    /** @type {Map<string, string>} */
    const imports = new Map()
    for (const [, list, all, path] of lists) {
      if (all) imports.set(all, `import * as ${all} from "${path}";`)
      for (const name of words(list)) imports.set(name, `import { ${name} } from "${path}";`)
    }
    build.onLoad({ filter: /[\\/]static[\\/]js[\\/].*\.ts$/ }, (/** @type {{ path: string }} */ { path }) => ({
      contents: readFileSync(path, "utf8").replace(/^import \{([^}]+)\} from "[^"]*\/lib\/vendor\.ts"/gm, (_, list) =>
        words(list.replaceAll(/\btype \w+/g, "")).map((name) => imports.get(name)).join(" ")),
      loader: "ts",
    }))
  },
}

/** @param {string | undefined} list */
const words = (list) => list?.match(/\w+/g) ?? []

/** The files of the pages by their names, and the tags of each page. */
async function pageFiles() {
  const entries = Object.fromEntries(Object.keys(PAGES).map((page) => [page, `../js/${page}/main.ts`]))
  const { texts, outputs } = await bundle(entries, { format: "esm", splitting: true, plugins: [packagesByPage] })
  const files = Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, `/* See LICENSES.txt. */\n${text}`]))
  const add = (/** @type {string} */ name, /** @type {string} */ text, /** @type {string} */ end) => {
    const file = hashed(name, text, end)
    files[file] = text
    return `/vendor/${file}`
  }
  const minified = async (/** @type {string} */ text, /** @type {string} */ loader) =>
    (await esbuild.transform(text, { charset: "utf8", legalComments: "none", loader, minify: true })).code
  const languages = Object.keys(files).filter((file) => /^(en|ko)-/.test(file)).sort()
  const data = languages.map((file) => ` data-${file.slice(0, 2)}='/vendor/${file}'`).join("")
  const prePaint = add("pre_paint", await minified(readFileSync(join(root, PRE_PAINT), "utf8"), "ts"), ".js")
  /** @type {Record<string, string>} */
  const tags = {}
  for (const [name, page] of Object.entries({ ...PAGES, ...PLAIN })) {
    const sheets = readFileSync(join(root, page), "utf8").matchAll(/<link rel="stylesheet" href="\/([^"]+)">/g)
    const css = [...sheets].map(([, path = ""]) => readFileSync(join(root, path), "utf8")).join("\n")
    const style = `<link rel='stylesheet' href='${add(name, await minified(css, "css"), ".css")}'>`
    const entry = Object.keys(files).find((file) => file.startsWith(`${name}-`) && file.endsWith(".js"))
    const script = entry ? `<script type='module' src='/vendor/${entry}'></script>` : ""
    const shared = entry ? importsOf(entry, outputs).map((file) => `<link rel='modulepreload' href='/vendor/${file}'>`) : []
    tags[page] = `<script src='${prePaint}'${entry ? data : ""}></script>${style}${script}${shared.join("")}`
  }
  return { files, tags }
}

/** The client package: one module, and its declarations in one file. */
async function clientFiles() {
  const { texts } = await bundle({ galley: `../client/${CLIENT.at(-1)}` }, { format: "esm" })
  const ts = load("typescript")
  const compilerOptions = { isolatedDeclarations: true, stripInternal: true, target: ts.ScriptTarget.ES2022 }
  const declared = CLIENT.map((file) => {
    const { outputText, diagnostics } = ts.transpileDeclaration(readFileSync(join(root, "client", file), "utf8"), { compilerOptions, fileName: file })
    for (const { messageText } of diagnostics ?? []) throw new Error(`${file}: ${messageText}`)
    return outputText.replaceAll("\r\n", "\n")
  })
  // One file needs no imports between its parts, and an import of a package once.
  const [imports = [], rest = []] = [/^import/, /^(?!import|export \{)/].map((kind) => declared.join("").split("\n").filter((line) => kind.test(line)))
  const packages = [...new Set(imports)].filter((line) => !line.includes('"./')).sort()
  const head = "/* The client package of Galley: config/EMBEDDING.md. */\n"
  return { "../client/galley.js": `${head}${texts["galley.js"]}`, "../client/galley.d.ts": `${head}${[...packages, ...rest].join("\n")}` }
}

/**
 * The modules that an entry imports before it runs, directly or not.
 *
 * @param {string} entry @param {Record<string, { imports: { path: string, kind: string }[] }>} outputs
 */
function importsOf(entry, outputs) {
  const found = new Set([entry])
  for (const file of found) {
    const now = outputs[file]?.imports.filter(({ kind }) => kind === "import-statement") ?? []
    for (const { path } of now) found.add(basename(path))
  }
  return [...found].slice(1).sort()
}

/**
 * The texts of a bundle and its outputs by their names, and the files that went in.
 *
 * @param {string[] | Record<string, string>} entryPoints @param {object} options of esbuild
 */
async function bundle(entryPoints, options) {
  const built = await esbuild.build({
    absWorkingDir: here,
    bundle: true,
    charset: "utf8",
    chunkNames: "[name]-[hash]",
    entryNames: "splitting" in options ? "[name]-[hash]" : "[name]",
    entryPoints,
    legalComments: "none",
    metafile: true,
    minify: true,
    nodePaths: [packages],
    outdir: ".",
    // The hash of a file contains the paths of its inputs; a worktree may link the folder of packages.
    preserveSymlinks: true,
    target: "es2022",
    write: false,
    ...options,
  })
  /** @type {{ path: string, text: string }[]} */
  const outputs = built.outputFiles
  const texts = Object.fromEntries(outputs.map(({ path, text }) => [basename(path), text]))
  return { texts, inputs: Object.keys(built.metafile.inputs), outputs: built.metafile.outputs }
}

/** The first lines of a bundle. @param {string[]} inputs */
function headOf(inputs) {
  const list = packagesOf(inputs).map(({ name, version, license }) => `${name} ${version} (${license})`)
  return `/* ${list.join(" · ")}\n   See LICENSES.txt. */\n`
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
  // A package that is a bundle itself names what it contains.
  const names = readdirSync(folder).filter((file) => LICENCE.test(file)).sort()
  const texts = names.map((file) => readFileSync(join(folder, file), "utf8").replaceAll("\r\n", "\n").trim())
  return `${name} ${version} (${license})\n\n${texts.join("\n\n")}\n`
}

/** The files of older bundles in this folder. @param {Record<string, string>} files */
function outdated(files) {
  return readdirSync(here).filter((file) => HASHED.test(file) && !(file in files))
}

const [, , option, upstream = "http://127.0.0.1:8080", port = "8081"] = process.argv
const files = option === "--watch" ? {} : await build()
if (option === "--watch") {
  const { serve } = await import("./watch.mjs")
  serve(pageFiles, { ...PAGES, ...PLAIN }, upstream, Number(port))
} else if (option === "--check") {
  const differs = Object.entries(files).filter(([path, text]) => {
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
  console.log(files["manifest.json"])
}
