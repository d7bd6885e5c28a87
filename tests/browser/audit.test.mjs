// @ts-check
/** The audit on the admin page, and a sign-out everywhere, which it has a row of. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { openMenu } from "./harness.mjs"
import { ALL, assertAccessibleIn } from "./looks.mjs"
import { assertAccessible, assertFits, browser, galley, inEachLook, withGalley } from "./support.mjs"

withGalley()

/** Ends the sign-ins of a user, as an administrator. @param {string} user */
async function revoke(user) {
  const headers = { authorization: `Bearer ${galley.adminToken}` }
  const { status } = await fetch(`${galley.url}/api/users/${user}/sessions`, { method: "DELETE", headers })
  assert.equal(status, 204)
}

/** @param {string} locale */
async function administrator(locale) {
  const admin = await browser.newUser(galley, { locale, viewport: { width: 1280, height: 720 } })
  await admin.page.goto(`${galley.url}/admin`)
  await admin.page.locator("#token").fill(galley.adminToken)
  await admin.page.keyboard.press("Enter")
  await admin.page.locator("#audit").waitFor()
  return admin
}

test("a guest who signs out everywhere is signed out in the other browser, and the audit has the act", async () => {
  const writer = await browser.newUser(galley)
  await writer.begin("Kim", "A text on two devices.")
  const other = await browser.newUser(galley)
  await other.page.context().addCookies(await writer.page.context().cookies())
  await other.page.goto(galley.url)
  await other.page.locator("#mine .row").waitFor()
  await openMenu(writer, "#menu")
  await writer.page.getByRole("button", { name: "Sign out everywhere" }).click()
  await writer.page.locator("#confirm").getByText("Leave every device, this one too? You are Kim, a guest").waitFor()
  await assertAccessible(writer, "the question before a sign-out everywhere")
  await writer.page.locator("#confirm").getByRole("button", { name: "Sign out everywhere" }).click()
  await writer.page.locator("#name").waitFor()
  await other.page.reload()
  await other.page.locator("#name").waitFor()
  const admin = await administrator("en-US")
  const row = admin.page.locator("#audit-rows tr", { hasText: "DELETE /api/me/sessions" })
  await row.getByText(/^usr_/).waitFor()
  await row.getByText("127.0.0.1").waitFor()
})

test("the desk says that its user is signed out elsewhere", async () => {
  const writer = await browser.newUser(galley)
  await writer.begin("Kim", "A text on two devices.")
  const me = await writer.page.evaluate(async () => (await (await fetch("/api/me")).json()).id)
  await revoke(me)
  await writer.notice.getByText("You've been signed out.").waitFor()
})

test("acts are found by user and by act, in both languages, page by page", async () => {
  for (let number = 0; number < 51; number += 1) await revoke(`user-${number}`)
  const admin = await administrator("en-US")
  const rows = admin.page.locator("#audit-rows tr")
  await rows.nth(49).waitFor()
  await admin.page.getByRole("button", { name: "The latest 50 are shown. Show more" }).press("Enter")
  await rows.nth(50).waitFor()
  await admin.page.getByLabel("User or server").fill("user-7")
  await admin.page.keyboard.press("Enter")
  await rows.nth(1).waitFor({ state: "detached" })
  await rows.getByText("user-7", { exact: true }).waitFor()
  await rows.getByText("Admin token").waitFor()
  await admin.page.getByLabel("Act, such as DELETE").fill("POST")
  await admin.page.keyboard.press("Enter")
  await admin.page.getByText("No recorded act matches.").waitFor()
  const korean = await administrator("ko-KR")
  await korean.page.getByLabel("사용자 또는 서버").fill("user-7")
  await korean.page.keyboard.press("Enter")
  await korean.page.locator("#audit-rows tr").nth(1).waitFor({ state: "detached" })
  await korean.page.locator("#audit-rows").getByText("관리자 토큰").waitFor()
})

test("axe: the audit, in each look, without overflow", async () => {
  await revoke("x".repeat(64))
  const admin = await administrator("ko-KR")
  await admin.page.locator("#audit-rows tr").first().waitFor()
  await admin.page.locator("#audit").scrollIntoViewIfNeeded()
  await assertAccessibleIn(admin, "audit", ALL)
  await inEachLook(admin, ({ width, scheme }) => assertFits(admin, `audit-${width}-${scheme}`))
})
