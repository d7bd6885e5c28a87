// @ts-check
/** A reload keeps written text that is not sent, and Cancel can be taken back; no other loss takes it either. */

import assert from "node:assert/strict"
import { readFile } from "node:fs/promises"
import { test } from "node:test"

import { until } from "./harness.mjs"
import { assertAccessible, bothSeated, browser, galley, withGalley } from "./support.mjs"

withGalley()

test("a reload keeps the text and the title on the start page, until the document is created", async () => {
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

test("a reload keeps a half-written comment and a reply, and a cancelled comment can be taken back", async () => {
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

test("a tab that crashes has the half-written comment when it is loaded again", async () => {
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

test("a replaced reviewer copies, saves and discards what was not sent, also after a reload", async () => {
  const { writer, reviewer } = await bothSeated("첫 문장입니다. 둘째 문장입니다.")
  const { page } = reviewer
  await writer.select("첫 문장")
  await writer.page.keyboard.press("Control+Alt+m")
  await writer.page.keyboard.type("이대로 둘까요?")
  await writer.page.keyboard.press("Control+Enter")
  await reviewer.card("이대로 둘까요?").click()
  await reviewer.card("이대로 둘까요?").locator(".reply-field").fill("반쯤 쓴 답글")
  await reviewer.select("둘째")
  await page.keyboard.press("Control+Alt+m")
  const field = page.locator(".card-draft textarea:not(.prose)")
  await field.fill("반쯤 쓴 의견입니다.")
  await writer.page.evaluate(async () => {
    const api = await source("api")
    const id = location.pathname.split("/").pop() ?? ""
    await api.removeReviewer((await api.shareLink(id)).id)
  })
  await reviewer.notice.getByText("The writer has changed the reviewer").waitFor()
  await reviewer.notice.getByText("did not send it").waitFor()

  // Neither form can be sent, and each says why.
  for (const form of [page.locator(".card-draft form"), reviewer.card("이대로 둘까요?").locator("form.reply")]) {
    const send = form.locator("button[type=submit]")
    await until(() => send.isDisabled(), "the form cannot be sent")
    assert.ok((await send.getAttribute("title"))?.includes("The writer has changed the reviewer"))
    assert.equal(await form.locator("textarea").last().getAttribute("readonly"), "")
  }
  await field.press("Control+Enter")
  assert.equal(await field.inputValue(), "반쯤 쓴 의견입니다.")

  const copied = () => reviewer.copied(() => page.getByRole("button", { name: "Copy", exact: true }).click())
  const saved = async () => {
    const download = page.waitForEvent("download")
    await page.getByRole("button", { name: "Download as a text file" }).click()
    return readFile(await (await download).path(), "utf8")
  }
  assert.equal(await copied(), "반쯤 쓴 의견입니다.\n반쯤 쓴 답글")
  assert.equal(await saved(), "반쯤 쓴 의견입니다.\n반쯤 쓴 답글")
  await assertAccessible(reviewer, "replaced, with unsent words")

  await page.reload()
  const rest = page.locator("#orphaned-drafts")
  await rest.getByText("did not send it").waitFor()
  assert.equal(await copied(), "반쯤 쓴 의견입니다.\n반쯤 쓴 답글")
  assert.equal(await saved(), "반쯤 쓴 의견입니다.\n반쯤 쓴 답글")
  await assertAccessible(reviewer, "replaced and reloaded, with unsent words")
  await rest.getByRole("button", { name: "Discard" }).click()
  await page.getByRole("dialog").getByRole("button", { name: "Discard it", exact: true }).click()
  await rest.waitFor({ state: "hidden" })
  await page.reload()
  await page.getByRole("heading", { level: 1 }).waitFor()
  assert.equal(await rest.isVisible(), false)
})

test("a comment and a reply that failed offline lose their error with the return, and are sent once", async () => {
  const { writer, reviewer } = await bothSeated("첫 문장입니다. 둘째 문장입니다.")
  await reviewer.review("첫 문장", { body: "첫 의견" })
  const { page } = reviewer
  await writer.card("첫 의견").click()
  await writer.card("첫 의견").locator(".reply-field").fill("답글입니다.")
  await reviewer.select("둘째")
  await page.keyboard.press("Control+Alt+m")
  await page.keyboard.type("둘째 의견")
  await galley.end("SIGKILL")
  const failed = "The server could not be reached. Your words are kept; send again."
  const notes = [page.locator(".card-draft .form-error"), writer.card("첫 의견").locator(":scope > .form-error")]
  await page.keyboard.press("Control+Enter")
  await writer.card("첫 의견").locator(".reply-field").press("Control+Enter")
  for (const note of notes) await note.getByText(failed).waitFor()
  await galley.run()
  for (const note of notes) await note.getByText("Connected again. You can send it now.").waitFor()
  assert.equal(await page.getByText(failed).count() + await writer.page.getByText(failed).count(), 0)
  assert.equal(await writer.card("둘째 의견").count(), 0, "it is not sent by itself")
  await page.locator(".card-draft button[type=submit]").click()
  await writer.card("둘째 의견").waitFor()
  await writer.card("첫 의견").locator(".reply-field").press("Control+Enter")
  await reviewer.card("답글입니다.").waitFor({ state: "attached" })
  // The other page may have the reply before this one has its answer.
  await until(async () => (await writer.card("첫 의견").locator(":scope > .form-error").textContent()) === "", "the error is gone")
})

test("a comment and a reply that arrived without an answer are not sent twice", async () => {
  const { writer, reviewer } = await bothSeated("첫 문장입니다. 둘째 문장입니다.")
  // The request arrives, and its answer does not.
  await reviewer.page.route(/\/(reviews|replies)$/, async (route) => {
    if (route.request().method() !== "POST") return route.continue()
    await route.fetch()
    await route.abort()
  })
  await reviewer.select("둘째")
  await reviewer.page.keyboard.press("Control+Alt+m")
  await reviewer.page.keyboard.type("둘째 의견")
  await reviewer.page.keyboard.press("Control+Enter")
  await reviewer.page.locator(".card-draft").waitFor({ state: "detached" })
  await reviewer.card("둘째 의견").click()
  const reply = reviewer.card("둘째 의견").locator(".reply-field")
  await reply.fill("덧붙입니다.")
  await reply.press("Control+Enter")
  await reviewer.card("둘째 의견").locator(".replies li").waitFor()
  await until(async () => (await reply.inputValue()) === "", "the field is empty")
  assert.equal(await reviewer.card("둘째 의견").locator(":scope > .form-error").textContent(), "")
  await writer.card("둘째 의견").locator(".replies li").first().waitFor({ state: "attached" })
  assert.equal(await writer.card("둘째 의견").count(), 1)
  assert.equal(await writer.card("둘째 의견").locator(".replies li").count(), 1)
})
