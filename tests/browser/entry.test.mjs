// @ts-check
/**
 * Signing in and out: an expired sign-in and its return address, an invite with a confirmation, signing
 * out.
 */

import assert from "node:assert/strict"
import { createHmac, randomUUID } from "node:crypto"
import { readFileSync } from "node:fs"
import { createServer } from "node:http"
import { join } from "node:path"
import { after, afterEach, before, test } from "node:test"

import { Browser, enter, Galley, journaledEdits, openMenu, until } from "./harness.mjs"
import { assertAccessible, assertFits } from "./support.mjs"

/** @type {Galley} */
let galley
/** @type {Browser} */
let browser
/** @type {import("node:http").Server} */
let host
/** The addresses that the host application received requests for. @type {string[]} */
let urls = []
/** The user that the host application signs in. */
let user = { id: "kim-17", name: "Kim" }

before(async () => {
  browser = await Browser.start()
  // A cookie has no port: the browser sends the cookie of one server of this machine to the other.
  host = createServer((request, response) => {
    urls.push(request.url ?? "")
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://host")
    if (pathname !== "/in") {
      response.writeHead(404).end()
      return
    }
    const cookie = `galley_token=${token(user, 3_600)}; Path=/; HttpOnly; SameSite=Lax`
    response.writeHead(302, { "set-cookie": cookie, location: searchParams.get("next") ?? "/" }).end()
  })
  await new Promise((done) => host.listen(0, "127.0.0.1", () => done(undefined)))
})
after(async () => {
  host.close()
  await browser.stop()
})
afterEach(async () => {
  await browser.clear()
  await galley.stop()
})

/** Without guests; users come from the host application. */
async function startWithoutGuests() {
  const { port } = /** @type {import("node:net").AddressInfo} */ (host.address())
  urls = []
  user = { id: "kim-17", name: "Kim" }
  galley = await Galley.start({
    GALLEY_AUTH__GUESTS: "false",
    GALLEY_AUTH__SIGN_IN_URL: `http://127.0.0.1:${port}/in?next={return}`,
  })
}

/**
 * A token as a host application signs it.
 *
 * @param {{ id: string, name: string }} user
 * @param {number} seconds of its life
 * @param {number} [age] seconds since it was signed
 */
function token({ id, name }, seconds, age = 0) {
  const secret = readFileSync(join(galley.folder, "data/secret"), "utf8").trimEnd()
  const encode = (/** @type {unknown} */ part) => Buffer.from(JSON.stringify(part)).toString("base64url")
  const signedAt = Math.floor(Date.now() / 1_000) - age
  const claims = { iss: "galley", sub: id, name, iat: signedAt, exp: signedAt + seconds, jti: randomUUID() }
  const signed = `${encode({ alg: "HS256", typ: "JWT" })}.${encode(claims)}`
  return `${signed}.${createHmac("sha256", secret).update(signed).digest("base64url")}`
}

/** @param {import("./harness.mjs").User} user @param {string} value */
const giveCookie = ({ page }, value) =>
  page.context().addCookies([{ name: "galley_token", value, url: galley.url }])

/** A document of Kim's and its link. @param {string} text */
async function shared(text) {
  const kim = token({ id: "kim-17", name: "Kim" }, 3_600)
  const document = await galley.call("POST", "/api/documents", { title: "Letter", text }, kim)
  const link = await galley.call("POST", `/api/documents/${document.id}/share-link`, {}, kim)
  return { document: document.id, link: link.id, url: link.invite.url, kim }
}

test("an expired sign-in is named, and the way back brings the unsaved text in", async () => {
  await startWithoutGuests()
  const { document } = await shared("Begun.")
  const kim = await browser.newUser(galley)
  await giveCookie(kim, token(user, 3_600))
  await kim.page.goto(`${galley.url}/d/${document}`)
  await kim.seated()
  await galley.end("SIGKILL")
  await kim.notice.getByText("Connection lost.").waitFor()
  await kim.typeAtEnd(" More.")
  await until(async () => (await journaledEdits(kim)) === 6, "all of it is kept")
  // The page sends its token when the server is back, and this one has ended.
  await giveCookie(kim, token(user, 30, 60))
  await galley.run()
  kim.page.on("dialog", (dialog) => dialog.accept())
  await kim.notice.getByText("You've been signed out.").waitFor()
  await kim.page.reload()
  await kim.page.getByRole("heading", { name: "You are not signed in" }).waitFor()
  await kim.page.getByText("Something you wrote is kept in this browser").waitFor()
  assert.equal(await kim.page.getByText("It was deleted").count(), 0)
  await assertAccessible(kim, "an ended sign-in")
  await assertFits(kim, "an ended sign-in")
  await kim.page.getByRole("link", { name: "Sign in" }).press("Enter")
  await kim.seated()
  // The page reported the edit as lost with the seat, so its writer decides.
  await kim.page.locator("#recovered-drafts").getByRole("button", { name: "Put it back" }).click()
  await kim.waitForText("Begun. More.")
  assert.equal(new URL(kim.page.url()).pathname, `/d/${document}`)
  browser.assertContent()
})

