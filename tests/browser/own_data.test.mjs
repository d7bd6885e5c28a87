// @ts-check
/** The own data of a user: a download, the deletion with its receipt, and a reviewer who leaves. Keyboard and axe, both languages. */

import assert from "node:assert/strict"
import { readFileSync } from "node:fs"
import { test } from "node:test"

import { openMenu, until } from "./harness.mjs"
import { assertAccessible, assertFits, browser, galley, withGalley } from "./support.mjs"

/** @typedef {import("./harness.mjs").User} User */

withGalley({ per: "test" })

const LARGE = { width: 1280, height: 720 }
const TEXT = "저는 데이터로 문제를 푸는 일에 매력을 느꼈습니다."

/** @param {string} [locale] */
const newUser = (locale = "en-GB") => browser.newUser(galley, { locale, viewport: LARGE })

/** @param {string} [locale] */
async function pair(locale) {
  const [writer, reviewer] = [await newUser(locale), await newUser(locale)]
  await writer.begin("김민수", TEXT)
  await reviewer.follow(await writer.invite(), "이서연")
  await reviewer.seated()
  return { writer, reviewer }
}

/** @param {User} user @param {"button" | "link"} role @param {string} name */
async function entry({ page }, role, name) {
  await openMenu({ page }, "#menu")
  return page.locator("#menu-panel").getByRole(role, { name, exact: true })
}

test("a user downloads the own data, and deletes the account by keyboard after the name is typed", async () => {
  const { writer, reviewer } = await pair()
  const download = writer.page.waitForEvent("download")
  await (await entry(writer, "link", "Download my data")).click()
  const lines = readFileSync(await (await download).path(), "utf8").trim().split("\n").map((line) => JSON.parse(line))
  assert.equal(lines.find(({ type }) => type === "document").text, TEXT)
  assert.deepEqual(lines.at(-1), { type: "end", lines: lines.length - 1 })

  await (await entry(writer, "button", "Delete my account and data…")).press("Enter")
  const dialog = writer.page.locator("#identity-dialog")
  await dialog.getByText("nobody can undo this", { exact: false }).waitFor()
  await assertFits(writer, "own-data", "#identity-dialog")
  await assertAccessible(writer, "own data")
  const field = dialog.getByLabel("To confirm, enter your name: 김민수")
  await field.fill("이서연")
  await field.press("Enter")
  await dialog.getByText("This is not your name.", { exact: false }).waitFor()
  await field.fill("김민수")
  await field.press("Enter")
  await dialog.getByText("The deletion has begun.", { exact: false }).waitFor()
  await assertAccessible(writer, "own data, begun")
  const receipt = await dialog.getByRole("link", { name: /^dlt_/ }).getAttribute("href")
  const state = async () => (await (await fetch(`${galley.url}${receipt}`)).json()).state
  await until(async () => (await state()) === "done", "the deletion is done")
  await reviewer.notice.waitFor()
  await dialog.getByRole("button", { name: "Close" }).press("Enter")
  await writer.page.locator("#name").waitFor()
})

test("the writer sees the comments of a deleted reviewer without a name", async () => {
  const { writer, reviewer } = await pair()
  await reviewer.review("데이터", { body: "근거가 있나요?" })
  await writer.page.locator(".card .who", { hasText: "이서연" }).waitFor()
  await (await entry(reviewer, "button", "Delete my account and data…")).click()
  const dialog = reviewer.page.locator("#identity-dialog")
  await dialog.getByLabel("To confirm, enter your name: 이서연").fill("이서연")
  await dialog.getByRole("button", { name: "Delete everything" }).click()
  await dialog.getByText("The deletion has begun.", { exact: false }).waitFor()
  await writer.page.locator(".card .who", { hasText: "deleted user" }).waitFor()
})

test("검토자가 물음에 답한 뒤 문서에서 나간다", async () => {
  const { writer, reviewer } = await pair("ko-KR")
  await (await entry(reviewer, "button", "계정과 데이터 삭제…")).click()
  const dialog = reviewer.page.locator("#identity-dialog")
  await dialog.getByLabel("확인을 위해 이름을 입력하세요: 이서연").waitFor()
  await assertFits(reviewer, "own-data-ko", "#identity-dialog")
  await assertAccessible(reviewer, "own data, ko")
  await reviewer.page.keyboard.press("Escape")
  await (await entry(reviewer, "button", "이 문서에서 나가기")).click()
  await reviewer.page.locator("#confirm").getByText("이 문서에서 나갈까요?", { exact: false }).waitFor()
  await reviewer.page.locator("#confirm .actions button").last().press("Enter")
  await reviewer.page.waitForURL((url) => url.pathname === "/")
  await (await entry(writer, "button", "검토자")).click()
  await writer.page.locator("#identity-dialog").getByText("아직 검토자가 없습니다", { exact: false }).waitFor()
})
