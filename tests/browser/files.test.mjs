// @ts-check
/**
 * Documents as files: the export of each format from the menu, and the import of a dropped or chosen file;
 * refusals with their remedy; at 360 px and 1280×720.
 */

import assert from "node:assert/strict"
import { readFileSync } from "node:fs"
import { test } from "node:test"

import { archive, DOCX, drop, file } from "./given_files.mjs"
import { enter, openMenu, until } from "./harness.mjs"
import { assertAccessibleIn, WORDS } from "./looks.mjs"
import { assertAccessible, assertFits, bothSeated, browser, galley, withGalley } from "./support.mjs"

/** @typedef {import("./harness.mjs").User} User */

withGalley()

const SIZES = [{ width: 1280, height: 720 }, { width: 360, height: 740 }]
/** In the order of the list. */
const FORMATS = ["docx", "pdf", "html", "md", "txt"]
const TEXT = "I write.\n나는 글을 쓴다."
const COMMENT = "Which text?"

/** Fits and is accessible at both sizes. @param {User} user @param {string} name @param {string} [part] */
async function looks(user, name, part) {
  const before = user.page.viewportSize()
  for (const size of SIZES) {
    await user.resize(size)
    await assertFits(user, `files-${name}-${size.width}`)
    if (part) await assertFits(user, `files-${name}-${size.width}-part`, part)
    await assertAccessible(user, `${name} at ${size.width}`)
  }
  if (before) await user.resize(before)
}

/** A writer, and a reviewer with one comment. */
async function reviewed() {
  const { writer, reviewer } = await bothSeated(TEXT, {}, {}, ["Kim", "Lee"])
  await reviewer.review("나는 글을", { body: COMMENT })
  await writer.card(COMMENT).waitFor()
  return { writer, reviewer }
}

/** Opens the dialog from the menu, by the keyboard alone. @param {User} user @param {string} entry */
async function openExport({ page }, entry) {
  await openMenu({ page }, "#menu", enter)
  await page.locator("#menu-panel").getByRole("button", { name: entry, exact: true }).press("Enter")
  await page.locator("#export-dialog[open]").waitFor()
}

/** Answers of exports after the page's own tests of them. @param {User} user @param {(answers: number) => object | null} answer */
async function answerExports({ page }, answer) {
  let answers = 0
  await page.route("**/api/share-links/*/export?*", async (route) => {
    const given = answer(answers)
    answers += 1
    await (given ? route.fulfill(given) : route.continue())
  })
}

/** A problem as the server sends it. @param {number} status @param {string} name */
const problem = (status, name) => ({
  status,
  contentType: "application/problem+json",
  body: JSON.stringify({ type: `https://galley.test/problems/${name}`, title: name, status }),
})

const said = {
  entry: "Export",
  title: "Export the document",
  format: "Format",
  reviews: "With comments and suggestions",
  go: "Download",
  print: "Print…",
}

test("each format is exported by the keyboard, with comments and without", async () => {
  const { writer } = await reviewed()
  const { page } = writer
  for (const [format, isReviewed] of /** @type {const} */ ([["docx", true], ["pdf", true], ["html", true], ["md", true], ["txt", true], ["txt", false]])) {
    await openExport(writer, said.entry)
    const dialog = page.getByRole("dialog", { name: said.title })
    const field = dialog.getByLabel(said.format)
    assert.ok(await field.evaluate((element) => element === document.activeElement), "the focus is in the dialog")
    await field.press("Home")
    for (let steps = FORMATS.indexOf(format); 0 < steps; steps -= 1) await field.press("ArrowDown")
    assert.equal(await field.inputValue(), format)
    const check = dialog.getByRole("checkbox", { name: said.reviews })
    assert.equal(await check.isChecked(), true)
    if (!isReviewed) await check.press("Space")
    const downloads = page.waitForEvent("download")
    await dialog.getByRole("button", { name: said.go }).press("Enter")
    const download = await downloads
    assert.equal(download.suggestedFilename(), `I write.${format}`)
    const bytes = readFileSync(await download.path())
    const text = bytes.toString("utf8")
    if (format === "docx") assert.equal(text.slice(0, 2), "PK")
    else if (format === "pdf") assert.equal(text.slice(0, 5), "%PDF-")
    else {
      assert.ok(text.includes("나는"), text)
      assert.equal(text.includes(COMMENT), isReviewed, text)
    }
    if (format === "html") assert.match(text, /^<!doctype html>/i)
    await page.locator("#toast").getByText(/^Downloaded as “(.+)”\.$/).first().waitFor()
    await page.locator("#export-dialog").waitFor({ state: "hidden" })
    await until(() => page.evaluate(() => document.activeElement?.closest("#menu") !== null), "the focus is at the menu")
    // The next dialog begins as the first one did.
    await page.evaluate(() => /** @type {HTMLInputElement} */ (document.querySelector("#export-reviews")).checked = true)
  }
})

