// @ts-check
/**
 * Identities: the reviewer's dialog, an invite that is taken or void, a guest's name, and a guest on another
 * device. Two windows and more, in both languages.
 */

import assert from "node:assert/strict"
import { test } from "node:test"

import { openMenu, until } from "./harness.mjs"
import { hasFocus } from "./people.mjs"
import { assertAccessible, assertFits, browser, galley, withGalley } from "./support.mjs"

/** @typedef {import("./harness.mjs").User} User */

withGalley({ per: "test" })

const LARGE = { width: 1280, height: 720 }
const SMALL = { width: 360, height: 740 }

/** @param {string} [locale] */
const newUser = (locale = "en-GB") => browser.newUser(galley, { locale, viewport: LARGE })

const TEXT = "저는 데이터로 문제를 푸는 일에 매력을 느꼈습니다."

/** A writer and a reviewer at one document. @param {string} [locale] @param {string} [text] */
async function pair(locale, text = TEXT) {
  const [writer, reviewer] = [await newUser(locale), await newUser(locale)]
  await writer.begin("김민수", text)
  const invite = await writer.invite()
  await reviewer.follow(invite, "이서연")
  await reviewer.seated()
  return { writer, reviewer, invite }
}

/** @param {User} user @param {string} name */
async function chooseInMenu({ page }, name) {
  await openMenu({ page }, "#menu")
  await page.locator("#menu-panel").getByRole("button", { name, exact: true }).click()
}

/** @param {User} user */
const dialog = ({ page }) => page.locator("#identity-dialog")

/** @param {User} user */
const confirmed = ({ page }) => page.locator("#confirm .actions button").last().click()

/** Shows an open dialog in both widths: no violation, no overflow. @param {User} user @param {string} name */
async function look(user, name) {
  for (const size of [LARGE, SMALL]) {
    await user.resize(size)
    await assertFits(user, `${name}-${size.width}`)
    await assertFits(user, `${name}-${size.width}-dialog`, "#identity-dialog")
    await assertAccessible(user, `${name}, ${size.width}`)
  }
  await user.resize(LARGE)
}

test("a refused visitor is told, announced to the writer, and let in instead", async () => {
  const { writer, reviewer, invite } = await pair("ko-KR")
  const third = await newUser("ko-KR")
  await third.page.goto(invite)
  await third.page.getByRole("button", { name: "김민수님에게 알리기" }).click()
  await third.page.locator("#entry-name").fill("Han")
  await third.page.keyboard.press("Enter")
  await writer.page.locator("#toast").getByText(/Han님이 초대 링크를 열었지만/).waitFor()
  await writer.page.locator("#toast").getByRole("button").click()
  await dialog(writer).getByText("이서연").first().waitFor()
  const row = dialog(writer).locator(".identity-attempts li")
  await row.getByText("Han").waitFor()
  await look(writer, "reviewer-dialog")
  await row.getByRole("button", { name: /이 사람으로 바꾸기/ }).click()
  await writer.page.locator("#confirm").getByText("Han").waitFor()
  await confirmed(writer)
  await third.seated()
  await reviewer.notice.getByText(/작성자가 검토자를 바꾸어/).waitFor()
  assert.equal(await reviewer.page.locator(".cm-content").getByText("데이터로 문제를").count(), 1, "the text stays readable")
  await dialog(writer).locator(".identity-who", { hasText: "Han" }).waitFor()
  assert.equal(await row.count(), 0)
  // The former reviewer does not return with the same address.
  await reviewer.page.goto("about:blank")
  await reviewer.page.goto(invite)
  await reviewer.page.getByRole("button", { name: "김민수님에게 알리기" }).waitFor()
})

test("the reviewer is removed, and a new link opens the document to the next one", async () => {
  const { writer, reviewer, invite } = await pair()
  await chooseInMenu(writer, "The reviewer")
  await dialog(writer).getByText(/이서연, since/).waitFor()
  await dialog(writer).getByText(/^Copied at/).waitFor()
  await dialog(writer).getByRole("button", { name: "New link" }).click()
  await confirmed(writer)
  await dialog(writer).getByRole("status").getByText("the old one no longer works").waitFor()
  await dialog(writer).getByText("Not copied in this browser yet.").waitFor()
  assert.ok(await reviewer.page.locator("#saved[data-kind=saved]").isVisible(), "the reviewer stays")
  await dialog(writer).getByRole("button", { name: "Remove the reviewer" }).click()
  await confirmed(writer)
  await dialog(writer).getByRole("status").getByText("이서연 is no longer the reviewer").waitFor()
  await reviewer.notice.getByText("The writer has changed the reviewer").waitFor()
  assert.equal(await reviewer.notice.getByRole("button", { name: "Open again" }).count(), 0)
  await reviewer.page.reload()
  await reviewer.page.getByRole("heading", { name: "You are not the reviewer of this document" }).waitFor()
  const next = await writer.copied(() => dialog(writer).getByRole("button", { name: "Copy the invite" }).click())
  assert.notEqual(next, invite)
  await dialog(writer).getByText(/^Copied at/).waitFor()
  await writer.page.keyboard.press("Escape")
  await writer.page.locator("#seat-badges").getByText(/Invite copied/).waitFor()
  const third = await newUser()
  await third.page.goto(invite)
  await third.page.getByRole("heading", { name: "This link no longer works" }).waitFor()
  await third.follow(next, "Han")
  await third.seated()
  await writer.page.locator("#seat-badges").getByText("Han").waitFor()
})

