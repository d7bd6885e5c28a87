// @ts-check
/**
 * Unsaved edits of a closed tab, a closed browser or a lost seat: the browser retains them, recovers them
 * once, and for their user only.
 */

import assert from "node:assert/strict"
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { test } from "node:test"

import { chromium } from "playwright-core"

import { browserPath, drawn, Galley, journaledEdits, TIMEOUT_MS, until, User } from "./harness.mjs"
import { assertAccessible, assertFits, browser, galley, inEachLook, replaceGalley, withGalley } from "./support.mjs"

withGalley({ per: "test" })

/** @param {import("playwright-core").Page} page */
const noStoredEdits = (page) => until(async () => (await journaledEdits({ page })) === 0, "no edit is pending")

/** The writer types while the server is away, and the journal has the edits. @param {User} writer @param {string} begun @param {string} more */
async function unsaved(writer, begun, more) {
  await writer.begin("Kim", begun)
  await galley.end("SIGKILL")
  await writer.notice.getByText("Connection lost.").waitFor()
  await writer.typeAtEnd(more)
  // Each letter is an edit, and the last waits for a quarter of a second.
  await until(async () => (await journaledEdits(writer)) === more.length, "all of it is kept")
}

test("closing a tab warns of unsaved edits, and the next visit recovers them", async () => {
  const writer = await browser.newUser(galley)
  await unsaved(writer, "Kept.", " 잃으면 안 되는 문장.")
  let warned = ""
  writer.page.on("dialog", (dialog) => {
    warned = dialog.type()
    dialog.accept()
  })
  const desk = writer.page.url()
  // A page recovers the edits of closed pages only.
  const closed = writer.page.waitForEvent("close")
  await writer.page.close({ runBeforeUnload: true })
  await until(async () => warned === "beforeunload", "leaving is asked about")
  await closed
  await galley.run()
  const again = new User(galley, await writer.page.context().newPage())
  let warnedAgain = false
  again.page.on("dialog", (dialog) => {
    warnedAgain = true
    dialog.accept()
  })
  await again.page.goto(desk)
  await again.page.getByText("has been put back").waitFor()
  await again.seated()
  await noStoredEdits(again.page)
  // Every edit is saved: closing asks for no confirmation.
  await again.page.reload()
  await again.waitForText("Kept. 잃으면 안 되는 문장.")
  assert.equal(warnedAgain, false)
})

test("a tab crash loses no journaled edit, and the page recovers it once", async () => {
  const writer = await browser.newUser(galley)
  await unsaved(writer, "Here.", " Before the crash.")
  const { page } = writer
  const desk = page.url()
  await writer.crash()
  await galley.run()
  const again = new User(galley, await page.context().newPage())
  await again.page.goto(desk)
  await again.seated()
  await again.waitForText("Here. Before the crash.")
  await noStoredEdits(again.page)
  await again.page.reload()
  await again.seated()
  await again.waitForText("Here. Before the crash.")
  assert.equal(await again.stored(), "Here. Before the crash.")
})

/** So many letters in lines. @param {string} letter @param {number} letters */
const lines = (letter, letters) => `${letter.repeat(59)}\n`.repeat(letters / 60)

/** Pastes at the end, or over all. @param {User} writer @param {string} text @param {string} [at] */
async function paste({ page }, text, at = "Control+End") {
  await page.evaluate((pasted) => navigator.clipboard.writeText(pasted), text)
  await page.locator(".cm-content").click()
  await page.keyboard.press(at)
  await page.keyboard.press("Control+v")
}

