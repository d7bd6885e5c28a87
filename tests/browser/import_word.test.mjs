// @ts-check
/** The import of a Word file: its title, and the sentence about what changed. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { drop, wordDocument } from "./given_files.mjs"
import { browser, galley, withGalley } from "./support.mjs"

withGalley()

test("an imported Word file has its heading as title, and the page says once what changed", async () => {
  const user = await browser.newUser(galley, { locale: "ko-KR" })
  const { page } = user
  const toast = page.locator("#toast")
  await page.goto(galley.url)
  await page.locator("#name").fill("Kim")
  const heading = '<w:p><w:pPr><w:outlineLvl w:val="0"/></w:pPr><w:r><w:t>지원동기</w:t></w:r></w:p>'
  const note = '<w:p><w:r><w:t>문장</w:t><w:footnoteReference w:id="1"/></w:r></w:p>'
  const cell = "<w:tc><w:p><w:r><w:t>가</w:t></w:r></w:p></w:tc>"
  await drop(user, [wordDocument(`${heading}${note}<w:tbl><w:tr>${cell}${cell}</w:tr></w:tbl>`)])
  await toast.getByText("표 1개는 탭으로, 각주 1개는 끝에 넣었습니다.", { exact: true }).waitFor()
  await user.seated()
  await user.waitForText("지원동기\n문장[1]\n가\t가\n\n[1] ")
  assert.equal(await page.locator("#title").inputValue(), "지원동기")
  await page.reload()
  await user.seated()
  assert.equal(await toast.getByText("표 1개는 탭으로, 각주 1개는 끝에 넣었습니다.").count(), 0, "only once")

  const visitStart = async () => {
    await page.goto(galley.url)
    // The page knows its user.
    await page.locator("#mine .row").first().waitFor()
  }
  await visitStart()
  const comments = '<w:r><w:commentReference w:id="0"/><w:commentReference w:id="1"/></w:r>'
  await drop(user, [wordDocument(`<w:p>${comments}<w:ins><w:r><w:t>새 글</w:t></w:r></w:ins></w:p>`)])
  await toast.getByText("메모 2개는 빼고, 변경 내용 1건은 반영해서 넣었습니다.", { exact: true }).waitFor()
  // A file that changed nothing says nothing.
  await visitStart()
  await drop(user, [wordDocument("<w:p><w:r><w:t>그대로</w:t></w:r></w:p>")])
  await user.seated()
  await user.waitForText("그대로")
  assert.equal(await toast.locator("p").count(), 0)
})
