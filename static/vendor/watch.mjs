// @ts-check
/**
 * Serves the pages of a running server from the sources of this folder, as they are now:
 *
 *     node static/vendor/build.mjs --watch [URL OF THE SERVER [PORT]]
 *
 * The bundles are built when a page is requested and a source has changed since the last build, so a reload shows
 * the change. All else is the server's, which sees its own address as `Host` and `Origin`.
 */

import { readFileSync, watch } from "node:fs"
import { createServer, request } from "node:http"
import { dirname, join } from "node:path"
import { text } from "node:stream/consumers"
import { fileURLToPath } from "node:url"

const root = join(dirname(fileURLToPath(import.meta.url)), "..")

/** Files of the sources that are served as they are, with their types. @type {Readonly<Record<string, readonly [string, string]>>} */
const PLAIN = { "/service-worker.js": ["service_worker.js", "text/javascript"], "/icon.svg": ["icon.svg", "image/svg+xml"] }

/** @typedef {{ files: Record<string, string>, tags: Record<string, string> }} Built bundles by their names, and the tags of each page */

/** @param {() => Promise<Built>} build @param {Readonly<Record<string, string>>} pages by their entries @param {string} upstream @param {number} port */
export function serve(build, pages, upstream, port) {
  /** @type {Promise<Built> | null} */
  let built = null
  watch(root, { recursive: true }, (_event, file) => {
    if (!file?.startsWith("vendor")) built = null
  })
  const current = () => (built ??= build())

  /** The page of the sources in place of the server's, with its nonce. @param {string} html */
  const pageOf = async (html) => {
    const page = pages[/\/vendor\/([a-z_]+)-\w{8}\.css/.exec(html)?.[1] ?? ""]
    if (!page) return html
    const nonce = /name="csp-nonce" content="([^"]*)"/.exec(html)?.[1] ?? ""
    const { tags } = await current()
    const source = readFileSync(join(root, page), "utf8").replaceAll("{{nonce}}", nonce)
    return source.replace(/<script src="\/js\/[^]*<\/head>/, () => `${tags[page]}\n  </head>`)
  }

  /** The file of the sources at a path; `null`: it is the server's. @param {string} path @returns {Promise<[string, string] | null>} */
  const fileOf = async (path) => {
    const plain = PLAIN[path]
    if (plain) return [readFileSync(join(root, plain[0]), "utf8"), plain[1]]
    const bundle = path.startsWith("/vendor/") ? (await current()).files[path.slice("/vendor/".length)] : undefined
    return bundle === undefined ? null : [bundle, path.endsWith(".css") ? "text/css" : "text/javascript"]
  }

  /** The same request to the server. @param {import("node:http").IncomingMessage} received */
  const forward = ({ method, url, headers }) => {
    const own = new URL(upstream)
    const origin = headers.origin === `http://${headers.host}` ? { origin: own.origin } : {}
    return request(new URL(url ?? "/", own), { method, headers: { ...headers, ...origin, host: own.host, "accept-encoding": "identity" } })
  }

  const server = createServer(async (received, answer) => {
    const fail = (/** @type {unknown} */ error) => {
      console.error(error)
      if (!answer.headersSent) answer.writeHead(502, { "content-type": "text/plain; charset=utf-8" })
      answer.end(String(error))
    }
    try {
      const file = await fileOf(received.url ?? "/")
      if (file) return void answer.writeHead(200, { "content-type": `${file[1]}; charset=utf-8`, "cache-control": "no-cache" }).end(file[0])
    } catch (error) {
      return fail(error)
    }
    const sent = forward(received).on("error", fail)
    sent.on("response", async (given) => {
      const { statusCode = 502, headers } = given
      if (!headers["content-type"]?.startsWith("text/html")) return void given.pipe(answer.writeHead(statusCode, headers))
      try {
        const { "content-length": _, "content-security-policy": policy = "", ...rest } = headers
        const page = await pageOf(await text(given))
        // It names the server's address for websockets.
        const own = String(policy).replaceAll(new URL(upstream).host, received.headers.host ?? "")
        answer.writeHead(statusCode, { ...rest, "content-security-policy": own }).end(page)
      } catch (error) {
        fail(error)
      }
    })
    received.pipe(sent)
  })

  server.on("upgrade", (received, socket, first) => {
    const sent = forward(received).on("error", () => socket.destroy())
    sent.on("upgrade", ({ rawHeaders }, other, head) => {
      const lines = rawHeaders.flatMap((name, at) => (at % 2 === 0 ? [`${name}: ${rawHeaders[at + 1]}`] : []))
      socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join("\r\n")}\r\n\r\n`)
      socket.write(head)
      other.write(first)
      other.pipe(socket).on("error", () => other.destroy())
      socket.pipe(other).on("error", () => socket.destroy())
    })
    sent.on("response", () => socket.destroy())
    sent.end()
  })
  server.listen(port, "127.0.0.1", () => {
    const address = /** @type {import("node:net").AddressInfo} */ (server.address())
    console.log(`http://127.0.0.1:${address.port}/ shows the sources; the server is ${upstream}`)
  })
}
