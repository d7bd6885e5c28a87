// @ts-check
/** A document near its quota, and at it: the notices of both users, and the remedies. */

import assert from "node:assert/strict"
import { readFileSync } from "node:fs"
import { test } from "node:test"

import { bothSeated, withGalley } from "./support.mjs"

withGalley({
  settings: {
    GALLEY_LIMITS__DOCUMENT_BYTES: "131072",
    GALLEY_LIMITS__MESSAGE_BYTES: "131072",
    GALLEY_SEATS__LEASE: "3s",
    GALLEY_SEATS__RENEW_EVERY: "1s",
  },
})

/** Pastes at the end. @param {import("./harness.mjs").User} user @param {string} text */
async function pasteAtEnd(user, text) {
  await user.toEnd()
  await user.page.keyboard.insertText(text)
}

test("a document near its quota warns in time, is only shortened when full, and can be downloaded", async () => {
  const { writer, reviewer } = await bothSeated(`First.\n${"a".repeat(50_000)}\n`, { locale: "ko-KR" }, {}, ["김민수", "Lee"])
  await pasteAtEnd(writer, "b".repeat(60_000))
  await writer.notice.getByText(/거의 가득 찼습니다\(8\d%\)/).waitFor()
  await reviewer.notice.getByText(/nearly full \(8\d%\)/).waitFor()
  await writer.seated()
  await writer.shot("full-near")

  // An edit above the quota: the server rejects it, and the page shows that.
  await pasteAtEnd(writer, "c".repeat(40_000))
  await writer.notice.getByText("문서 용량이 가득 차서, 일부를 지울 때까지").waitFor()
  await writer.notice.getByText("아직 저장되지 않은 글자 40,000자").waitFor()
  await reviewer.notice.getByText("the writer can only shorten it for now").waitFor()
  await writer.shot("full")
  await reviewer.shot("full-reviewer")
  const whole = await writer.page.evaluate(() => document.querySelector(".cm-content")?.textContent?.length)
  assert.ok(whole)

  // The server rejects edits and accepts reviews.
  await writer.page.keyboard.type("not this")
  await reviewer.review("First.", { body: "A strong beginning?" })
  await writer.card("A strong beginning?").waitFor()
  assert.doesNotMatch(await writer.text(), /not this/)

  // The text can be downloaded, with the part that the server does not have.
  await writer.notice.getByRole("button", { name: "글 복사" }).click()
  await writer.notice.getByRole("button", { name: "복사했습니다" }).waitFor()
  const copied = await writer.page.evaluate(() => navigator.clipboard.readText())
  assert.match(copied, /^First\.\n[a]+\nb+c{40000}$/)
  const saving = writer.page.waitForEvent("download")
  await writer.notice.getByRole("button", { name: "파일로 저장" }).click()
  const download = await saving
  assert.equal(download.suggestedFilename(), "First.txt")
  assert.equal(readFileSync(await download.path(), "utf8"), copied)

  // The remedy: undo removes the excess, and typing continues.
  await writer.page.locator(".cm-content").click()
  await writer.page.keyboard.press("Control+z")
  await writer.notice.getByText("문서 용량이 가득 차서").waitFor({ state: "hidden" })
  await pasteAtEnd(writer, " on.")
  await writer.seated()
  // The next maintenance of the room drops the deleted text.
  await writer.page.keyboard.press("Control+a")
  await writer.page.keyboard.press("Delete")
  await writer.notice.waitFor({ state: "hidden" })
  await reviewer.notice.waitFor({ state: "hidden" })
  await writer.seated()
})
