// @ts-check
/**
 * A deleted document: its open pages, the bin of the start page, revoked links of the admin page, and unknown
 * addresses; at 360 px and 1280×720.
 */

import assert from "node:assert/strict"
import { test } from "node:test"

import { Galley, journaledEdits, openMenu, until } from "./harness.mjs"
import { assertAccessible, assertFits, bothSeated, browser, galley, replaceGalley, withGalley } from "./support.mjs"

/** @typedef {import("./harness.mjs").User} User */

withGalley({ per: "test" })

const SIZES = [{ width: 1280, height: 720 }, { width: 360, height: 740 }]

/** Fits and is accessible at both sizes. @param {User} user @param {string} name */
async function looks(user, name) {
  const before = user.page.viewportSize()
  for (const size of SIZES) {
    await user.resize(size)
    await assertFits(user, `${name}-${size.width}`)
    await assertAccessible(user, `${name} at ${size.width}`)
  }
  if (before) await user.resize(before)
}

/** The start page of a writer, in a tab of its own. @param {User} writer */
async function startPage(writer) {
  const page = await writer.page.context().newPage()
  await page.goto(galley.url)
  await page.locator("#mine .row").first().waitFor()
  return page
}

/** A writer and a reviewer in one document. @param {import("./harness.mjs").UserOptions} [options] */
const two = (options = {}) => bothSeated("Soon gone.", options, {}, ["Kim", "Lee"])

const said = {
  own: /You deleted this document at \d\d:\d\d\. It stays in your bin for 30 days\./,
  other: /Kim deleted this document at \d\d:\d\d\. It stays in the bin of Kim for 30 days\./,
  saved: /is saved/,
  remove: /^Delete: Soon gone/,
  copy: "Copy the text",
  restore: "Restore the document",
}

test("the pages of a deleted document name the deletion, offer the text and never call it saved", async () => {
  const { writer, reviewer } = await two()
  const list = await startPage(writer)
  await list.getByRole("button", { name: said.remove }).click()
  for (const [user, sentence] of /** @type {const} */ ([[writer, said.own], [reviewer, said.other]])) {
    await user.notice.getByText(sentence).waitFor()
    assert.equal(await user.page.getByText(said.saved).count(), 0)
    assert.equal(await user.page.locator("#saved").textContent(), "")
    assert.equal(await user.page.locator("#invite").isVisible(), false)
    const own = user.page.locator("#seat-badges li", { hasText: "(you)" })
    assert.match((await own.textContent()) ?? "", /left/, "nobody is empty")
    const copied = await user.copied(() => user.notice.getByRole("button", { name: said.copy }).click())
    assert.equal(copied, "Soon gone.")
    const restores = await user.notice.getByRole("button", { name: said.restore }).count()
    assert.equal(restores, user === writer ? 1 : 0)
    await looks(user, `bin-${user === writer ? "own" : "other"}`)
  }
  // The same sentence after a reload.
  for (const [user, sentence] of /** @type {const} */ ([[writer, said.own], [reviewer, said.other]])) {
    user.page.on("dialog", (dialog) => dialog.accept())
    await user.page.reload()
    await user.page.locator("#entry-dialog").getByText(sentence).waitFor()
    assert.equal(await user.page.getByText(said.saved).count(), 0)
    await looks(user, `bin-reloaded-${user === writer ? "own" : "other"}`)
  }
  assert.equal(await reviewer.page.getByRole("button", { name: said.restore }).count(), 0)
  await writer.page.getByRole("button", { name: said.restore }).click()
  await writer.seated()
  await writer.waitForText("Soon gone.")
  // The other page learns of the restore by itself.
  await reviewer.seated()
  await reviewer.waitForText("Soon gone.")
})

test("a paused tab learns of the deletion when it is in use again", async () => {
  const { writer } = await two()
  const second = await writer.page.context().newPage()
  await second.goto(writer.page.url())
  // Its text is shown from then on, and read again every 15 s: a deletion must not wait for that.
  await second.locator("#notice .button-strong").click()
  await second.locator("#saved[data-kind=saved]").waitFor()
  await writer.notice.waitFor()
  await until(() => writer.page.evaluate(() => document.body.dataset.served === "true"), "the paused tab shows the text")
  const list = await startPage(writer)
  await list.getByRole("button", { name: said.remove }).click()
  await second.locator("#notice").getByText(said.own).waitFor()
  assert.equal(await writer.notice.getByText(said.own).count(), 0, "no event reaches the paused tab")
  const begun = Date.now()
  await writer.page.evaluate(() => window.dispatchEvent(new Event("focus")))
  await writer.notice.getByText(said.own).waitFor()
  assert.ok(Date.now() - begun < 10_000, "at once")
  assert.equal(await writer.page.getByText(said.saved).count(), 0)
  assert.equal(await writer.copied(() => writer.notice.getByRole("button", { name: said.copy }).click()), "Soon gone.")
  await writer.notice.getByRole("button", { name: said.restore }).click()
  await writer.seated()
  await writer.waitForText("Soon gone.")
  await second.evaluate(() => window.dispatchEvent(new Event("focus")))
  await second.locator("#notice").getByText(said.own).waitFor({ state: "hidden" })
})