test("a page at an address that the server does not know names it, and calls nothing deleted", async () => {
  await startWithoutGuests()
  const [{ document }, { url }] = [await shared("Begun."), galley]
  await galley.end("SIGTERM")
  galley.settings = { ...galley.settings, GALLEY_SERVER__PUBLIC_URL: "http://galley.example" }
  await galley.run()
  // It names the other address.
  galley.url = url
  const kim = await browser.newUser(galley)
  await giveCookie(kim, token(user, 3_600))
  await kim.page.goto(`${galley.url}/d/${document}`)
  await kim.page.getByRole("heading", { name: "This address is not the server's own" }).waitFor()
  await kim.page.getByText(`opened at ${galley.url}`).waitFor()
})

test("without guests and without a sign-in the page asks for no name, in both languages", async () => {
  await startWithoutGuests()
  for (const [locale, text, go] of [
    ["en-GB", "Please sign in first.", "Sign in"],
    ["ko-KR", "로그인 후 이용할 수 있습니다.", "로그인"],
  ]) {
    const visitor = await browser.newUser(galley, { locale })
    await visitor.page.goto(galley.url)
    await visitor.page.getByText(text ?? "").waitFor()
    assert.equal(await visitor.page.locator("#name").isVisible(), false)
    assert.equal(await visitor.page.locator("#ways").isVisible(), false)
    await assertAccessible(visitor, `the start page, ${locale}`)
    await visitor.page.getByRole("link", { name: go, exact: true }).click()
    await visitor.page.locator("#lists").waitFor()
    assert.equal(await visitor.page.locator("#ways").isVisible(), true)
  }
  browser.assertContent()
})

test("an invite survives a sign-in elsewhere, stays out of its address, and needs a confirmation", async () => {
  await startWithoutGuests()
  const { link, url, kim } = await shared("Read me.")
  user = { id: "lee-42", name: "Lee" }
  const lee = await browser.newUser(galley)
  await lee.page.goto(url)
  await lee.page.getByRole("link", { name: "Sign in" }).click()
  await lee.page.getByText("You are signed in as Lee.").waitFor()
  const invite = new URL(url).hash.slice(1)
  assert.ok(urls.length > 0 && !urls.some((address) => address.includes(invite)), urls.join(" "))
  await assertAccessible(lee, "the question before a review")
  const reviewer = async () => {
    const headers = { authorization: `Bearer ${kim}` }
    return (await (await fetch(`${galley.url}/api/share-links/${link}`, { headers })).json()).reviewer
  }
  assert.equal(await reviewer(), null, "nothing is done before the answer")
  await lee.page.getByRole("button", { name: "Not now" }).click()
  await lee.page.locator("#lists").waitFor()
  assert.equal(await reviewer(), null)
  await lee.page.goto(url)
  await lee.page.getByRole("button", { name: "Review as Lee" }).click()
  await lee.seated()
  assert.equal((await reviewer()).id, "lee-42")
  assert.equal(new URL(lee.page.url()).hash, "")
  // A returning reviewer gets no second confirmation. From the desk itself only the end of the address would change.
  await lee.page.goto("about:blank")
  await lee.page.goto(url)
  await lee.seated()
  browser.assertContent()
})

test("a guest signs out after a warning, and the browser retains nothing of theirs", async () => {
  galley = await Galley.start()
  const writer = await browser.newUser(galley)
  await writer.paste("Kim", "Mine.")
  const desk = writer.page.url()
  const { id } = await (await writer.page.request.get(`${galley.url}/api/me`)).json()
  // Edits of a closed page that were not saved.
  await writer.page.evaluate(
    (user) =>
      new Promise((resolve) => {
        const open = indexedDB.open("galley")
        open.onsuccess = () => {
          const row = { user, document: "doc_x", title: "", client: 1, update: Uint8Array.of(0, 0), count: 3, at: 1, lost: null }
          const transaction = open.result.transaction("unsaved", "readwrite")
          transaction.objectStore("unsaved").add(row)
          transaction.oncomplete = () => resolve(open.result.close())
        }
      }),
    id,
  )
  const openSignOut = async () => {
    await openMenu(writer, "#menu", enter)
    await writer.page.getByRole("button", { name: "Leave this device" }).press("Enter")
    await writer.page.locator("#confirm").getByText("You are Kim, a guest").waitFor()
  }
  await openSignOut()
  await writer.page.locator("#confirm").getByText("Something you wrote is kept in this browser only").waitFor()
  await assertAccessible(writer, "the question before a sign-out")
  await writer.page.locator("#confirm").getByRole("button", { name: "Cancel" }).click()
  assert.equal(await journaledEdits(writer), 3)
  await openSignOut()
  await writer.page.locator("#confirm").getByRole("button", { name: "Leave" }).click()
  await writer.page.locator("#name").waitFor()
  assert.equal(await journaledEdits(writer), 0)
  const cookies = await writer.page.context().cookies()
  assert.deepEqual(cookies.filter(({ name }) => name.includes("galley_token")), [])
  await writer.page.goto(desk)
  await writer.page.getByRole("heading", { name: "You are not signed in" }).waitFor()
  browser.assertContent()
})