test("three pastes of 300,000 letters without the server are stored when it is back, and shown after a reload", async () => {
  const writer = await browser.newUser(galley)
  await writer.begin("Kim", "Begun. ")
  await galley.end("SIGKILL")
  await writer.notice.getByText("Connection lost.").waitFor()
  const pasted = ["가", "나", "다"].map((letter) => lines(letter, 300_000))
  for (const text of pasted) await paste(writer, text)
  await galley.run()
  await until(async () => (await writer.stored()) === `Begun. ${pasted.join("")}`, "all of it is stored")
  await writer.seated()
  await noStoredEdits(writer.page)
  await writer.page.reload()
  await writer.seated()
  assert.match(await writer.text(), /^Begun\. 가{59}/)
  assert.equal(await writer.stored(), `Begun. ${pasted.join("")}`)
})

test("one paste above the longest message is stored, and a journal above it is recovered", async () => {
  await replaceGalley(await Galley.start({ GALLEY_LIMITS__MESSAGE_BYTES: "16384" }))
  const writer = await browser.newUser(galley)
  const { page } = writer
  await writer.begin("Kim", "Begun. ")
  const pasted = lines("가😀", 30_000)
  await paste(writer, pasted, "Control+a")
  await until(async () => (await writer.stored()) === pasted, "the paste is stored")
  await noStoredEdits(page)
  await galley.end("SIGKILL")
  await writer.notice.getByText("Connection lost.").waitFor()
  await paste(writer, lines("나😀", 30_000), "Control+Home")
  await until(async () => (await journaledEdits({ page })) === 1, "the journal has it")
  page.on("dialog", (dialog) => dialog.accept())
  const desk = page.url()
  await page.goto("about:blank")
  await galley.run()
  await page.goto(desk)
  await page.getByText("has been put back").waitFor()
  await until(async () => (await writer.stored()) === lines("나😀", 30_000) + pasted, "the journal is stored")
  await noStoredEdits(page)
})

/** A browser whose profile outlives it. @param {string} profile */
async function launch(profile) {
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: browserPath,
    args: ["--no-sandbox"],
    locale: "en-GB",
    viewport: { width: 1280, height: 800 },
  })
  context.setDefaultTimeout(TIMEOUT_MS)
  return new User(galley, await context.newPage())
}

/** Ends every process that has this profile. @param {string} profile */
function kill(profile) {
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      if (readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(profile)) process.kill(Number(pid), "SIGKILL")
    } catch {
      // The process has ended in between.
    }
  }
}

test("a browser kill loses no journaled edit", async () => {
  const profile = mkdtempSync(join(tmpdir(), "galley-profile-"))
  try {
    const writer = await launch(profile)
    await unsaved(writer, "Written.", " Then the lights went out.")
    // The journal has the last edit, and not only the first ones.
    await until(async () => /^Not saved since/.test((await writer.page.locator("#saved").textContent()) ?? ""), "it is late")
    const desk = writer.page.url()
    const cookies = await writer.page.context().cookies()
    const closed = new Promise((done) => writer.page.context().once("close", done))
    kill(profile)
    await closed
    await galley.run()
    const again = await launch(profile)
    // The browser stores cookies late; the test restores the user's identity.
    await again.page.context().addCookies(cookies)
    await again.page.goto(desk)
    await again.page.getByText("has been put back").waitFor()
    await again.seated()
    await again.waitForText("Written. Then the lights went out.")
    await noStoredEdits(again.page)
    assert.equal(await again.stored(), "Written. Then the lights went out.")
    await again.page.context().close()
  } finally {
    kill(profile)
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 })
  }
})

test("another user of the same browser sees no journaled edit, and its own user recovers it", async () => {
  const writer = await browser.newUser(galley)
  await unsaved(writer, "Mine.", " A secret sentence.")
  const { page } = writer
  page.on("dialog", (dialog) => dialog.accept())
  const desk = page.url()
  const context = page.context()
  const cookies = await context.cookies()
  // At the desk it would connect without its cookies, lose the seat, and mark the edits as lost.
  await page.goto("about:blank")
  await galley.run()
  await context.clearCookies()
  await page.goto(galley.url)
  await page.locator("#name").fill("Park")
  await page.locator("#way-paste").click()
  await page.locator("#paste button[type=submit]").click()
  await writer.seated()
  for (const url of [galley.url, desk]) {
    await page.goto(url)
    // Both pages have read the journal by then.
    await page.locator(url === desk ? "#entry-dialog h1" : "#mine .row").waitFor()
    assert.ok(0 < (await journaledEdits(writer)), "it is still there")
    await drawn(writer)
    assert.doesNotMatch(await page.locator("body").innerText(), /secret sentence/)
    assert.equal(await page.locator("[data-draft]").count(), 0)
  }
  await context.clearCookies()
  await context.addCookies(cookies)
  await page.goto(desk)
  await writer.waitForText("Mine. A secret sentence.")
  await noStoredEdits(page)
})