test("a paused tab of a document that is in no bin reports the deletion, also while it is not in use", async () => {
  await replaceGalley(await Galley.start({ GALLEY_LIMITS__BIN_RETENTION: "0s" }))
  const { writer } = await two({ hasClock: true })
  const second = await writer.page.context().newPage()
  await second.goto(writer.page.url())
  await second.locator("#notice .button-strong").click()
  await second.locator("#saved[data-kind=saved]").waitFor()
  await until(() => writer.page.evaluate(() => document.body.dataset.served === "true"), "the paused tab shows the text")
  const list = await startPage(writer)
  await list.getByRole("button", { name: said.remove }).click()
  await list.getByRole("dialog").getByRole("button", { name: "Delete it" }).click()
  // It reads the text again every 15 s.
  await writer.page.clock.fastForward(15_000)
  await writer.notice.getByText("This document was deleted.").waitFor()
  assert.equal(await writer.page.getByText("is saved").count(), 0)
})

test("the open page of a deleted document restores it, with what was unsaved", async () => {
  const { writer } = await two()
  const list = await startPage(writer)
  await list.getByRole("button", { name: /^Delete: Soon gone/ }).click()
  await writer.notice.getByRole("button", { name: "Restore the document" }).press("Enter")
  await writer.seated()
  await writer.waitForText("Soon gone.")
  await writer.typeAtEnd(" Or not.")
  await writer.page.locator("#saved[data-kind=saved]").waitFor()
})

test("the start page moves a document to the bin, undoes it, restores it and deletes it for ever", async () => {
  const writer = await browser.newUser(galley)
  await writer.paste("Kim", "First one.")
  const { page } = writer
  await page.goto(galley.url)
  const [mine, bin] = [page.locator("#mine"), page.locator("#bin")]
  const remove = mine.getByRole("button", { name: "Delete: First one." })
  await remove.click()
  await page.locator("#toast").getByText("“First one.” was moved to the bin.").waitFor()
  await mine.getByText("Nothing here yet.").waitFor()
  await bin.getByText("Bin (1)").waitFor()
  await until(() => page.evaluate(() => document.activeElement?.id === "mine-title"), "the focus is in the list")
  // With the focus in it the toast stays, however long the looks take.
  const undo = page.locator("#toast").getByRole("button", { name: "Undo" })
  await undo.focus()
  await looks(writer, "bin-moved")
  await undo.press("Enter")
  await page.locator("#toast").getByText("“First one.” is back in your documents.").waitFor()
  await mine.getByRole("link", { name: "First one." }).waitFor()
  await bin.waitFor({ state: "hidden" })

  await remove.click()
  await bin.getByText("Bin (1)").waitFor()
  await bin.locator("summary").press("Enter")
  const row = bin.locator("li")
  await row.getByText(/^deleted \d\d:\d\d · deleted permanently on \w+/).waitFor()
  await looks(writer, "bin-open")
  await row.getByRole("button", { name: "Restore: First one." }).press("Enter")
  await mine.getByRole("link", { name: "First one." }).waitFor()
  await until(() => page.evaluate(() => document.activeElement?.id === "mine-title"), "the focus is in the list")

  await remove.click()
  // The section is open still: the list is drawn anew, and not the section.
  const purge = row.getByRole("button", { name: "Delete permanently: First one." })
  await purge.click()
  const dialog = page.getByRole("dialog")
  await dialog.getByText("Delete “First one.” permanently, with all its comments and versions? This cannot be undone.").waitFor()
  await dialog.getByRole("button", { name: "Cancel" }).click()
  await purge.click()
  await dialog.getByRole("button", { name: "Delete permanently" }).click()
  await page.locator("#toast").getByText("“First one.” was deleted permanently.").waitFor()
  await bin.waitFor({ state: "hidden" })
  await mine.getByText("Nothing here yet.").waitFor()
})