test("an export shows its progress, can be closed, and names its failure with a remedy", async () => {
  const { writer } = await reviewed()
  const { page } = writer
  const dialog = page.getByRole("dialog", { name: said.title })
  const building = { status: 202, contentType: "application/json", headers: { "retry-after": "1" }, body: JSON.stringify({ status: "building", progress: 40 }) }
  await openExport(writer, said.entry)
  await looks(writer, "export", "#export-dialog")

  let isReady = false
  await answerExports(writer, () => (isReady ? null : building))
  await dialog.getByRole("button", { name: said.go }).press("Enter")
  const bar = dialog.getByRole("progressbar")
  await until(async () => (await bar.getAttribute("value")) === "40", "the server's progress is shown")
  assert.equal(await dialog.getByRole("status").textContent(), "The server is making the file…")
  await looks(writer, "export-progress", "#export-dialog")
  // A closed dialog waits no more: the file is not downloaded behind the user's back.
  const [downloads, download] = [/** @type {string[]} */ ([]), page.waitForEvent("download")]
  page.on("download", (begun) => downloads.push(begun.suggestedFilename()))
  await page.keyboard.press("Escape")
  await dialog.waitFor({ state: "hidden" })
  await openExport(writer, said.entry)
  assert.equal(await bar.count(), 0)
  await dialog.getByRole("button", { name: said.go }).press("Enter")
  await bar.waitFor()
  isReady = true
  await download
  assert.equal(downloads.length, 1)
  await dialog.waitFor({ state: "hidden" })
  await page.unroute("**/api/share-links/*/export?*")

  await answerExports(writer, () => problem(409, "export-too-large"))
  await openExport(writer, said.entry)
  await dialog.getByRole("button", { name: said.go }).press("Enter")
  await dialog.getByRole("alert").getByText(/^No file was made\. The file would have more than 16 MB\. Export it without comments/).waitFor()
  assert.equal(await bar.count(), 0)
  await looks(writer, "export-failed", "#export-dialog")
  await page.unroute("**/api/share-links/*/export?*")
  await page.route("**/api/share-links/*/export?*", (route) => route.abort())
  await dialog.getByRole("button", { name: said.go }).press("Enter")
  await dialog.getByRole("alert").getByText(/^No file was made\. The server cannot be reached\./).waitFor()
  await page.unroute("**/api/share-links/*/export?*")
  const again = page.waitForEvent("download")
  await dialog.getByRole("button", { name: said.go }).press("Enter")
  await again
})