/** The same user at another browser, who has the seat. @param {User} writer */
async function otherBrowser(writer) {
  await galley.run()
  const storageState = await writer.page.context().storageState()
  const context = await writer.page.context().browser()?.newContext({ storageState, locale: "en-GB" })
  assert.ok(context)
  const other = new User(galley, await context.newPage())
  await other.page.goto(writer.page.url())
  await other.seated()
  return other
}

test("a lost seat shows unsaved edits for download, and a reload asks before it recovers them", async () => {
  const writer = await browser.newUser(galley)
  const { page } = writer
  await unsaved(writer, "A safe sentence.", " An unsaved one. Another.")
  // The page shall not reclaim the seat before the other tab holds it.
  await page.context().setOffline(true)
  const other = await otherBrowser(writer)
  await page.context().setOffline(false)
  await writer.notice.getByText("You have this open in another tab.").waitFor()
  await writer.notice.getByText("These 2 sentences were not saved:").waitFor()
  assert.deepEqual(await writer.notice.locator("li").allTextContents(), ["An unsaved one.", "Another."])
  assert.match((await page.locator("#saved").textContent()) ?? "", /^Not saved since \d\d:\d\d: \d+ characters$/)
  await writer.shot("unsaved-lost")
  const copied = await writer.copied(() => writer.notice.getByRole("button", { name: "Copy" }).click())
  assert.equal(copied, "An unsaved one.\nAnother.")
  const downloading = page.waitForEvent("download")
  await writer.notice.getByRole("button", { name: "Download as a text file" }).click()
  const download = await downloading
  assert.equal(download.suggestedFilename(), "A safe sentence. – not saved.txt")
  assert.equal(readFileSync(await download.path(), "utf8"), "An unsaved one.\nAnother.")

  page.on("dialog", (dialog) => dialog.accept())
  await page.reload()
  const recovered = page.locator("#recovered-drafts")
  await recovered.getByText("An unsaved one.").waitFor()
  await writer.notice.getByText("You have this open in another tab.").waitFor()
  // Without the seat the user can read and download it, and not recover it.
  assert.deepEqual(await recovered.getByRole("button").allTextContents(), ["Copy", "Download as a text file", "Discard"])
  await other.page.close()
  await writer.notice.getByRole("button", { name: "Use it here instead" }).click()
  await recovered.getByRole("button", { name: "Put it back into the text" }).waitFor()
  await writer.waitForText("A safe sentence.")
  await writer.shot("unsaved-offered")
  await recovered.getByRole("button", { name: "Put it back into the text" }).press("Enter")
  await writer.waitForText("A safe sentence. An unsaved one. Another.")
  await writer.seated()
  await noStoredEdits(page)
  await recovered.waitFor({ state: "hidden" })
  await page.reload()
  await writer.waitForText("A safe sentence. An unsaved one. Another.")
  assert.equal(await recovered.isVisible(), false)
  await other.page.context().close()
})

