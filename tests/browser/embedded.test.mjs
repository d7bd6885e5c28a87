// @ts-check
/**
 * A host product on a name of its own: the desk in its frame, and its own editor beside Galley's API. Once its name is
 * a sibling of Galley's, and once one of another site.
 */

import assert from "node:assert/strict"
import { execFileSync } from "node:child_process"
import { createHmac, randomUUID } from "node:crypto"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { createServer } from "node:https"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { after, afterEach, before, test } from "node:test"
import { createServer as secure } from "node:tls"
import { fileURLToPath } from "node:url"

import { buildSync } from "esbuild"

import { Browser, Galley, until } from "./harness.mjs"

/** @typedef {import("node:net").Server} Server */

/** The editors of the product: the client package on a `Y.Text`, and with CodeMirror and tokens that it renews. */
const EDITOR = buildSync({
  bundle: true,
  format: "iife",
  stdin: {
    resolveDir: fileURLToPath(new URL(".", import.meta.url)),
    contents: `
      import { EditorView } from "@codemirror/view"
      import { yCollab } from "y-codemirror.next"
      import * as Y from "yjs"
      import { WebsocketProvider } from "y-websocket"
      import { Session } from "../../static/client/galley.js"
      globalThis.openEditor = (galley, link, role, token) =>
        new Session({ galley, link, role, token: () => token, doc: new Y.Doc(), WebsocketProvider }).open()
      globalThis.showEditor = async (galley, link) => {
        const product = { tokens: 0, ends: [], session: null }
        const token = async () => {
          product.tokens += 1
          return (await fetch("/token?user=kim-17")).text()
        }
        const session = new Session({ galley, link, role: "writer", token, doc: new Y.Doc(), WebsocketProvider })
        session.on("closed", (error) => product.ends.push(error.reason))
        session.on("state", (state) => product.tokens > 1 && product.ends.push(state))
        await session.open()
        const extensions = [yCollab(session.text, session.provider.awareness)]
        new EditorView({ doc: session.text.toString(), extensions, parent: document.body })
        globalThis.product = Object.assign(product, { session })
      }
    `,
  },
  write: false,
}).outputFiles[0]?.text

const folder = mkdtempSync(join(tmpdir(), "galley-tls-"))
/** @type {Browser} */
let browser
/** @type {Galley} */
let galley
/** @type {Server[]} */
const servers = []
let desk = ""
let product = 0

/** @param {Server} server @returns {Promise<number>} its port */
async function listen(server) {
  servers.push(server)
  await new Promise((done) => server.listen(0, "127.0.0.1", () => done(undefined)))
  const address = server.address()
  return typeof address === "object" && address ? address.port : 0
}

before(async () => {
  const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")]
  const line = `req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout ${key} -out ${cert}`
  execFileSync("openssl", line.split(" "), { stdio: "ignore" })
  const pair = { key: readFileSync(key), cert: readFileSync(cert) }
  const port = await listen(secure(pair, (socket) => {
    const upstream = connect(Number(galley.port), "127.0.0.1")
    for (const end of [socket, upstream]) end.on("error", () => end.destroy())
    socket.pipe(upstream).pipe(socket)
  }))
  desk = `https://desk.galley.localhost:${port}`
  product = await listen(createServer(pair, ({ url = "/" }, response) => {
    const user = /^\/token\?user=([\w-]+)$/.exec(url)?.[1]
    const page = '<!doctype html><title>Product</title><script src="/editor.js"></script><body></body>'
    const body = user ? token(user, user, TOKEN_SECONDS) : url === "/editor.js" ? EDITOR : page
    response.writeHead(200, { "content-type": url === "/editor.js" ? "text/javascript" : "text/html" }).end(body)
  }))
  const origins = SITES.map((site) => `https://${site}:${product}`).join(" ")
  galley = await Galley.start({
    GALLEY_AUTH__GUESTS: "false",
    GALLEY_SERVER__PUBLIC_URL: desk,
    GALLEY_SERVER__ALLOWED_ORIGINS: origins,
    GALLEY_SERVER__FRAME_ANCESTORS: origins,
  })
  browser = await Browser.start()
})
afterEach(async () => {
  await browser.clear()
})
after(async () => {
  await browser.stop()
  await galley.stop()
  for (const server of servers) server.close()
  rmSync(folder, { recursive: true })
})

const SITES = ["app.galley.localhost", "product.localhost"]
/** The life of the tokens that are renewed. */
const TOKEN_SECONDS = 5
/** Renewals at half of that: three, or those of a minute. */
const RENEWALS = process.env.GALLEY_SHORT ? 3 : 24

/** A token as the product signs it. @param {string} id @param {string} name @param {number} [seconds] */
function token(id, name, seconds = 3_600) {
  const secret = readFileSync(join(galley.folder, "data/secret"), "utf8").trimEnd()
  const encode = (/** @type {unknown} */ part) => Buffer.from(JSON.stringify(part)).toString("base64url")
  const now = Math.floor(Date.now() / 1_000)
  const claims = { iss: "galley", sub: id, name, iat: now, exp: now + seconds, jti: randomUUID() }
  const signed = `${encode({ alg: "HS256", typ: "JWT" })}.${encode(claims)}`
  return `${signed}.${createHmac("sha256", secret).update(signed).digest("base64url")}`
}

/** Shows a page of Galley's in a frame. @param {import("playwright-core").Page} page @param {string} address */
async function frameOf(page, address) {
  await page.evaluate((src) => {
    const frame = window.document.createElement("iframe")
    Object.assign(frame, { id: "desk", src, allow: "clipboard-write; clipboard-read", width: 1200, height: 800 })
    window.document.body.append(frame)
  }, address)
  const frame = page.frameLocator("#desk")
  await frame.locator("#saved[data-kind=saved]").waitFor()
  return frame
}

