// @ts-check
/** The history in the page: automatic versions, comparing, naming and restoring. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { openMenu, until } from "./harness.mjs"
import { assertAsWritten } from "./looks.mjs"
import { assertAccessible, assertFits, bothSeated, browser, galley, inEachLook, withGalley } from "./support.mjs"

/** A pause that a test can await. */
const SOON = { GALLEY_HISTORY__PAUSE: "300ms" }
const TEXT = "저는 회사는 좋습니다. I walk to school."

withGalley({ per: "test", settings: SOON })

/** @typedef {import("./harness.mjs").User} User */

/** @param {User} user */
const entries = (user) => user.page.locator("#history [role=option]")

/** Puts `words` in the place of `quote`, as one would by hand. @param {User} user @param {string} quote @param {string} words */
async function rewrite(user, quote, words) {
  await user.select(quote)
  await user.page.keyboard.insertText(words)
}

/** Waits until a version is chosen: the page chooses a new one after it has listed it. @param {User} user @param {string} name */
const chosen = (user, name) => user.page.locator("#history [role=option][aria-selected=true]", { hasText: name }).waitFor()

/** Waits until so many versions are kept. @param {User} user @param {number} count */
async function versionCount(user, count) {
  const read = async () => (await user.page.request.get(`${galley.url}/api/documents/${user.id}/versions`)).json()
  await until(async () => (await read()).versions.length === count, `${count} versions`)
}

/** @param {User} user */
async function open(user) {
  await openMenu(user, "#menu")
  await user.page.locator("#menu-panel").getByRole("button", { name: /^History/ }).click()
  await user.page.locator("#history[open]").waitFor()
}

/** The marks in reading order, without the text for screen readers only. @param {User} user */
const marks = (user) =>
  user.page.locator("#history-text").evaluate((text) =>
    [...text.querySelectorAll("del, ins")].map((mark) => {
      const copy = /** @type {HTMLElement} */ (mark.cloneNode(true))
      for (const unseen of copy.querySelectorAll(".hidden")) unseen.remove()
      return `${mark.localName} ${copy.textContent}`
    }),
  )

/** @param {User} user @param {string[]} wanted */
const marked = (user, wanted) =>
  until(async () => JSON.stringify(await marks(user)) === JSON.stringify(wanted), wanted.join(", "))

test("a pause stores a version, its changes read well, and restoring is undone by restoring again", async () => {
  const { writer, reviewer } = await bothSeated(TEXT, {}, {}, ["Kim", "Lee"])
  await rewrite(writer, "회사는", "회사가")
  await versionCount(writer, 2)
  await rewrite(writer, "school", "work")
  await versionCount(writer, 3)
  const changed = "저는 회사가 좋습니다. I walk to work."
  await reviewer.waitForText(changed)

  await open(writer)
  await entries(writer).nth(2).waitFor()
  assert.equal(await entries(writer).count(), 3)
  await marked(writer, ["del school", "ins work"])
  // The arrow keys move along the timeline, and the page shows the selected version.
  await writer.page.keyboard.press("ArrowDown")
  await marked(writer, ["del 는", "ins 가"])
  await writer.page.getByText("Characters added: 1, deleted: 1").waitFor()
  await writer.shot("history-korean")
  await writer.page.keyboard.press("End")
  await writer.page.getByText("The first version that was saved.").waitFor()
  assert.equal(await writer.page.locator("#history-text").textContent(), TEXT)
  await writer.page.getByRole("radio", { name: "Changes since then" }).check({ force: true })
  await marked(writer, ["del 는", "ins 가", "del school", "ins work"])

  await writer.page.locator("#history").getByRole("button", { name: "Restore this version" }).click()
  await writer.page.locator("#confirm").getByText("you can undo this").waitFor()
  await writer.shot("history-sure")
  await writer.page.locator("#confirm").getByRole("button", { name: "Restore it" }).click()
  await writer.page.locator("#history-status").getByText("Restored.").waitFor()
  await reviewer.waitForText(TEXT)
  await writer.waitForText(TEXT)
  await chosen(writer, "Version 1 was restored")
  assert.equal(await entries(writer).count(), 4)

  // Restoring the earlier version undoes it.
  await entries(writer).nth(1).click()
  await writer.page.locator("#history").getByRole("button", { name: "Restore this version" }).click()
  await writer.page.locator("#confirm").getByRole("button", { name: "Restore it" }).click()
  await chosen(writer, "Version 3 was restored")
  await reviewer.waitForText(changed)
  // The text is that version already.
  await entries(writer).nth(2).click()
  await writer.page.locator("#history").getByRole("button", { name: "Restore this version" }).click()
  await writer.page.locator("#history-status").getByText("Nothing was restored.").waitFor()
  await writer.page.keyboard.press("Escape")
  await writer.page.locator("#history").waitFor({ state: "hidden" })
  await writer.waitForText(changed)
})

