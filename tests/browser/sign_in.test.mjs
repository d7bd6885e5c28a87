// @ts-check
/**
 * A team without a product signs in at its identity provider, and out again: a closed installation in both languages,
 * what a refusal or a blocked cookie shows, and Galley's page in a frame.
 */

import assert from "node:assert/strict"
import { after, before, test } from "node:test"

import { Galley, openMenu } from "./harness.mjs"
import { IdentityProvider } from "./identity_provider.mjs"
import { assertAccessible, assertFits, browser, inEachLook, replaceGalley, galley, withGalley } from "./support.mjs"

/** @typedef {import("./harness.mjs").User} User */

/** @type {IdentityProvider} */
let provider
/** The languages, with the words of a sign-in in each. */
const LANGUAGES = /** @type {const} */ ([
  { locale: "en-GB", signIn: "Sign in", denied: "The identity provider denied access", cookie: "the browser did not send its cookie", away: "The identity provider cannot be reached now", out: "Sign out" },
  { locale: "ko-KR", signIn: "로그인", denied: "인증 서비스에서 접근이 거부되어", cookie: "브라우저가 로그인 쿠키를 보내지 않아", away: "지금은 인증 서비스에 연결할 수 없습니다", out: "로그아웃" },
])

before(async () => {
  provider = await IdentityProvider.start()
})
withGalley({ per: "test" })
after(() => provider.stop())

/** Without guests; users come from the provider alone. @param {Record<string, string>} [settings] */
const startClosed = async (settings = {}) =>
  replaceGalley(await Galley.start({ GALLEY_AUTH__GUESTS: "false", ...provider.settings, ...settings }))

/** @param {User} user @param {string} name */
const link = ({ page }, name) => page.getByRole("link", { name, exact: true })

/** @param {User} user @param {string} name */
async function look(user, name) {
  await inEachLook(user, async ({ width, scheme }) => {
    await assertFits(user, `${name}-${width}-${scheme}`)
    await assertAccessible(user, `${name}-${width}-${scheme}`)
  })
}

for (const { locale, signIn, out } of LANGUAGES) {
  test(`a closed installation: sign-in, an invite, and sign-out at the provider (${locale})`, async () => {
    await startClosed()
    const [kim, lee] = [await browser.newUser(galley, { locale }), await browser.newUser(galley, { locale })]
    await kim.page.goto(galley.url)
    await link(kim, signIn).waitFor()
    for (const way of ["#name", "#ways", "#code-part"]) assert.equal(await kim.page.locator(way).isVisible(), false, way)
    await look(kim, `closed-${locale}`)
    await link(kim, signIn).press("Enter")
    await link(kim, "김민수").click()
    await kim.page.locator("#hello").getByText("김민수").waitFor()
    await look(kim, `signed-in-${locale}`)
    await kim.page.locator("#way-paste").click()
    await kim.page.locator("#paste-text").fill("저는 데이터로 문제를 푸는 일에 매력을 느꼈습니다.")
    await kim.page.locator("#paste-go").click()
    await kim.seated()
    const invite = await kim.invite()

    await lee.page.goto(invite)
    await lee.page.getByRole("heading").waitFor()
    await look(lee, `invited-${locale}`)
    await link(lee, signIn).click()
    await link(lee, "이서연").click()
    await lee.page.locator("#entry-dialog .button-strong").getByText("이서연").click()
    await lee.seated()
    await kim.page.locator("#seat-badges").getByText("이서연").waitFor()

    const menu = async () => {
      await openMenu(kim, "#menu")
      await kim.page.locator("#menu-panel").getByRole("button", { name: out, exact: true }).click()
      await kim.page.locator("#confirm .actions button").last().click()
    }
    await menu()
    await link(kim, signIn).waitFor()
    const cookies = await kim.page.context().cookies(galley.url)
    assert.deepEqual(cookies.map(({ name }) => name), [])
    // The session of the provider has ended, too: it shows its accounts again.
    await link(kim, signIn).click()
    await link(kim, "김민수").waitFor()
  })
}

