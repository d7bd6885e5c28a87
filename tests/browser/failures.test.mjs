// @ts-check
/** An error in a handler of the page is shown, with a way out; those that are not the page's are not. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { until } from "./harness.mjs"
import { browser, galley, withGalley } from "./support.mjs"

withGalley()

/** @typedef {import("./harness.mjs").User} User */

/** A script of the page throws, in a handler or after an answer. @param {User} user @param {"handler" | "promise"} where */
async function fail({ page }, where) {
  await page.evaluate((where) => {
    const script = document.createElement("script")
    script.src = "/failing.js"
    script.dataset.where = where
    document.body.append(script)
  }, where)
}

/** Serves a script that throws. @param {User} user */
async function withFailing(user) {
  const body = `if (document.currentScript.dataset.where === "handler") setTimeout(() => { throw new RangeError("in a handler") })
    else Promise.reject(new TypeError("after an answer"))`
  await user.page.route("**/failing.js", (route) => route.fulfill({ contentType: "text/javascript", body }))
}

/** The errors that the page has thrown so far; the harness forgets them. @param {string} what */
const logged = (what) => until(async () => browser.errors.splice(0).some((error) => error.includes(what)), `the console has: ${what}`)

test("an error in a handler of the desk is shown once, is logged, and leads out", async () => {
  const writer = await browser.newUser(galley, { locale: "ko-KR" })
  await withFailing(writer)
  await writer.begin("Kim", "One plain sentence.")
  const { page } = writer
  await fail(writer, "handler")
  await logged("in a handler")
  await page.locator("#toast p", { hasText: "쓰신 내용은 그대로 남아 있으니 새로고침해 주세요." }).waitFor()
  await fail(writer, "promise")
  await logged("after an answer")
  assert.equal(await page.locator("#toast p").count(), 1)
  await writer.shot("failed")
  await page.locator(".cm-content").click()
  await page.keyboard.press("Control+End")
  await page.keyboard.type(" Typed.")
  await writer.seated()
  await page.locator("#toast").getByRole("button", { name: "새로고침" }).click()
  await writer.seated()
  await writer.waitForText("One plain sentence. Typed.")
  assert.equal(await page.locator("#toast p").count(), 0)
})

test("an error of the start page and of the operations page is shown", async () => {
  const user = await browser.newUser(galley, { locale: "ko-KR" })
  await withFailing(user)
  for (const path of ["", "/admin"]) {
    await user.page.goto(galley.url + path)
    await user.page.locator("main").first().waitFor()
    await user.page.waitForLoadState("networkidle")
    await fail(user, "promise")
    await user.page.locator("#toast p", { hasText: "이 화면의 일부가 제대로 작동하지 않았습니다. 새로고침해 주세요." }).waitFor()
    await logged("after an answer")
  }
})

test("while an edit is kept nowhere but on the page, the sentence offers to copy the text", async () => {
  const writer = await browser.newUser(galley)
  await writer.page.addInitScript(() => Object.defineProperty(globalThis, "indexedDB", { value: undefined }))
  await withFailing(writer)
  await writer.begin("Kim", "One plain sentence.")
  const { page } = writer
  await galley.end("SIGKILL")
  await writer.notice.getByText("Connection lost").waitFor()
  await page.locator(".cm-content").click()
  await page.keyboard.press("Control+End")
  await page.keyboard.type(" Typed.")
  await fail(writer, "handler")
  await logged("in a handler")
  const toast = page.locator("#toast p", { hasText: "Copy the text before you reload the page." })
  await toast.waitFor()
  await writer.shot("failed-copy")
  assert.equal(await writer.copied(() => toast.getByRole("button", { name: "Copy the text" }).click()), "One plain sentence. Typed.")
  await galley.run()
  await writer.seated()
})

test("a loop of a ResizeObserver and an error of another origin are not shown", async () => {
  const writer = await browser.newUser(galley)
  await writer.begin("Kim", "One plain sentence.")
  await writer.page.evaluate(async () => {
    window.dispatchEvent(new ErrorEvent("error", { message: "ResizeObserver loop completed with undelivered notifications." }))
    const error = new Error("of an extension")
    error.stack = "Error: of an extension\n    at run (chrome-extension://abcdef/content.js:1:1)"
    window.dispatchEvent(new ErrorEvent("error", { error }))
    window.dispatchEvent(Object.assign(new Event("unhandledrejection"), { reason: { code: 4001 } }))
  })
  assert.equal(await writer.page.locator("#toast p").count(), 0)
})