test("the reviewer reads versions and cannot restore one, and the writer names one for both", async () => {
  const { writer, reviewer } = await bothSeated(TEXT, {}, {}, ["Kim", "Lee"])
  await reviewer.page.keyboard.press("Alt+h")
  await reviewer.page.locator("#history").getByText("No version has been saved yet.").waitFor()
  await reviewer.shot("history-empty")
  await open(writer)
  await writer.page.locator("#history").getByLabel("Name the text as it is now").fill("Sent on Friday")
  await writer.page.keyboard.press("Enter")
  await writer.page.locator("#history-status").getByText("Saved as a version: “Sent on Friday”.").waitFor()
  await entries(writer).filter({ hasText: "Sent on Friday" }).waitFor()
  // An open history is updated without a reload.
  await entries(reviewer).filter({ hasText: "Sent on Friday" }).waitFor()
  assert.equal(await reviewer.page.locator("#history-label").count(), 0)
  await reviewer.page.getByText("Only the writer can restore a version.").waitFor()
  await reviewer.page.locator("#history").getByRole("button", { name: "Restore this version" }).waitFor({ state: "hidden" })
  await writer.page.locator("#history-close").click()
  await writer.page.locator("#history").waitFor({ state: "hidden" })
  // While the dialog is open, it receives the shortcuts of the desk.
  await reviewer.page.keyboard.press("Alt+h")
  await reviewer.page.keyboard.press("Escape")
  await reviewer.page.locator("#history").waitFor({ state: "hidden" })
})

test("a history that cannot be read shows an error and a retry", async () => {
  const writer = await browser.newUser(galley)
  await writer.begin("Kim", TEXT)
  await writer.page.route("**/versions?*", (route) => route.abort())
  await open(writer)
  await writer.page.locator("#history").getByText("The history could not be read. The text is safe.").waitFor()
  await writer.page.unroute("**/versions?*")
  await writer.page.locator("#history").getByRole("button", { name: "Try again" }).click()
  await writer.page.locator("#history").getByText("No version has been saved yet.").waitFor()
})

test("a long text is folded where nothing changed, and unfolds in place", async () => {
  const writer = await browser.newUser(galley)
  const long = Array.from({ length: 60 }, (_, n) => `문단 ${n}: 데이터로 문제를 푸는 일에 매력을 느꼈습니다.`).join("\n")
  await writer.begin("Kim", `${long}\n끝 문장.`)
  await rewrite(writer, "문단 0:", "첫 문단:")
  await versionCount(writer, 2)
  await rewrite(writer, "첫 문단:", "맨 처음 문단:")
  await versionCount(writer, 3)
  await open(writer)
  await entries(writer).nth(2).waitFor()
  const text = writer.page.locator("#history-text")
  await text.locator(".fold").waitFor()
  assert.doesNotMatch((await text.textContent()) ?? "", /문단 30:/)
  await text.locator(".fold").click()
  await text.getByText("문단 30:").waitFor()
  assert.equal(await text.locator(".fold").count(), 0)
})

test("in both schemes and three widths axe has nothing to say", async () => {
  const writer = await browser.newUser(galley, { locale: "ko-KR" })
  await writer.begin("김민수", `지원동기와 입사 후 포부\n\n${TEXT}\n\n저는 대학에서 산업공학을 전공하며 데이터로 문제를 푸는 일에 매력을 느꼈습니다.`)
  await rewrite(writer, "회사는", "회사가")
  await versionCount(writer, 2)
  await rewrite(writer, "산업공학을 전공하며", "통계학을 배우며")
  await versionCount(writer, 3)
  await writer.page.keyboard.press("Alt+h")
  const label = "금요일 제출본"
  await writer.page.locator("#history-label").fill(label)
  await writer.page.keyboard.press("Enter")
  await chosen(writer, label)
  await entries(writer).nth(3).waitFor()
  await entries(writer).nth(1).click()
  await marked(writer, ["del 산업공학을 전공하며", "ins 통계학을 배우며"])
  await inEachLook(writer, async ({ width, scheme }) => {
    const name = `history-${width}-${scheme}`
    await assertFits(writer, name, "#history")
    await assertAccessible(writer, name)
  })
})

test("a version that is named without a change shows its text, and no fold of all of it", async () => {
  const writer = await browser.newUser(galley)
  const text = `${"A sentence of the letter. ".repeat(40).trim()}`
  await writer.begin("Kim", text)
  await open(writer)
  const field = writer.page.locator("#history-label")
  for (const label of ["Sent on Friday", "Sent again"]) {
    await field.fill(label)
    await field.press("Enter")
    await writer.page.locator("#history-status").getByText(label).waitFor()
    // It takes the next name when it has listed this one.
    await writer.page.locator(".history-name .button[aria-busy=true]").waitFor({ state: "detached" })
  }
  await writer.page.locator(".history-sum").getByText("Nothing differs.").waitFor()
  await until(async () => (await writer.page.locator("#history-text").textContent()) === text, "the text is shown")
  await assertAsWritten(writer.page.locator("#history-text"))
  assert.equal(await writer.page.locator("#history-text .fold").count(), 0)
})