for (const { locale, signIn, denied, cookie, away } of LANGUAGES) {
  test(`a sign-in that fails says why, and leads back at the next attempt (${locale})`, async () => {
    await startClosed()
    const kim = await browser.newUser(galley, { locale })
    const alert = kim.page.locator("#start-error")
    await kim.page.goto(`${galley.url}/d/doc_00000000000000000000000000000001`)
    await link(kim, signIn).click()
    await link(kim, "Deny").click()
    await alert.getByText(denied).waitFor()
    assert.equal(kim.page.url(), `${galley.url}/`, "a reload shows the start page without the fault")
    await look(kim, `denied-${locale}`)
    await link(kim, signIn).click()
    await link(kim, "김민수").waitFor()
    await kim.page.context().clearCookies()
    await link(kim, "김민수").click()
    await alert.getByText(cookie).waitFor()
    await kim.page.goto(`${galley.url}/d/doc_00000000000000000000000000000001`)
    await link(kim, signIn).click()
    // The document is not this user's: the page after the sign-in is that of the address.
    await kim.page.locator("#entry-dialog h1").waitFor()
    assert.equal(new URL(kim.page.url()).pathname, "/d/doc_00000000000000000000000000000001")

    const gone = { issuer: "http://127.0.0.1:1", client_id: "galley" }
    await startClosed({ GALLEY_AUTH__OIDC: JSON.stringify(gone) })
    const lee = await browser.newUser(galley, { locale })
    await lee.page.goto(galley.url)
    await link(lee, signIn).click()
    await lee.page.locator("#start-error").getByText(away).waitFor()
    await look(lee, `away-${locale}`)
  })
}

test("two sign-ins in two tabs at once both end signed in", async () => {
  await startClosed()
  const kim = await browser.newUser(galley)
  const other = await kim.page.context().newPage()
  for (const page of [kim.page, other]) {
    await page.goto(galley.url)
    await page.getByRole("link", { name: "Sign in", exact: true }).click()
    await page.getByRole("link", { name: "김민수" }).waitFor()
  }
  for (const page of [other, kim.page]) {
    await page.getByRole("link", { name: "김민수" }).click()
    await page.locator("#hello").getByText("김민수").waitFor()
  }
})

test("with guests the page offers both, and a guest is not replaced", async () => {
  await replaceGalley(await Galley.start(provider.settings))
  const kim = await browser.newUser(galley)
  await kim.page.goto(galley.url)
  await kim.page.getByText("Or sign in, if you have an account.").waitFor()
  await look(kim, "guests-and-provider")
  await kim.begin("Kim", "Mine.")
  const invite = await kim.invite()
  await kim.page.goto(`${galley.url}/api/auth/oidc/start`)
  await kim.page.locator("#start-error").getByText("You are a guest in this browser").waitFor()
  assert.equal(await link(kim, "Sign in").isVisible(), false)
  const lee = await browser.newUser(galley)
  await lee.page.goto(invite)
  await lee.page.locator("#entry-name").waitFor()
  await look(lee, "gate-guests-and-provider")
  await link(lee, "Sign in").click()
  await link(lee, "이서연").click()
  await lee.page.getByRole("button", { name: "Review as 이서연" }).click()
  await lee.seated()
})

test("in a frame the sign-in opens a window of its own", async () => {
  await startClosed({ GALLEY_SERVER__FRAME_ANCESTORS: provider.issuer })
  const kim = await browser.newUser(galley)
  await kim.page.goto(`${provider.issuer}/portal?shows=${encodeURIComponent(galley.url)}`)
  const frame = kim.page.frameLocator("iframe")
  await frame.getByText("Signing in opens a new window; go on there.").waitFor()
  const opened = kim.page.context().waitForEvent("page")
  await frame.getByRole("link", { name: "Sign in", exact: true }).click()
  const window = await opened
  await window.getByRole("link", { name: "김민수" }).click()
  await window.locator("#hello").getByText("김민수").waitFor()
})
