// @ts-check
/** The ways into and out of a long text: find, copy, save as a file, print. */

import assert from "node:assert/strict"
import { readFile } from "node:fs/promises"
import { test } from "node:test"

import { openMenu, until } from "./harness.mjs"
import { assertAsWritten } from "./looks.mjs"
import { assertAccessible, assertFits, bothSeated, browser, galley, withGalley } from "./support.mjs"

withGalley()

/** @typedef {import("./harness.mjs").User} User */

const WINDOWS = [{ width: 1280, height: 720 }, { width: 360, height: 640 }]
const LETTER = "1. 지원동기 (500자 이내)\n\n저는 대학에서 산업공학을 전공하며 데이터로 문제를 푸는 일에 매력을 느꼈습니다.\n물류 현장에서 배웠습니다.\n\n2. 포부"

/** @param {User} user @param {string} name of an entry of the menu */
async function choose({ page }, name) {
  await openMenu({ page }, "#menu")
  await page.locator("#menu-panel").getByText(name, { exact: true }).click()
}

for (const viewport of WINDOWS) {
  test(`both copy the text, a selection or a paragraph, and save a file, at ${viewport.width} px`, async () => {
    for (const user of Object.values(await bothSeated(LETTER, { locale: "ko-KR", viewport }))) {
      const toast = user.page.locator("#toast")
      assert.equal(await user.copied(() => choose(user, "글 전체 복사")), LETTER)
      await toast.getByText(`글 전체 ${LETTER.length}자를 복사했습니다.`).waitFor()
      await user.select("산업공학")
      assert.equal(await user.copied(() => choose(user, "선택한 부분 복사")), "산업공학")
      await toast.getByText("선택한 4자를 복사했습니다.").waitFor()
      await user.page.locator(".cm-content").focus()
      await user.page.keyboard.press("ArrowRight")
      assert.equal(await user.copied(() => choose(user, "이 문단 복사")), LETTER.split("\n\n")[1])
      assert.equal(await toast.getAttribute("role"), "status", "the confirmation is spoken, too")
      await openMenu(user, "#menu")
      await assertFits(user, `menu-ko-${viewport.width}`)
      await user.page.keyboard.press("Escape")
      const download = user.page.waitForEvent("download")
      await choose(user, ".txt 파일로 저장")
      const file = await download
      assert.equal(file.suggestedFilename(), "1. 지원동기 (500자 이내).txt")
      assert.equal(await readFile(await file.path(), "utf8"), LETTER)
      await toast.getByText("파일로 내려받았습니다.").waitFor()
    }
  })
}

test("the menu is whole in a low window", async () => {
  const writer = await browser.newUser(galley, { viewport: { width: 640, height: 360 } })
  await writer.begin("Anna", "A text.")
  await openMenu(writer, "#menu")
  const box = await writer.page.locator("#menu-panel").boundingBox()
  assert.ok(box && box.y + box.height <= 360, JSON.stringify(box))
})

test("the menu has groups, all of which a window of 1280 × 720 shows", async () => {
  const writer = await browser.newUser(galley, { viewport: { width: 1280, height: 720 } })
  await writer.begin("Anna", "A text.")
  const { page } = writer
  await openMenu({ page }, "#menu")
  for (const name of ["Document", "Export", "You", "Display"]) await page.getByRole("group", { name, exact: true }).waitFor()
  const hidden = await page.locator("#menu-panel").evaluate((panel) => panel.scrollHeight - panel.clientHeight)
  assert.equal(hidden, 0)
})

const LINES = 437
/** A text of 60 kB, with a comment on its first and its last line. */
const long = () => Array.from({ length: LINES }, (_, at) => `${at + 1}번째 줄. 물류 현장에서 배운 점을 데이터로 정리하고, 다음 사람이 쓸 수 있게 적어 두었습니다. it goes unnoticed.`).join("\n")

/** Counts the calls of `print` instead of opening the browser's window. @param {User} user */
const countPrints = ({ page }) =>
  page.evaluate(() => {
    document.body.dataset.prints = "0"
    window.print = () => (document.body.dataset.prints = String(Number(document.body.dataset.prints) + 1))
  })

/** @param {User} user @param {() => Promise<void>} look */
async function printed({ page }, look) {
  await page.evaluate(() => window.dispatchEvent(new Event("beforeprint")))
  await page.emulateMedia({ media: "print" })
  await look()
  await page.emulateMedia({ media: "screen" })
  await page.evaluate(() => window.dispatchEvent(new Event("afterprint")))
}