test("what was not saved, in each width and scheme", async () => {
  const writer = await browser.newUser(galley, { locale: "ko-KR" })
  const { page } = writer
  await writer.begin("김민수", "저장된 문장입니다.")
  await galley.end("SIGKILL")
  await writer.notice.getByText(/Connection lost|연결이 끊겼/).waitFor()
  await writer.typeAtEnd(" 저장되지 않은 문장입니다. 그리고 조금 더 긴 문장이 하나 더 있어서, 좁은 화면에서는 여러 줄이 됩니다.")
  await until(async () => 0 < (await journaledEdits({ page })), "it is kept")
  /** @param {string} state */
  const look = (state) =>
    inEachLook(writer, async ({ width, scheme }) => {
      const name = `unsaved-${state}-${width}-${scheme}`
      await assertFits(writer, name)
      await assertAccessible(writer, name)
    })
  await look("offline")
  await page.context().setOffline(true)
  const other = await otherBrowser(writer)
  await page.context().setOffline(false)
  await writer.notice.getByText("아래 2개 문장은 저장되지 않았습니다.").waitFor()
  await look("lost")
  page.on("dialog", (dialog) => dialog.accept())
  await page.reload()
  await page.locator("#recovered-drafts").getByText(/저장하지 못한 내용이 이 브라우저에 남아/).waitFor()
  await writer.notice.getByRole("button").first().waitFor()
  await look("kept")
  await other.page.context().close()
})

test("unsaved edits of a deleted document are shown there and on the start page, until discarded", async () => {
  const writer = await browser.newUser(galley)
  const { page } = writer
  await unsaved(writer, "Doomed.", " 마지막 문장.")
  page.on("dialog", (dialog) => dialog.accept())
  const desk = page.url()
  await page.goto("about:blank")
  await galley.run()
  const id = new URL(desk).pathname.split("/").pop()
  const origin = { origin: galley.url }
  assert.ok((await page.request.delete(`${galley.url}/api/documents/${id}`, { headers: origin })).ok())
  await page.goto(desk)
  await page.locator("#orphaned-drafts").getByText("마지막 문장.").waitFor()
  await writer.shot("unsaved-gone")
  await page.goto(galley.url)
  await page.getByText("Not saved, and the document is gone").waitFor()
  const left = page.locator("#orphaned-drafts")
  const copied = await writer.copied(() => left.getByRole("button", { name: "Copy" }).click())
  assert.equal(copied, "마지막 문장.")
  await writer.shot("unsaved-gone-start")
  await left.getByRole("button", { name: "Discard" }).click()
  await page.getByRole("dialog").getByRole("button", { name: "Discard it" }).click()
  await noStoredEdits(page)
  assert.equal(await left.getByText("마지막 문장.").count(), 0)
})

test("a full browser storage is reported, and earlier journaled edits are retained", async () => {
  const writer = await browser.newUser(galley)
  const { page } = writer
  await writer.begin("Kim", "Small.")
  const client = await page.context().newCDPSession(page)
  await client.send("Storage.overrideQuotaForOrigin", { origin: galley.url, quotaSize: 1 })
  await galley.end("SIGKILL")
  await writer.notice.getByText("What you typed is kept in this browser").waitFor()
  await page.locator(".cm-content").click()
  await page.keyboard.insertText("글".repeat(200_000))
  await writer.notice.getByText("this browser has no room left to keep what you typed").waitFor()
  await client.send("Storage.overrideQuotaForOrigin", { origin: galley.url })
  await page.keyboard.type("!")
  await writer.notice.getByText("What you typed is kept in this browser").waitFor()
  await galley.run()
  await writer.seated()
  await noStoredEdits(page)
})

test("a browser without storage is reported at the first unsaved edit, and everything else works", async () => {
  const writer = await browser.newUser(galley)
  await writer.page.addInitScript(() => {
    IDBFactory.prototype.open = () => {
      throw new DOMException("storage is switched off", "SecurityError")
    }
  })
  await writer.begin("Kim", "Private.")
  await galley.end("SIGKILL")
  await writer.notice.getByText("this browser keeps nothing").waitFor()
  await writer.typeAtEnd(" Typed.")
  await galley.run()
  await writer.seated()
  await writer.waitForText("Private. Typed.")
  assert.equal(await writer.stored(), "Private. Typed.")
})