test("where the server makes no PDF, the dialog leads to the print of the page", async () => {
  const { writer } = await reviewed()
  const { page } = writer
  const formats = ["docx", "html", "md", "txt"]
  await page.route("**/api/export-formats", (route) => route.fulfill({ json: { formats } }))
  await openExport(writer, said.entry)
  const dialog = page.getByRole("dialog", { name: said.title })
  await dialog.getByLabel(said.format).selectOption("pdf")
  await dialog.getByText("This server makes no PDF, but your browser does:").waitFor()
  await dialog.getByRole("checkbox", { name: said.reviews }).waitFor({ state: "hidden" })
  await looks(writer, "export-print", "#export-dialog")
  await dialog.getByRole("button", { name: said.print, exact: true }).press("Enter")
  await dialog.waitFor({ state: "hidden" })
  await page.locator(".print-dialog[open]").waitFor()
  await page.keyboard.press("Escape")
  await page.unroute("**/api/export-formats")

  // A server that lost its font since it was asked.
  await answerExports(writer, () => problem(501, "format-not-available"))
  await openExport(writer, said.entry)
  await dialog.getByLabel(said.format).selectOption("pdf")
  await dialog.getByRole("button", { name: said.go }).press("Enter")
  await dialog.getByRole("alert").getByText(/^No file was made\. This server makes no PDF\. Print the document instead/).waitFor()
  await dialog.getByRole("button", { name: said.print, exact: true }).waitFor()
})

test("an export has the browser's time zone, and none that the server does not know", async () => {
  const { writer } = await reviewed()
  const { page } = writer
  const own = await page.evaluate(() => Intl.DateTimeFormat().resolvedOptions().timeZone)
  /** @type {(string | null)[]} */
  const zones = []
  page.on("request", (request) => {
    const { pathname, searchParams } = new URL(request.url())
    if (pathname.endsWith("/export")) zones.push(searchParams.get("zone"))
  })
  const save = async () => {
    const download = page.waitForEvent("download")
    await openExport(writer, "Export")
    await page.getByRole("dialog").getByRole("button", { name: "Download" }).press("Enter")
    await download
    return zones.splice(0)
  }
  assert.deepEqual(new Set(await save()), new Set([own]))
  await page.evaluate(() => {
    const options = Intl.DateTimeFormat.prototype.resolvedOptions
    Intl.DateTimeFormat.prototype.resolvedOptions = function () {
      return { ...options.call(this), timeZone: "Mars/Olympus" }
    }
  })
  const [first, ...rest] = await save()
  assert.equal(first, "Mars/Olympus")
  assert.deepEqual(new Set(rest), new Set([null]))
})

test("a reviewer exports, too; the dialog says what is not in the file while something is unsaved", async () => {
  const { writer, reviewer } = await reviewed()
  const download = reviewer.page.waitForEvent("download")
  await openExport(reviewer, "Export")
  await reviewer.page.getByRole("dialog").getByRole("button", { name: "Download" }).press("Enter")
  assert.equal((await download).suggestedFilename(), "I write.docx")

  // Without a connection a page loads no other language.
  for (const language of ["ko", "en"]) await writer.page.evaluate(async (chosen) => (await source("i18n")).i18n.setLanguage(chosen), language)
  await writer.page.context().setOffline(true)
  await writer.page.locator(".cm-content").click()
  await writer.page.keyboard.type("Unsaved. ")
  await openExport(writer, "Export")
  await writer.page.getByText("Your last words are not saved yet").waitFor()
  await assertAccessibleIn(writer, "an export with unsaved words", WORDS)
})

/** A real Word file of the server, of a text of its own. @param {User} user @returns {Promise<Buffer>} */
async function wordFile(user) {
  await openExport(user, "Export")
  const download = user.page.waitForEvent("download")
  await user.page.getByRole("dialog").getByRole("button", { name: "Download" }).press("Enter")
  return readFileSync(await (await download).path())
}

test("a chosen file becomes a document, by the keyboard", async () => {
  const user = await browser.newUser(galley, { locale: "ko-KR" })
  const { page } = user
  await page.goto(galley.url)
  await page.locator("#name").fill("Kim")
  await page.getByRole("button", { name: "파일 열기" }).press("Enter")
  const choose = page.getByRole("button", { name: "파일 선택" })
  assert.ok(await choose.evaluate((element) => element === document.activeElement), "the focus is at the choice")
  await looks(user, "import")
  const chooser = page.waitForEvent("filechooser")
  await choose.press("Enter")
  // The name as a Mac spells it.
  await (await chooser).setFiles(file("자기소개서.md".normalize("NFD"), "# 지원동기\r\n나는 쓴다.", "text/markdown"))
  await user.seated()
  await user.waitForText("# 지원동기\n나는 쓴다.")
  assert.equal(await page.locator("#title").inputValue(), "자기소개서")
})