/** Exchanges a token for Galley's cookie. @param {import("playwright-core").Page} page @param {string} token */
const exchange = (page, token) =>
  page.evaluate(async ([desk, token]) => {
    const init = { method: "POST", credentials: /** @type {const} */ ("include"), headers: { authorization: `Bearer ${token}` } }
    return (await fetch(`${desk}/api/auth/session`, init)).status
  }, [desk, token])

/** A page of the product, and a document of Kim's with a link. @param {string} site */
async function open(site) {
  const { page } = await browser.newUser(galley, { ignoreHTTPSErrors: true })
  await page.goto(`https://${site}:${product}/`)
  const kim = token("kim-17", "Kim")
  const document = await galley.call("POST", "/api/documents", { title: "Letter", text: "처음" }, kim)
  const link = await galley.call("POST", `/api/documents/${document.id}/share-link`, {}, kim)
  const stored = async () => (await fetch(`${galley.url}/api/documents/${document.id}/text`, { headers: { authorization: `Bearer ${kim}` } })).text()
  return { page, kim, document, link, stored }
}

for (const site of SITES) {
  test(`the desk works in a frame of ${site}: typing, clipboard, download, and signing out`, async () => {
    const { page, kim, document, stored } = await open(site)
    assert.equal(await exchange(page, kim), 204)
    const frame = await frameOf(page, `${desk}/d/${document.id}`)
    await frame.locator(".cm-content").click()
    await page.keyboard.press("Control+End")
    await page.keyboard.type(" 그리고 more")
    await until(async () => (await stored()) === "처음 그리고 more", "the text of the frame is stored")
    const menu = async (/** @type {string} */ name) => {
      await frame.locator("#menu > summary").click()
      await frame.locator("#menu-panel").getByRole("button", { name, exact: true }).click()
    }
    await menu("Export")
    const downloads = page.waitForEvent("download")
    await frame.getByRole("dialog").getByRole("button", { name: "Download" }).click()
    assert.match((await downloads).suggestedFilename(), /^Letter\./)
    await menu("Copy the invite")
    const copied = () => frame.locator("body").evaluate(() => navigator.clipboard.readText())
    await until(async () => (await copied()).startsWith(`${desk}/s/shr_`), "the invite is copied")
    const left = await frame.locator("body").evaluate(async () => (await fetch("/api/auth/leave", { method: "POST" })).status)
    assert.equal(left, 204)
    assert.equal(await frame.locator("body").evaluate(async () => (await fetch("/api/me")).status), 401)
    browser.assertContent()
  })

  test(`an editor of ${site} opens a seat with a token, reads the API with it, and gets nothing by the cookie`, async () => {
    const { page, kim, document, link, stored } = await open(site)
    const found = await page.evaluate(async ([desk = "", id, link, kim]) => {
      const headers = { authorization: `Bearer ${kim}` }
      const read = await fetch(`${desk}/api/documents/${id}`, { headers })
      const { title } = await read.json()
      const withCookie = await fetch(`${desk}/api/documents/${id}`, { credentials: "include" }).then(() => "read", () => "refused")
      // @ts-expect-error -- the script of the page
      const { text, reviews } = await globalThis.openEditor(desk, link, "writer", kim)
      text.insert(text.length, " own editor")
      await reviews.create(null, { body: "mine" })
      return { title, withCookie, text: text.toString(), reviews: (await reviews.list()).length }
    }, [desk, document.id, link.id, kim])
    assert.deepEqual(found, { title: "Letter", withCookie: "refused", text: "처음 own editor", reviews: 1 })
    await until(async () => (await stored()) === "처음 own editor", "the text of the editor is stored")
    browser.assertContent()
  })

  test(`tokens of five seconds are renewed: an editor of ${site}, and the desk in its frame`, async () => {
    const { page, link, stored } = await open(site)
    const reviewer = await browser.newUser(galley, { ignoreHTTPSErrors: true })
    await reviewer.page.goto(`https://${site}:${product}/`)
    await galley.call("POST", `/api/share-links/${link.id}/join`, { invite: link.invite.token }, token("lee-42", "Lee"))
    assert.equal(await exchange(reviewer.page, token("lee-42", "Lee", TOKEN_SECONDS)), 204)
    const frame = await frameOf(reviewer.page, `${desk}/s/${link.id}`)
    // @ts-expect-error -- the script of the page
    await page.evaluate(([desk, link]) => globalThis.showEditor(desk, link), [desk, link.id])
    const logged = galley.log.length
    // @ts-expect-error -- the same
    const found = () => page.evaluate(() => ({ tokens: globalThis.product.tokens, ends: globalThis.product.ends }))
    const type = async (/** @type {string} */ text) => {
      await page.locator(".cm-content").click()
      await page.keyboard.press("Control+End")
      await page.keyboard.type(text)
      await frame.locator(".cm-content").getByText(text.trim()).waitFor()
    }
    await type(" before")
    await until(async () => RENEWALS < (await found()).tokens, "the tokens are renewed", async () => JSON.stringify(await found()))
    await type(" after")
    await frame.locator(".cm-content").click()
    await reviewer.page.keyboard.press("Control+End")
    await reviewer.page.keyboard.type("!")
    await until(async () => {
      // @ts-expect-error -- the same
      const reviews = await page.evaluate(() => globalThis.product.session.reviews.list())
      return reviews.length === 1 && reviews[0].author.id === "lee-42"
    }, "the reviewer's suggestion")
    await until(async () => (await stored()) === "처음 before after", "the text is stored")
    assert.deepEqual((await found()).ends, [], "the session has not noticed")
    assert.equal(galley.log.slice(logged).includes("a session ended"), false)
    browser.assertContent()
  })
}
