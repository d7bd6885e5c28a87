// @ts-check
/**
 * The types of the requests and of their successful answers, of the OpenAPI document: `static/js/lib/openapi.d.ts`.
 *
 * The page knows a failure by its name alone, so the file has no failures; and no prose, which the document has.
 */

import { openapi } from "../../tests/stock/papers.mjs"

const GENERATOR = new URL("../../tests/node_modules/openapi-typescript/dist/index.mjs", import.meta.url)

const HEAD = `/**
 * The requests of the page and their answers: \`node static/vendor/build.mjs\` makes this file of the OpenAPI document.
 */

`
/** Lines for what a path or an operation does not have, and what a type says already. */
const ABSENT = /^ +(?:cookie|delete|get|head|header|options|patch|path|post|put|query|requestBody|trace)\?: never;\n|^ +\/\*\*.*\*\/\n/gm
const HEADERS = /^ +headers: \{\n +\[name: string\]: unknown;\n +\};\n/gm
const PROSE = ["description", "example", "examples", "summary"]

export async function openapiTypes() {
  const { default: types, astToString } = await import(GENERATOR.href)
  const { openapi: version, info, paths, components } = openapi()
  for (const path of Object.values(paths)) {
    for (const { responses } of Object.values(path).filter((operation) => operation.responses)) {
      for (const status of Object.keys(responses)) {
        delete responses[status].headers
        if (!status.startsWith("2")) delete responses[status]
      }
    }
  }
  const { parameters, schemas } = components
  /** @type {string} */
  const text = astToString(await types(withoutProse({ openapi: version, info, paths, components: { parameters, schemas } })))
  return HEAD + text.replace(ABSENT, "").replace(HEADERS, "").replace(/^ +parameters: \{\n +\};\n/gm, "").replaceAll("    ", "  ")
}

/** @param {unknown} value @returns {any} `properties` may have names of prose */
function withoutProse(value, isNames = false) {
  if (Array.isArray(value)) return value.map((item) => withoutProse(item))
  if (typeof value !== "object" || value === null) return value
  const entries = Object.entries(value).filter(([key]) => isNames || !PROSE.includes(key))
  return Object.fromEntries(entries.map(([key, item]) => [key, withoutProse(item, key === "properties")]))
}