test("a dropped file waits for a name, and becomes a document", async () => {
  const user = await browser.newUser(galley, { locale: "ko-KR" })
  const { page } = user
  await page.goto(galley.url)
  await page.locator("#ways").waitFor()
  const given = file("notes.txt", "One.\nTwo.", "text/plain")
  await drop(user, [given], "dragover")
  await page.getByText("여기에 놓으면 문서가 됩니다.").waitFor()
  await looks(user, "import-drag")
  await drop(user, [given])
  await page.getByText("여기에 놓으면 문서가 됩니다.").waitFor({ state: "hidden" })
  await page.getByRole("alert").getByText("먼저 이름을 적어 주세요.").waitFor()
  assert.ok(await page.locator("#name").evaluate((element) => element === document.activeElement), "the focus is in the field of the name")
  await page.locator("#file").getByText("notes.txt (1 KB)").waitFor()
  await looks(user, "import-name")
  await page.locator("#name").fill("Kim")
  await page.locator("#file").getByRole("button", { name: "시작하기" }).press("Enter")
  await user.seated()
  await user.waitForText("One.\nTwo.")
})

test("a file that cannot become a document is refused with a remedy, and nothing is made", async () => {
  const user = await browser.newUser(galley, { locale: "ko-KR" })
  const { page } = user
  await page.goto(galley.url)
  await page.locator("#name").fill("Kim")
  const error = page.locator("#file").getByRole("alert")
  await drop(user, [file("a.hwp", "x")])
  await error.getByText(/\.docx, \.md, \.txt 파일만 열 수 있습니다\./).waitFor()
  await drop(user, [file("large.txt", Buffer.alloc(16 * 1024 * 1024 + 1, "a"), "text/plain")])
  await error.getByText(/^‘large\.txt’ 파일로 문서를 만들지 못했습니다\. 파일이 너무 크거나.+16MB.+다시 시도/).waitFor()
  await drop(user, [file("a.txt", "a"), file("b.txt", "b")])
  await error.getByText("파일을 여러 개 놓으셨습니다. 하나씩 놓아 주세요.").waitFor()
  // The server itself refuses the next ones.
  const bomb = archive("word/document.xml", Buffer.alloc(80 * 1024 * 1024, " "))
  assert.ok(bomb.length < 1024 * 1024)
  await drop(user, [file("bomb.docx", bomb, DOCX)])
  await error.getByText(/^‘bomb\.docx’ 파일로 문서를 만들지 못했습니다\. 파일이 너무 크거나 압축을 풀면 너무 커집니다/).waitFor()
  await drop(user, [file("broken.docx", "PK\u0003\u0004 no archive", DOCX)])
  await error.getByText(/^‘broken\.docx’ 파일로 문서를 만들지 못했습니다\. 파일이 손상되었거나.+다시 저장한/).waitFor()
  await until(() => page.evaluate(() => document.activeElement?.id === "file-choose"), "the focus is at another choice")
  await looks(user, "import-refused")
  assert.equal(await page.locator("#mine .row").count(), 0)
  // The refused user is known by now, and another file goes through.
  await drop(user, [file("good.txt", "Good.", "text/plain")])
  await user.seated()
  await user.waitForText("Good.")
})

test("a Word file comes back as the text that it was made of", async () => {
  const { writer } = await reviewed()
  const bytes = await wordFile(writer)
  await writer.page.goto(galley.url)
  await writer.page.locator("#ways").waitFor()
  await drop(writer, [file("again.docx", bytes, DOCX)])
  await writer.seated()
  await writer.waitForText(TEXT)
  assert.equal(await writer.page.locator("#title").inputValue(), "again")
})