test("the print has title, date, the whole text and numbered comments with names, replies and suggestions", async () => {
  const { writer, reviewer } = await bothSeated(long(), { colorScheme: "dark" })
  await reviewer.review("1번째 줄.", { body: "Which line?", suggestion: "첫째 줄." })
  await reviewer.review("다음 사람이", { body: "Who is that?" })
  await writer.card("Who is that?").click()
  await writer.card("Who is that?").locator(".reply-field").fill("The next team.")
  await writer.page.keyboard.press("Control+Enter")
  await reviewer.card("The next team.").waitFor()
  for (const user of [writer, reviewer]) {
    const view = user.page.locator("#print-view")
    await countPrints(user)
    await user.page.locator(".cm-content").focus()
    await user.page.keyboard.press("Control+p")
    const dialog = user.page.getByRole("dialog", { name: "Print" })
    await dialog.getByLabel("The text with the comments").check()
    await assertAccessible(user, "the print's dialog")
    await user.shot("print-dialog")
    await dialog.getByRole("button", { name: "Print" }).click()
    await user.page.locator("body[data-prints='1']").waitFor()
    await printed(user, async () => {
      assert.equal(await view.locator(".print-text > p").count(), LINES, "the whole text, not only what the editor draws")
      assert.match(await view.locator("h1").innerText(), /^1번째 줄/)
      assert.match(await view.locator(".print-facts").innerText(), /\d{4}.*Writer 김민수 · Reviewer 이서연/)
      assert.deepEqual(await view.locator("sup").allInnerTexts(), ["[1]", "[2]"])
      assert.deepEqual(await view.locator(".print-number").allInnerTexts(), ["[1]", "[2]"])
      const notes = await view.locator(".print-notes").innerText()
      for (const part of ["이서연", "Which line?", "첫째", "다음 사람이", "Who is that?", "김민수", "The next team."]) {
        assert.ok(notes.includes(part), part)
      }
      await assertAsWritten(view.locator(".print-notes .diff").first())
      assert.notEqual(await view.locator(".print-notes .diff del + ins").first().evaluate((words) => getComputedStyle(words).marginInlineStart), "0px")
      assert.equal(await user.page.locator("#desk-page").isVisible(), false)
      await user.shot(`print-${user === writer ? "writer" : "reviewer"}`)
    })
    await view.waitFor({ state: "detached" })
    await user.page.keyboard.press("Control+p")
    await dialog.getByLabel("The text only").check()
    await user.page.keyboard.press("Enter")
    await user.page.locator("body[data-prints='2']").waitFor()
    await printed(user, async () => {
      assert.equal(await view.locator(".print-text > p").count(), LINES)
      assert.equal(await view.locator("sup, .print-mark, .print-notes").count(), 0)
    })
  }
})

test("the print begins with the title once, also where the text begins with it", async () => {
  const { writer, reviewer } = await bothSeated("지원동기\n\n저는 글을 쓴다.")
  await reviewer.review("지원동기", { body: "더 구체적으로" })
  await writer.card("더 구체적으로").waitFor()
  const view = writer.page.locator("#print-view")
  await printed(writer, async () => {
    assert.equal(await view.locator("h1").innerText(), "지원동기[1]")
    assert.equal(await view.locator(".print-text").innerText(), "저는 글을 쓴다.")
  })
  await writer.page.locator("#title").fill("Application")
  await writer.page.locator("#title").press("Enter")
  await until(async () => (await writer.page.title()).includes("Application"), "the title is stored")
  await printed(writer, async () => {
    assert.equal(await view.locator("h1").innerText(), "Application")
    assert.match(await view.locator(".print-text").innerText(), /^지원동기\[1\]/)
  })
})

test("the browser's own command prints the same view, and a document without comments prints at once", async () => {
  const writer = await browser.newUser(galley, { locale: "ko-KR", viewport: { width: 360, height: 640 } })
  await writer.begin("김민수", LETTER)
  await countPrints(writer)
  await choose(writer, "인쇄")
  await writer.page.locator("body[data-prints='1']").waitFor()
  assert.equal(await writer.page.locator("dialog[open]").count(), 0)
  const pdf = await writer.page.pdf({ format: "A4" })
  assert.equal(pdf.subarray(0, 5).toString(), "%PDF-")
  await until(async () => (await writer.page.locator("#print-view").count()) === 0, "the view goes after the print")
})

