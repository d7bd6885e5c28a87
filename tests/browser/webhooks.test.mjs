// @ts-check
/**
 * Webhooks on the admin page. A webhook is given up after a day of attempts, so the list of these tests is
 * an answer of the test; the calls to deliver again reach the server.
 */

import assert from "node:assert/strict"
import { test } from "node:test"

import { until } from "./harness.mjs"
import { ALL, assertAccessibleIn } from "./looks.mjs"
import { hasFocus, says } from "./people.mjs"
import { assertFits, browser, galley, inEachLook, withGalley } from "./support.mjs"

withGalley()

/** @param {number} number @returns {import("../../static/js/lib/operations_api.ts").Webhook} */
const dead = (number) => ({
  id: `whk_${String(number).padStart(32, "0")}`,
  type: number === 1 ? "review.created" : "document.exported",
  url: `https://product.example/hooks/galley/${number}`,
  document_id: "doc_1",
  share_link_id: null,
  created_at: "2026-11-20T10:00:00Z",
  attempts: 31,
  next_at: null,
  last_error: "the endpoint answered 500",
  state: "dead",
})

/** An administrator whose list has these webhooks. @param {string} locale @param {import("../../static/js/lib/operations_api.ts").Webhook[]} webhooks */
async function administrator(locale, webhooks) {
  const admin = await browser.newUser(galley, { locale, viewport: { width: 1280, height: 720 } })
  await admin.page.route(/\/api\/admin\/webhooks\?/, (route) => route.fulfill({ json: { webhooks, next_cursor: null } }))
  await admin.page.goto(`${galley.url}/admin`)
  await admin.page.locator("#token").fill(galley.adminToken)
  await admin.page.keyboard.press("Enter")
  await admin.page.locator("#webhooks").waitFor()
  return admin
}

test("a webhook that was given up is delivered again, alone or with all others", async () => {
  const webhooks = [dead(1), dead(2), dead(3)]
  const admin = await administrator("en-US", webhooks)
  const section = admin.page.locator("#webhooks")
  await section.getByText("3 webhooks were given up after a day of attempts.").waitFor()
  await section.locator("tbody tr").first().getByText("the endpoint answered 500").waitFor()
  // The server does not have it: another administrator was quicker.
  await Promise.all([
    says(admin, "This webhook is not given up any more."),
    section.getByRole("button", { name: /^Deliver again: review\.created/ }).press("Enter"),
  ])
  // The list is read again with the answer: a press before that has no effect.
  await section.locator("[data-act=replay][aria-busy]").waitFor({ state: "detached" })
  const replay = /\/webhooks\/whk_\w+\/replay$/
  await admin.page.route(replay, (route) => {
    const [webhook] = webhooks.splice(0, 1)
    return route.fulfill({ json: { ...webhook, state: "pending" } })
  })
  await Promise.all([
    says(admin, "The webhook is delivered again soon."),
    section.getByRole("button", { name: /^Deliver again: review\.created/ }).press("Enter"),
  ])
  await section.getByText("2 webhooks were given up").waitFor()
  await until(() => admin.page.evaluate(() => document.activeElement?.closest("tr")?.dataset.key?.endsWith("2") ?? false), "the focus is in the next row")

  await section.getByRole("button", { name: "Deliver all again" }).click()
  webhooks.splice(0)
  await Promise.all([
    // The server itself has none.
    says(admin, "0 webhooks are delivered again soon."),
    admin.page.locator("#confirm").getByRole("button", { name: "Deliver all again" }).click(),
  ])
  await section.getByText("No webhook was given up.").waitFor()
  assert.equal(await section.getByRole("button").count(), 0)
  await hasFocus(admin, "#webhooks-title")
})

test("without a webhook that was given up the section says so, from the server's own answer", async () => {
  const admin = await browser.newUser(galley)
  await admin.page.goto(`${galley.url}/admin`)
  await admin.page.locator("#token").fill(galley.adminToken)
  await admin.page.keyboard.press("Enter")
  await admin.page.locator("#webhooks").getByText("No webhook was given up.").waitFor()
})

test("axe: webhooks that were given up, in each look, without overflow", async () => {
  const admin = await administrator("ko-KR", [dead(1), { ...dead(2), last_error: null, url: `https://product.example/${"long".repeat(40)}` }])
  await admin.page.locator("#webhooks tbody tr").nth(1).waitFor()
  await admin.page.locator("#webhooks").scrollIntoViewIfNeeded()
  await assertAccessibleIn(admin, "webhooks", ALL)
  await inEachLook(admin, ({ width, scheme }) => assertFits(admin, `webhooks-${width}-${scheme}`))
})