test("an upload shows its progress and can be cancelled; a lost one asks to look before it is sent again", async () => {
  const user = await browser.newUser(galley)
  const { page } = user
  await page.goto(galley.url)
  await page.locator("#name").fill("Kim")
  const form = page.locator("#file")
  // No answer comes until the test gives one up.
  /** @type {import("playwright-core").Route[]} */
  const held = []
  await page.route("**/api/documents/import?*", (route) => void held.push(route))
  await drop(user, [file("slow.txt", "Slow.", "text/plain")])
  await form.getByRole("progressbar").waitFor()
  await form.getByRole("status").getByText("Sending “slow.txt”…").waitFor()
  await until(async () => held.length === 1, "the file is on its way")
  await looks(user, "import-progress")
  const cancel = form.getByRole("button", { name: "Cancel" })
  assert.ok(await cancel.evaluate((element) => element === document.activeElement), "the focus is at the way back")
  await cancel.press("Enter")
  await form.getByRole("status").getByText("Not sent. No document was made.").waitFor()
  await form.getByRole("progressbar").waitFor({ state: "hidden" })

  const again = form.getByRole("button", { name: "Try again" })
  await until(() => again.evaluate((element) => element === document.activeElement), "the focus is at another try")
  await again.press("Enter")
  await until(async () => held.length === 2, "the file is on its way again")
  await held[1]?.abort()
  await form.getByRole("alert").getByText(/See in your list whether the document is there/).waitFor()
  await looks(user, "import-lost")
  await page.unroute("**/api/documents/import?*")
  await again.press("Enter")
  await user.seated()
  await user.waitForText("Slow.")
})

for (const [locale, said] of /** @type {const} */ ([["en-GB", { field: "Encoding of the text", go: "Use this text" }], ["ko-KR", { field: "글자 인코딩", go: "이대로 시작하기" }]])) {
  test(`a text in an encoding that the server only guesses is asked for, with its begin as it reads (${locale})`, async () => {
    const user = await browser.newUser(galley, { locale })
    const { page } = user
    await page.goto(galley.url)
    await page.locator("#name").fill("Kim")
    await drop(user, [file("nurse.txt", Buffer.from("I\x92m a nurse.\n", "latin1"), "text/plain")])
    const [choice, preview] = [page.getByLabel(said.field), page.locator("#file-preview")]
    await preview.getByText("I’m a nurse.").waitFor()
    assert.equal(await choice.inputValue(), "windows-1252")
    await looks(user, `import-encoding-${locale}`)
    await choice.selectOption("euc-kr")
    await preview.getByText("I뭢 a nurse.").waitFor()
    await choice.selectOption("windows-1252")
    await page.getByRole("button", { name: said.go }).click()
    await user.seated()
    await user.waitForText("I’m a nurse.\n")
    assert.equal(await page.locator("#title").inputValue(), "nurse")
  })
}

test("an upload that is cancelled during the sign-in sends nothing", async () => {
  const user = await browser.newUser(galley)
  const { page } = user
  await page.goto(galley.url)
  await page.locator("#name").fill("Kim")
  /** @type {import("playwright-core").Route[]} */
  const held = []
  await page.route("**/api/auth/guest", (route) => void held.push(route))
  let uploads = 0
  page.on("request", (request) => (uploads += request.url().includes("/api/documents/import") ? 1 : 0))
  await drop(user, [file("early.txt", "Early.", "text/plain")])
  await until(async () => held.length === 1, "the sign-in is on its way")
  const form = page.locator("#file")
  await form.getByRole("button", { name: "Cancel" }).press("Enter")
  await held[0]?.continue()
  await form.getByRole("status").getByText("Not sent. No document was made.").waitFor()
  assert.equal(uploads, 0)
  await form.getByRole("button", { name: "Try again" }).press("Enter")
  await user.seated()
  await user.waitForText("Early.")
})
