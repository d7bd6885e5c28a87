// @ts-check
/** A reload keeps written text that is not sent, and Cancel can be taken back (s1-6). */

import assert from "node:assert/strict"
import { test } from "node:test"

import { until } from "./harness.mjs"
import { browser, galley, withGalley } from "./support.mjs"

withGalley()

test("s1-6: a reload keeps the text and the title on the start page, until the document is created", async () => {
  const { page } = await browser.newUser(galley)
  await page.goto(galley.url)
  await page.locator("#name").fill("김민수")
  await page.locator("#way-paste").click()
  await page.locator("#paste-title").fill("지원서")
  await page.locator("#paste-text").fill("반쯤 쓴 글입니다.")
  await page.reload()
  await page.locator("#paste-text").waitFor()
  assert.equal(await page.locator("#paste-text").inputValue(), "반쯤 쓴 글입니다.")
  assert.equal(await page.locator("#paste-title").inputValue(), "지원서")
  await page.locator("#name").fill("김민수")
  await page.locator("#paste button[type=submit]").click()
  await page.locator("#saved[data-kind=saved]").waitFor()
  await page.goto(galley.url)
  await page.locator("#mine").getByText("지원서").waitFor()
  assert.equal(await page.locator("#paste-text").inputValue(), "")
})

test("s1-6: a reload keeps a half-written comment and a reply, and a cancelled comment can be taken back", async () => {
  const [writer, reviewer] = [await browser.newUser(galley), await browser.newUser(galley)]
  await writer.paste("김민수", "첫 문장입니다. 둘째 문장입니다.")
  await reviewer.follow(await writer.invite(), "이서연")
  await reviewer.seated()
  await reviewer.review("첫 문장", { body: "첫 의견" })
  await reviewer.select("둘째")
  await reviewer.page.keyboard.press("Control+Alt+m")
  const field = reviewer.page.locator(".card-draft textarea:not(.prose)")
  await field.fill("세 문장이나 쓴 의견입니다.")
  await reviewer.page.reload()
  await reviewer.seated()
  await field.waitFor()
  assert.equal(await field.inputValue(), "세 문장이나 쓴 의견입니다.")

  await reviewer.page.locator(".card-draft").getByRole("button", { name: "Cancel" }).click()
  await field.waitFor({ state: "detached" })
  await reviewer.page.locator("#toast").getByRole("button", { name: "Undo" }).click()
  assert.equal(await field.inputValue(), "세 문장이나 쓴 의견입니다.")
  await reviewer.page.keyboard.press("Control+Enter")
  await writer.card("세 문장이나").waitFor()

  await writer.card("첫 의견").click()
  await writer.card("첫 의견").locator(".reply-field").fill("반쯤 쓴 답글")
  await writer.page.reload()
  await writer.seated()
  await writer.card("첫 의견").click()
  assert.equal(await writer.card("첫 의견").locator(".reply-field").inputValue(), "반쯤 쓴 답글")
})

test("s1-6: a tab that crashes has the half-written comment when it is loaded again", async () => {
  const [writer, reviewer] = [await browser.newUser(galley), await browser.newUser(galley)]
  await writer.paste("김민수", "첫 문장입니다. 둘째 문장입니다.")
  await reviewer.follow(await writer.invite(), "이서연")
  await reviewer.seated()
  await reviewer.select("둘째")
  await reviewer.page.keyboard.press("Control+Alt+m")
  await reviewer.page.locator(".card-draft textarea:not(.prose)").fill("탭이 멎기 전에 쓴 의견입니다.")
  const tab = await reviewer.crash()
  tab.send("Page.reload").catch(() => undefined)
  const expression = 'document.querySelector(".card-draft textarea:not(.prose)")?.value ?? ""'
  const written = async () => {
    const answer = await tab.send("Runtime.evaluate", { expression }).catch(() => null)
    return answer?.result.value === "탭이 멎기 전에 쓴 의견입니다."
  }
  await until(written, "the form has the comment")
})
