// @ts-check
/** The page of the API: it shows every operation, sends a request, and loads nothing from another host. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { browser, galley, withGalley } from "./support.mjs"

withGalley()

test("the page of the API lists every operation and sends a request that a user tries out", async () => {
  const { page } = await browser.newUser(galley)
  /** @type {string[]} */
  const hosts = []
  page.on("request", (request) => hosts.push(new URL(request.url()).host))
  await page.goto(`${galley.url}/docs`)
  await page.locator(".opblock").first().waitFor()
  const { paths, webhooks } = await (await fetch(`${galley.url}/openapi.json`)).json()
  const operations = [paths, webhooks].flatMap((part) => Object.values(part).flatMap((path) => Object.keys(path)))
  assert.equal(await page.locator(".opblock").count(), operations.length)

  const row = page.locator(".opblock", { has: page.locator("[data-path='/api/auth']") })
  await row.locator(".opblock-summary-control").click()
  await row.getByRole("button", { name: "Try it out" }).click()
  await row.getByRole("button", { name: "Execute" }).click()
  await row.locator(".live-responses-table .response-col_status", { hasText: "200" }).waitFor()
  await row.locator(".live-responses-table", { hasText: "sign_in_url" }).waitFor()
  assert.deepEqual([...new Set(hosts)], [new URL(galley.url).host])
})