for (const viewport of WINDOWS) {
  test(`both find every match in a text of 60 kB, with its number, at ${viewport.width} px`, async () => {
    const { writer, reviewer } = await bothSeated(long(), { locale: "ko-KR", viewport })
    for (const user of [writer, reviewer]) {
      const { page } = user
      const [field, count] = [page.locator(".find input").first(), page.locator(".find-count")]
      await page.locator(".cm-content").focus()
      await page.keyboard.press("Control+f")
      await until(() => field.evaluate((input) => input === document.activeElement), "the field has the focus")
      await page.keyboard.insertText("37번째 줄")
      await count.getByText("1번째 · 5곳").waitFor()
      for (const at of [2, 3, 4, 5, 1]) {
        await page.keyboard.press("Enter")
        await count.getByText(`${at}번째 · 5곳`).waitFor()
        await inWindow(user)
      }
      await page.keyboard.press("Shift+Enter")
      await count.getByText("5번째 · 5곳").waitFor()
      assert.equal(await page.locator(".cm-searchMatch-selected").textContent(), "37번째 줄")
      await assertFits(user, `find-${user === writer ? "writer" : "reviewer"}-${viewport.width}`)
      assert.equal(await page.getByRole("button", { name: "모두 바꾸기" }).count(), 1)
      if (viewport.width === 1280) await assertAccessible(user, "find")
      await field.fill("이 글에 없는 말")
      await count.getByText("없음", { exact: true }).waitFor()
      await field.fill("정")
      await count.getByText(`${LINES}곳`).waitFor()
      await field.fill("저")
      await count.getByText("없음", { exact: true }).waitFor()
      await field.fill("37번째 줄")
      await count.getByText("5곳").waitFor()
      await page.keyboard.press("Escape")
      await page.locator(".find").waitFor({ state: "detached" })
      await until(() => page.locator(".cm-content").evaluate((content) => content === document.activeElement), "the text has the focus")
    }
    await reviewer.page.locator("#selection-bar").getByRole("button", { name: "의견 달기" }).waitFor()
  })
}

/** The selected match is between the panel and the foot. @param {User} user */
const inWindow = ({ page }) =>
  until(
    () =>
      page.evaluate(() => {
        const rect = (/** @type {string} */ of) => document.querySelector(of)?.getBoundingClientRect()
        const [match, panel, foot] = [rect(".cm-searchMatch-selected"), rect(".find"), rect("#text-counts-bar")]
        return Boolean(match && panel && foot && panel.bottom <= match.top && match.bottom <= foot.top)
      }),
    "the match is in the window",
  )

test("a match that stands behind the end of the text before a replacement is selected and shown", async () => {
  const { writer } = await bothSeated(`cat${"\n".repeat(60)}cat`)
  const { page } = writer
  await page.locator(".cm-content").click()
  await page.keyboard.press("Control+Home")
  await choose(writer, "Find")
  await page.locator(".find input").first().fill("cat")
  await page.locator(".find-count").getByText("1 of 2").waitFor()
  await page.locator(".find input").nth(1).fill("a much longer word")
  for (const next of ["1 of 1", "Not found"]) {
    await page.locator(".find").getByRole("button", { name: "Replace", exact: true }).click()
    await page.locator(".find-count").getByText(next).waitFor()
    if (next === "1 of 1") await inWindow(writer)
  }
  await writer.waitForText(`a much longer word${"\n".repeat(60)}a much longer word`)
  assert.equal(await page.locator("#toast [data-failure]").count(), 0)
})

test("the writer replaces one match or all, each as one step to undo", async () => {
  const text = "The cat sat. A cat ran. the catalogue"
  const { writer, reviewer } = await bothSeated(text)
  const { page } = writer
  await page.locator(".cm-content").click()
  await page.keyboard.press("Control+End")
  await page.keyboard.type("!")
  await openMenu({ page }, "#menu")
  await page.locator("#menu-panel").getByText("Find", { exact: true }).click()
  const [field, other] = [page.locator(".find input").first(), page.locator(".find input").nth(1)]
  await field.fill("cat")
  await page.locator(".find-count").getByText("1 of 3").waitFor()
  await other.fill("dog")
  await page.locator(".find").getByRole("button", { name: "Replace", exact: true }).click()
  await writer.waitForText("The dog sat. A cat ran. the catalogue!")
  await page.locator(".find-count").getByText("1 of 2").waitFor()
  await page.getByRole("button", { name: "Replace all" }).click()
  await reviewer.waitForText("The dog sat. A dog ran. the dogalogue!")
  await page.locator("#toast").getByText("Replaced: 2.").waitFor()
  await writer.shot("find-replaced")
  await page.locator("#toast").getByRole("button", { name: "Undo" }).click()
  await writer.waitForText("The dog sat. A cat ran. the catalogue!")
  await page.getByRole("button", { name: "Match case" }).click()
  await field.fill("The")
  await page.locator(".find-count").getByText("1 of 1").waitFor()
  await page.getByRole("button", { name: "Replace all" }).click()
  await writer.waitForText("dog dog sat. A cat ran. the catalogue!")
  await page.keyboard.press("Escape")
  for (const undone of ["The dog sat. A cat ran. the catalogue!", "The cat sat. A cat ran. the catalogue!", text]) {
    await page.locator(".cm-content").focus()
    await page.keyboard.press("Control+z")
    await writer.waitForText(undone)
  }
})
