// @ts-check
/**
 * The requests and bytes of a first load and of a second visit, as the network has them: answers from the
 * cache of the browser and requests to the API by the page's code are no part of a load.
 */

import assert from "node:assert/strict"
import { test } from "node:test"

import { openMenu } from "./harness.mjs"
import { browser, galley, withGalley } from "./support.mjs"

withGalley()

/** @param {import("playwright-core").Page} page */
async function recorder(page) {
  const session = await page.context().newCDPSession(page)
  /** The path of each request that left the browser. @type {Map<string, string>} */
  const sent = new Map()
  let bytes = 0
  session.on("Network.requestWillBeSent", ({ requestId, request }) => sent.set(requestId, new URL(request.url).pathname))
  session.on("Network.requestServedFromCache", ({ requestId }) => sent.delete(requestId))
  session.on("Network.responseReceived", ({ requestId, response }) => {
    if (response.fromDiskCache || response.fromServiceWorker) sent.delete(requestId)
  })
  session.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
    if (sent.has(requestId)) bytes += encodedDataLength
  })
  await session.send("Network.enable")
  return () => {
    const all = [...sent.values()].sort()
    const result = { all, files: all.filter((path) => !path.startsWith("/api/")), bytes }
    sent.clear()
    bytes = 0
    return result
  }
}

test("the pages load in few requests, and a second visit asks for the page alone", async (t) => {
  const user = await browser.newUser(galley, { locale: "ko-KR" })
  const { page } = user
  const take = await recorder(page)
  /** @type {string[]} */
  const errors = []
  page.on("console", (line) => line.type() === "error" && errors.push(line.text()))
  const visitStart = async () => {
    await page.goto(galley.url, { waitUntil: "networkidle" })
    await page.locator("#name").waitFor()
    return take()
  }
  const start = await visitStart()
  const again = await visitStart()

  await user.begin("Kim", "The text.")
  await page.waitForLoadState("networkidle")
  const desk = take()
  await page.reload({ waitUntil: "networkidle" })
  await user.seated()
  const deskAgain = take()
  for (const [name, { all, files, bytes }] of Object.entries({ start, again, desk, deskAgain })) {
    t.diagnostic(`${name}: ${files.length} files of ${all.length} requests, ${bytes} bytes: ${all.join(" ")}`)
  }

  assert.ok(start.all.length <= 12 && start.bytes <= 200_000, JSON.stringify(start))
  assert.ok(desk.files.length <= 6 && start.bytes + desk.bytes <= 330_000, JSON.stringify(desk))
  assert.deepEqual(again.files, ["/"])
  assert.deepEqual(deskAgain.files, [new URL(page.url()).pathname])
  assert.deepEqual(errors, [], "a visit without a sign-in writes no error to the console")
  assert.doesNotMatch([...start.files, ...desk.files].join(" "), /\/vendor\/(en|admin\w*)-/)
})

test("the page of administrators loads its own sentences, and a chosen language is loaded then", async () => {
  const { page } = await browser.newUser(galley)
  const take = await recorder(page)
  await page.goto(`${galley.url}/admin`, { waitUntil: "networkidle" })
  await page.getByText("Admin token", { exact: true }).first().waitFor()
  const first = take()
  assert.ok(first.all.length <= 12, JSON.stringify(first))
  await openMenu({ page }, "#menu")
  await page.locator("#menu select").first().selectOption("ko")
  await page.getByText("관리자 토큰", { exact: true }).first().waitFor()
  const names = take().files.map((path) => path.replace(/-\w+\.js$/, ""))
  assert.deepEqual(names, ["/vendor/admin_ko", "/vendor/ko"])
})