test("the next reviewer deletes the lines of a suggestion of the former one, and goes on", async () => {
  const { writer, reviewer } = await pair("en-GB", `${TEXT}\n둘째 줄입니다.`)
  await reviewer.page.evaluate(async (quote) => {
    const start = document.querySelector(".cm-line")?.textContent?.indexOf(quote) ?? 0
    const anchor = { start, end: start + quote.length + 4, quote: `${quote}\n둘째 ` }
    await (await source("api")).createReview(location.pathname.split("/").pop(), { anchor, body: "", suggestion: "매력을 느낍니다. " })
  }, "매력을 느꼈습니다.")
  await chooseInMenu(writer, "The reviewer")
  await dialog(writer).getByRole("button", { name: "Remove the reviewer" }).click()
  await confirmed(writer)
  // The answer of the removal brings the next invite.
  await dialog(writer).getByRole("status").getByText("is no longer the reviewer").waitFor()
  const next = await newUser()
  await next.follow(await writer.copied(() => dialog(writer).getByRole("button", { name: "Copy the invite" }).click()), "Han")
  await next.seated()
  await next.page.locator("del.passage-old").first().waitFor()
  await next.page.locator(".cm-content").press("Control+Home")
  for (let letter = 0; letter <= TEXT.indexOf("매력을"); letter += 1) await next.page.keyboard.press("ArrowRight")
  for (const key of ["Control+Shift+End", "Delete", "x", "y"]) await next.page.keyboard.press(key)
  await until(async () => (await writer.page.locator("#cards .card").count()) === 2, "both suggestions are with the writer")
  assert.match((await next.page.locator(".cm-content").textContent()) ?? "", /xy/)
})

test("a guest corrects the name on both pages, and the other user sees it", async () => {
  const { writer, reviewer } = await pair()
  await chooseInMenu(reviewer, "Correct my name")
  await look(reviewer, "name-dialog")
  await dialog(reviewer).locator("#identity-name").fill("이서윤")
  await reviewer.page.keyboard.press("Enter")
  await dialog(reviewer).getByRole("status").getByText("You are now 이서윤.").waitFor()
  await writer.page.locator("#seat-badges").getByText("이서윤").waitFor()
  await reviewer.page.locator("#seat-badges").getByText("이서윤").waitFor()
  assert.equal(await reviewer.notice.isVisible(), false, "the change shows no lost connection")
  await writer.page.goto(galley.url)
  await writer.page.locator("#hello").getByText("김민수").waitFor()
  await writer.page.locator("#hello").getByRole("button", { name: "Correct my name" }).click()
  await dialog(writer).locator("#identity-name").fill(" ")
  await writer.page.keyboard.press("Enter")
  await dialog(writer).getByRole("alert").getByText(/\w/).waitFor()
  await dialog(writer).locator("#identity-name").fill("김민서")
  await writer.page.keyboard.press("Enter")
  await dialog(writer).getByRole("status").getByText("김민서").waitFor()
  await writer.page.keyboard.press("Escape")
  await writer.page.locator("#hello").getByText("김민서").waitFor()
  await writer.page.reload()
  await writer.page.locator("#hello").getByText("김민서").waitFor()
})