test("the bin of the start page in Korean", async () => {
  const writer = await browser.newUser(galley, { locale: "ko-KR" })
  await writer.begin("김민수", "지원동기")
  const { page } = writer
  await page.goto(galley.url)
  await page.locator("#mine").getByRole("button", { name: "삭제: 지원동기" }).click()
  await page.locator("#toast").getByText("‘지원동기’ 문서를 휴지통으로 옮겼습니다.").waitFor()
  await openMenu({ page }, "#bin details")
  await page.locator("#bin").getByText(/완전히 삭제됨/).waitFor()
  // With the focus in it the toast stays, however long the looks take.
  const undo = page.locator("#toast").getByRole("button", { name: "실행 취소" })
  await undo.focus()
  await looks(writer, "bin-open-ko")
  await undo.click()
  await page.locator("#mine").getByRole("link", { name: "지원동기" }).waitFor()
})

test("without a bin the start page asks before it deletes for ever", async () => {
  await replaceGalley(await Galley.start({ GALLEY_LIMITS__BIN_RETENTION: "0s" }))
  const writer = await browser.newUser(galley)
  await writer.begin("Kim", "Only one.")
  const list = await startPage(writer)
  await list.locator("#mine").getByRole("button", { name: "Delete: Only one." }).click()
  await list.getByRole("dialog").getByText("This cannot be undone.").waitFor()
  await list.getByRole("dialog").getByRole("button", { name: "Delete it" }).click()
  await list.locator("#mine").getByText("Nothing here yet.").waitFor()
  assert.equal(await list.locator("#bin").isVisible(), false)
  // The deletion is in no bin, so the page names neither its user nor its time.
  await writer.notice.getByText("This document was deleted.").waitFor()
  assert.equal(await writer.notice.getByRole("button", { name: "Restore the document" }).count(), 0)
  assert.equal(await writer.page.getByText("is saved").count(), 0)
})

test("unsaved edits have a line of their own on the start page, which puts them back", async () => {
  const writer = await browser.newUser(galley)
  const { page } = writer
  await writer.begin("Kim", "Begun.")
  page.on("dialog", (dialog) => dialog.accept())
  await galley.end("SIGKILL")
  await page.locator(".cm-content").click()
  await page.keyboard.press("Control+End")
  await page.keyboard.type(" More.")
  await writer.notice.waitFor()
  await until(async () => (await journaledEdits(writer)) === " More.".length, "the journal has the edits")
  await page.goto("about:blank")
  await galley.run()
  await page.goto(galley.url)
  const row = page.locator("#mine .row")
  await row.locator(".row-unsaved").getByText("Something you wrote is kept in this browser only and not saved yet.").waitFor()
  const color = await row.locator(".row-unsaved").evaluate((element) => getComputedStyle(element).color)
  assert.notEqual(color, await row.locator(".quiet").first().evaluate((element) => getComputedStyle(element).color))
  await looks(writer, "bin-unsaved")
  await row.getByRole("link", { name: "Open and put back" }).press("Enter")
  await writer.seated()
  await writer.waitForText("Begun. More.")
  await page.locator("#saved[data-kind=saved]").waitFor()
})

test("the admin page shows titles, explains its terms and revokes a link", async () => {
  const { writer, reviewer } = await two()
  const admin = await browser.newUser(galley)
  const { page } = admin
  await page.goto(`${galley.url}/admin`)
  await page.locator("#token").fill(galley.adminToken)
  await page.keyboard.press("Enter")
  await until(async () => (await page.locator("#rows").getByText("Soon gone.").count()) === 2, "both seats are listed")
  await page.locator("#columns").getByText("Fence").waitFor()
  await openMenu({ page }, ".legend")
  await page.locator("p.quiet", { hasText: "fence" }).first().waitFor()
  await looks(admin, "bin-admin")
  await page.getByRole("button", { name: "Revoke link: Soon gone., Kim" }).click()
  await page.getByRole("dialog").getByText("Soon gone.").waitFor()
  await assertAccessible(admin, "the question")
  await page.getByRole("dialog").getByRole("button", { name: "Revoke the link" }).click()
  await page.locator("#toast").getByText("was revoked").waitFor()
  for (const user of [writer, reviewer]) await user.notice.getByText("withdrawn").waitFor()
  await until(async () => (await page.locator("#rows tr").count()) === 0, "the seats are free")
})

test("an unknown address is a page with a way on", async () => {
  const user = await browser.newUser(galley)
  const { page } = user
  const response = await page.goto(`${galley.url}/nonsense/here`)
  assert.equal(response?.status(), 404)
  await page.getByRole("heading", { name: "There is no page at this address." }).waitFor()
  assert.equal(await page.getByRole("heading").count(), 1)
  await looks(user, "bin-unknown")
  await page.emulateMedia({ colorScheme: "dark" })
  await assertAccessible(user, "dark")
  await page.getByRole("link", { name: "Go to the start page" }).press("Enter")
  await page.locator("#ways").waitFor()
})