test("a code brings a guest to another device, once, and asks before it replaces another guest", async () => {
  const { writer } = await pair()
  const desk = writer.page.url()
  await chooseInMenu(writer, "Use on another device")
  await dialog(writer).getByText(/for another 1[45]:\d\d/).waitFor()
  await look(writer, "move-dialog")
  const code = await dialog(writer).locator("#identity-code").inputValue()
  const url = await writer.copied(() => dialog(writer).getByRole("button", { name: "Copy the address" }).click())
  assert.equal(url, `${galley.url}/#move=${code}`)
  await dialog(writer).getByRole("status").getByText("Copied").waitFor()
  // The language switches below the open dialog; its text, its fields and what it said follow.
  await writer.page.evaluate(async () => (await source("i18n")).i18n.setLanguage("ko"))
  for (const words of ["다른 기기에서 사용하기", "코드", "주소", "코드 복사", "주소 복사", "복사했습니다"]) await dialog(writer).getByText(words, { exact: true }).first().waitFor()
  assert.doesNotMatch(await dialog(writer).innerText(), /\b(Open|Works|Copy|Copied|Close)\b/)
  await hasFocus(writer, "#identity-dialog .identity-value button")
  await writer.page.evaluate(async () => (await source("i18n")).i18n.setLanguage("en"))

  const phone = await browser.newUser(galley, { viewport: SMALL })
  await phone.page.goto(galley.url)
  await phone.page.getByRole("button", { name: "I have a code from another device" }).click()
  await phone.page.locator("#code-field").fill("0000-0000")
  await phone.page.keyboard.press("Enter")
  await phone.page.locator("#code").getByText("The code is wrong, used or expired.").waitFor()
  await assertFits(phone, "code-form-360")
  await assertAccessible(phone, "the form for a code")
  await phone.page.goto(url)
  // The page is the same: it hears of the new address with an event.
  await until(async () => new URL(phone.page.url()).hash === "", "the code leaves the address")
  await hasFocus(phone, "#code-go")
  await phone.page.keyboard.press("Enter")
  await phone.page.locator("#hello").getByText("김민수").waitFor()
  await phone.page.goto(desk)
  await phone.page.getByText("You have this open in another tab").waitFor()

  const other = await newUser()
  await other.begin("Han", "Something else.")
  await other.page.goto(url)
  await other.page.locator("#code-go").click()
  await other.page.locator("#confirm").getByText("signed in as Han").waitFor()
  await other.page.locator("#confirm").getByRole("button", { name: "Cancel" }).click()
  await other.page.locator("#hello").getByText("Han").waitFor()
  await other.page.locator("#code-go").click()
  await confirmed(other)
  await other.page.locator("#code").getByText("The code is wrong, used or expired.").waitFor()
  await other.page.locator("#hello").getByText("Han").waitFor()
  await writer.page.keyboard.press("Escape")
  await chooseInMenu(writer, "Use on another device")
  await until(async () => ![code, ""].includes(await dialog(writer).locator("#identity-code").inputValue().catch(() => "")), "a new code")
  await other.page.locator("#code-field").fill((await dialog(writer).locator("#identity-code").inputValue()).toLowerCase())
  await other.page.locator("#code-go").click()
  await confirmed(other)
  await other.page.locator("#hello").getByText("김민수").waitFor()
  await other.page.locator("#mine .row").waitFor()
})

test("one who is not that guest leaves this computer from the start page", async () => {
  const { writer } = await pair("ko-KR")
  await writer.page.goto(galley.url)
  await writer.page.locator("#hello").getByRole("button", { name: "다른 사람입니다" }).click()
  await writer.page.locator("#confirm").getByText("지금은 게스트 김민수님입니다.").waitFor()
  await assertAccessible(writer, "the question before one leaves")
  await confirmed(writer)
  await writer.page.locator("#name").waitFor()
  assert.equal(await writer.page.locator("#mine .row").count(), 0)
})

test("a visitor of a taken or void link is told first, and asked for no name", async () => {
  const { writer, reviewer, invite } = await pair("ko-KR")
  const third = await browser.newUser(galley, { locale: "ko-KR", viewport: SMALL })
  await third.page.goto(invite)
  await third.page.getByRole("heading", { name: "이미 검토자가 있는 문서입니다" }).waitFor()
  assert.equal(await third.page.locator("#entry-name").count(), 0)
  await assertFits(third, "taken-360")
  await assertAccessible(third, "a taken link")
  await chooseInMenu(writer, "검토자")
  await dialog(writer).getByRole("button", { name: "새 링크 만들기" }).click()
  await confirmed(writer)
  await dialog(writer).getByText("이전 링크는 이제 쓸 수 없으니").waitFor()
  await third.page.goto(`${galley.url}/`)
  await third.page.locator("#way-link").click()
  await third.page.locator("#link-field").fill(invite)
  await third.page.keyboard.press("Enter")
  await third.page.getByRole("heading", { name: "더 이상 쓸 수 없는 링크입니다" }).waitFor()
  assert.equal(await third.page.locator("#entry-name").count(), 0)
  // The reviewer's own way stays open, also by the old link.
  await reviewer.page.goto("about:blank")
  await reviewer.page.goto(invite)
  await reviewer.seated()
})

test("the gate greets with the writer's name and the title", async () => {
  const writer = await newUser("ko-KR")
  await writer.begin("김민수", "자기소개서\n\n본문입니다.")
  const guest = await browser.newUser(galley, { locale: "ko-KR", viewport: SMALL })
  await guest.page.goto(await writer.invite())
  await guest.page.getByRole("heading", { name: "첨삭을 부탁받으셨습니다" }).waitFor()
  await guest.page.getByText("김민수님이 ‘자기소개서’의 첨삭을 부탁하셨습니다.").waitFor()
  await assertFits(guest, "gate-360")
  await assertAccessible(guest, "the gate")
  await guest.page.locator("#entry-name").fill("이서연")
  await guest.page.keyboard.press("Enter")
  await guest.seated()
})
