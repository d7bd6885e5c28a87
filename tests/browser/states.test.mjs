// @ts-check
/**
 * States of a page that are neither "writes" nor "reviews": a cut that is about to be pasted, a server
 * that is away or frozen, and a seat that another session holds.
 */

import assert from "node:assert/strict"
import { test } from "node:test"

import { drawn, until, User } from "./harness.mjs"
import { assertAccessible, bothSeated, browser, galley, withGalley } from "./support.mjs"

withGalley({ per: "test" })

const WINDOW = { width: 1280, height: 720 }
const FIRST = "저는 물류 현장에서 배웠습니다."
const SECOND = "다음 문단은 더 짧습니다."
const TEXT = `${FIRST}\n\n${SECOND}\n\n끝.`

/** The writer and the reviewer of a document, in windows of one size. @param {string} [text] @param {import("./harness.mjs").UserOptions} [options] */
const open = (text = TEXT, options = {}) => bothSeated(text, { viewport: WINDOW, ...options })

/** Records each frame in which a card is not in the open list, or is said to be lost. @param {User} user @param {string} text */
async function watchCard(user, text) {
  await user.card(text).waitFor()
  await user.page.evaluate((text) => {
    const seen = { losses: 0, frames: 0 }
    Object.assign(globalThis, { seen })
    const look = () => {
      const card = [...document.querySelectorAll("#cards .card")].find((each) => each.textContent?.includes(text))
      const state = card instanceof HTMLElement ? card.dataset.state : "none"
      if (state === "none" || state === "orphaned") seen.losses++
      seen.frames++
      requestAnimationFrame(look)
    }
    look()
  }, text)
}

/** @param {User} user @returns {Promise<{ losses: number, frames: number }>} */
const seenOf = ({ page }) => page.evaluate(() => /** @type {any} */ (globalThis).seen)

/** The part of the text that is drawn as a passage. @param {User} user */
const passage = ({ page }) => page.locator(".passage").allTextContents()

test("a paragraph that is cut and pasted keeps its card, and is never called deleted", async () => {
  const { writer, reviewer } = await open(TEXT, { hasClock: true })
  const users = [writer, reviewer]
  await reviewer.review(FIRST, { body: "근거를 더 써 주세요." })
  for (const user of users) await watchCard(user, "근거를 더")
  await writer.select(FIRST)
  for (const user of users) await user.stopClock()
  await writer.page.keyboard.press("Control+x")
  await reviewer.waitForBase(`\n\n${SECOND}\n\n끝.`)
  for (const { page } of users) await page.clock.runFor(1_000)
  await writer.page.keyboard.press("Control+End")
  await writer.page.keyboard.press("Control+v")
  for (const user of users) await user.waitForBase(`\n\n${SECOND}\n\n끝.${FIRST}`)
  // The page asks for the new place within the three seconds of a loss.
  for (const { page } of users) await page.clock.runFor(1_500)
  await Promise.all(users.map(async (user) => {
    await until(async () => (await passage(user)).join("") === FIRST, "the passage is marked where it was pasted")
    await user.page.clock.runFor(3_500)
    const { losses, frames } = await seenOf(user)
    assert.ok(0 < frames)
    assert.equal(losses, 0, "no frame calls the passage lost")
    assert.equal(await user.page.locator("#tab-lost").isVisible(), false)
  }))
})

test("an undone deletion leaves the card beside its line", async () => {
  const { writer, reviewer } = await open(TEXT, { hasClock: true })
  await reviewer.review(SECOND, { body: "짧아도 됩니다." })
  await watchCard(writer, "짧아도")
  await writer.select(SECOND)
  await writer.stopClock()
  await writer.page.keyboard.press("Delete")
  await writer.page.clock.runFor(800)
  await writer.page.keyboard.press("Control+z")
  await writer.waitForText(TEXT)
  assert.deepEqual(await passage(writer), [SECOND])
  await writer.page.clock.runFor(3_500)
  assert.equal((await seenOf(writer)).losses, 0)
})

test("a passage that stays away is called lost, three seconds after its deletion", async () => {
  const { writer, reviewer } = await open(TEXT, { hasClock: true })
  await reviewer.review(SECOND, { body: "짧아도 됩니다." })
  await writer.card("짧아도").waitFor()
  await writer.select(SECOND)
  await writer.stopClock()
  await writer.page.keyboard.press("Delete")
  await writer.page.clock.runFor(2_900)
  assert.equal(await writer.page.locator("#tab-lost").isVisible(), false)
  // The page's clock runs on: the server's word on the passage may come later than the three seconds.
  await until(async () => {
    await writer.page.clock.runFor(200)
    return writer.page.locator("#tab-lost").isVisible()
  }, "the passage is called lost")
  await reviewer.page.locator("#tab-lost").waitFor()
})

/** The badge of a seat. @param {User} user @param {"writer" | "reviewer"} role */
const badge = ({ page }, role) => page.locator(`#seat-badges [data-role=${role}]`)

/** Stops the server's process for the duration of `work`. @param {() => Promise<void>} work */
async function frozen(work) {
  const child = galley.process
  assert.ok(child)
  child.kill("SIGSTOP")
  try {
    await work()
  } finally {
    child.kill("SIGCONT")
  }
}

test("offline, the own seat reconnects and the other is unknown", async () => {
  const [writer, reviewer] = [await browser.newUser(galley, { locale: "ko-KR", viewport: WINDOW }), await browser.newUser(galley, { locale: "ko-KR", colorScheme: "dark", viewport: WINDOW })]
  await writer.begin("김민수", TEXT)
  await writer.page.locator("#no-reviews").getByText("초대 링크를 보내면").waitFor()
  await reviewer.follow(await writer.invite(), "이서연")
  await reviewer.seated()
  await reviewer.page.locator("#no-reviews").getByText("본문을 바로 고치면 제안이 됩니다. 문장을 선택하면").waitFor()
  for (const user of [writer, reviewer]) for (const role of ["writer", "reviewer"]) await user.page.locator(`#seat-badges [data-role=${role}][data-state=here]`).waitFor()
  await galley.end("SIGKILL")
  await badge(writer, "writer").getByText("다시 연결 중").waitFor()
  await badge(writer, "reviewer").getByText("알 수 없음").waitFor()
  await badge(reviewer, "writer").getByText("알 수 없음").waitFor()
  await badge(reviewer, "reviewer").getByText("다시 연결 중").waitFor()
  await writer.shot("states-offline-writer")
  await reviewer.shot("states-offline-reviewer")
  await assertAccessible(reviewer, "offline")
  await galley.run()
  for (const user of [writer, reviewer]) for (const role of ["writer", "reviewer"]) await user.page.locator(`#seat-badges [data-role=${role}][data-state=here]`).waitFor()
})

test("a frozen server is named to the reviewer, whose comment stays a draft", async () => {
  const reviewer = await browser.newUser(galley, { locale: "ko-KR", viewport: WINDOW })
  const writer = await browser.newUser(galley, { viewport: WINDOW })
  await writer.begin("김민수", TEXT)
  await reviewer.follow(await writer.invite(), "이서연")
  await reviewer.seated()
  await reviewer.select(SECOND)
  await reviewer.page.keyboard.press("Control+Alt+m")
  await reviewer.page.keyboard.type("왜 짧은가요?")
  const frozenAt = Date.now()
  await frozen(async () => {
    await reviewer.notice.getByText("답이 오지 않고").waitFor()
    const after = Date.now() - frozenAt
    assert.ok(after < 8_000, `told after ${after} ms`)
    await badge(reviewer, "writer").getByText("알 수 없음").waitFor()
    await reviewer.page.locator(".card-draft button[type=submit]").click()
    await reviewer.page.locator(".card-draft [role=alert]").filter({ hasText: /Not sent|보내지 못했/ }).waitFor()
    assert.equal(await reviewer.page.locator(".card-draft textarea:not(.prose)").inputValue(), "왜 짧은가요?")
    await reviewer.shot("states-frozen")
    await assertAccessible(reviewer, "frozen")
  })
  await reviewer.notice.waitFor({ state: "hidden" })
  await badge(reviewer, "writer").and(reviewer.page.locator("[data-state=here]")).waitFor()
  await reviewer.page.locator(".card-draft button[type=submit]").click()
  await reviewer.page.locator(".card-draft").waitFor({ state: "detached" })
  await writer.card("왜 짧은가요?").waitFor()
})

/** The upper edge of a line, and the left edges of the paper and of the notice's icon. @param {User} user @param {string} line */
const edges = ({ page }, line) =>
  page.evaluate((line) => {
    const rect = (/** @type {Element | null | undefined} */ element) => element?.getBoundingClientRect()
    const found = [...document.querySelectorAll(".cm-line")].find(({ textContent }) => textContent?.includes(line))
    return { line: rect(found)?.top, paper: rect(document.querySelector("#paper"))?.left, notice: rect(document.querySelector("#notice"))?.left }
  }, line)

test("a notice covers the text in use instead of pushing it, and is aligned with the paper", async () => {
  const { writer } = await open(`${TEXT}\n\n${"더 많은 문장.\n\n".repeat(40)}`)
  for (const scroll of [0, 300]) {
    await writer.page.locator(".cm-line", { hasText: "끝." }).click()
    await writer.page.evaluate((top) => scrollTo({ top }), scroll)
    await drawn(writer)
    const before = await edges(writer, "더 많은")
    await galley.end("SIGKILL")
    await writer.notice.getByText("Connection lost.").waitFor()
    await drawn(writer)
    const line = async () => (await edges(writer, "더 많은")).line
    // A page that is late scrolls by the height of the notice with its next frame.
    const stays = async () => Math.abs(((await line()) ?? NaN) - (before.line ?? NaN)) <= 1
    await until(stays, `the notice moves no line (${scroll}) from ${before.line}`, async () => String(await line()))
    const during = await edges(writer, "더 많은")
    assert.ok(Math.abs((during.notice ?? 0) - (during.paper ?? 0)) <= 1, `aligned: ${JSON.stringify(during)}`)
    if (scroll === 0) await writer.shot("states-notice")
    await galley.run()
    await writer.notice.waitFor({ state: "hidden" })
    await drawn(writer)
    await until(stays, `nor does its end (${scroll}) from ${before.line}`, async () => String(await line()))
  }
  for (const width of [360, 768, 1024, 1440]) {
    await writer.resize({ width, height: 800 })
    if (width === 360) await galley.end("SIGKILL")
    await writer.notice.getByText("Connection lost.").waitFor()
    await drawn(writer)
    const { notice = 0, paper = 0 } = await edges(writer, "")
    assert.ok(Math.abs(notice - Math.max(paper, 8)) <= 1, `aligned at ${width}: ${notice}, ${paper}`)
  }
})

test("the other's initial stands level with the caret beside the text, and the name comes under the pointer", async () => {
  const { writer, reviewer } = await bothSeated(TEXT)
  await reviewer.page.locator(".cm-line", { hasText: SECOND }).click()
  const name = writer.page.locator(".peer-name")
  await name.waitFor({ state: "attached" })
  const visibility = () => name.evaluate((element) => getComputedStyle(element).visibility)
  assert.equal(await visibility(), "hidden")
  await writer.page.locator("#peer-place").getByText("이").waitFor()
  // The caret stood at the beginning of the text before, and its initial follows it with the next frame.
  await writer.page.locator(".cm-line").nth(2).locator(".peer-caret").waitFor({ state: "attached" })
  const measure = () =>
    writer.page.evaluate(() => {
      const rectOf = (/** @type {string} */ selector) => /** @type {Element} */ (document.querySelector(selector)).getBoundingClientRect()
      const [caret, initial, text] = [rectOf(".peer-caret"), rectOf("#peer-place"), rectOf(".cm-content")]
      return { apart: Math.abs((initial.top + initial.bottom - caret.top - caret.bottom) / 2), right: initial.right, left: text.left }
    })
  await until(async () => (await measure()).apart <= 3, "the initial is level with the caret", async () => JSON.stringify(await measure()))
  const { right, left } = await measure()
  assert.ok(right <= left, "it covers no word")
  const box = await writer.page.locator(".peer-caret").boundingBox()
  assert.ok(box)
  await writer.page.mouse.move(box.x + 3, box.y + box.height / 2)
  await until(async () => (await visibility()) === "visible", "the name is shown on hover")
})

/** As in `static/js/desk/served_text.ts`, in ms. */
const READ_EVERY = 15_000
const LONG = `${TEXT}\n\n${Array.from({ length: 14 }, (_, at) => `긴 글의 ${at + 1}번째 문장입니다.`).join("\n\n")}`

/** Another tab of the same user. @param {User} user */
async function tabOf(user) {
  const tab = new User(galley, await user.page.context().newPage())
  await tab.resize(WINDOW)
  await tab.page.goto(user.page.url())
  return tab
}

/** Where a line stands in the window. @param {User} user @param {string} line */
const topOf = async (user, line) => (await edges(user, line)).line ?? NaN

test("a second tab shows the text and the reviews read-only, and the seat takes over without a jump", async () => {
  const { writer, reviewer } = await bothSeated(LONG, { locale: "ko-KR", viewport: WINDOW, hasClock: true }, { viewport: WINDOW })
  await reviewer.review(SECOND, { body: "짧아도 됩니다." })
  for (const user of [writer, reviewer]) {
    const second = await tabOf(user)
    await second.page.locator("#saved").getByText(user === writer ? "읽기 전용" : "Read only").waitFor()
    await second.waitForText(LONG)
    await second.card("짧아도").waitFor()
    assert.deepEqual(await passage(second), [SECOND])
    await second.page.locator(".count-all dd").getByText(String(LONG.length)).waitFor()
    assert.equal(await second.page.locator("#counts").isVisible(), true)
    assert.equal(await second.card("짧아도").getByRole("button").count(), 0, "no action without the seat")
    await assertAccessible(second, "second tab")
    await second.shot(`states-second-tab-${user === writer ? "writer" : "reviewer"}`)
    await second.page.keyboard.press("Escape")
    await second.page.locator(".cm-line", { hasText: FIRST }).click()
    await second.page.keyboard.type("x")
    await second.select(FIRST)
    assert.equal(await second.copied(() => second.page.keyboard.press("Control+c")), FIRST)
    if (user !== writer) continue
    // The seat replaces the copy: what is in the window stays there.
    await second.page.evaluate(() => scrollTo({ top: 300 }))
    await drawn(second)
    const before = await topOf(second, "긴 글의 8번째")
    await second.notice.getByRole("button", { name: "여기서 계속하기" }).click()
    await second.seated()
    await drawn(second)
    const isThere = async () => Math.abs((await topOf(second, "긴 글의 8번째")) - before) <= 2
    await until(isThere, `the line stays at ${before}`, async () => String(await topOf(second, "긴 글의 8번째")))
    await second.waitForText(LONG)
    assert.equal(await second.page.locator("body").getAttribute("data-served"), "false")
    await second.select(FIRST)
    await second.page.keyboard.press("ArrowLeft")
    await second.page.keyboard.type("첫째, ")
    await second.waitForText(LONG.replace(FIRST, `첫째, ${FIRST}`))
    await second.seated()
    // The tab that lost its seat shows what the other one writes.
    await writer.page.bringToFront()
    await writer.page.clock.fastForward(READ_EVERY)
    await writer.waitForText(LONG.replace(FIRST, `첫째, ${FIRST}`))
    await writer.notice.getByRole("button", { name: "여기서 계속하기" }).click()
    await writer.seated()
    await writer.typeAtEnd(" 다시.")
    await writer.waitForText(`${LONG.replace(FIRST, `첫째, ${FIRST}`)} 다시.`)
    await reviewer.waitForBase(`${LONG.replace(FIRST, `첫째, ${FIRST}`)} 다시.`)
    await second.page.close()
    await writer.page.keyboard.press("Control+z")
    await writer.waitForText(LONG.replace(FIRST, `첫째, ${FIRST}`))
    for (let at = 0; at < 4; at++) await writer.page.keyboard.press("Backspace")
    await writer.page.keyboard.press("Control+z")
    await reviewer.waitForBase(LONG.replace(FIRST, `첫째, ${FIRST}`))
    await writer.select("첫째, ")
    await writer.page.keyboard.press("Delete")
    await reviewer.waitForBase(LONG)
  }
})

test("a waiting tab reads the text again, and continues with it when it is granted", async () => {
  const writer = await browser.newUser(galley, { locale: "ko-KR", viewport: WINDOW, hasClock: true })
  await writer.begin("김민수", LONG)
  const second = await tabOf(writer)
  await second.waitForText(LONG)
  assert.ok((await second.page.evaluate(() => performance.now())) < READ_EVERY, "the first read does not wait for an interval")
  await second.notice.getByRole("button", { name: "대기하기" }).click()
  await writer.page.bringToFront()
  await writer.typeAtEnd(" 끝 문장.")
  await writer.seated()
  await second.page.bringToFront()
  await second.page.clock.fastForward(READ_EVERY)
  await second.waitForText(`${LONG} 끝 문장.`)
  await second.shot("states-waiting")
  await writer.page.close()
  await second.seated()
  await second.waitForText(`${LONG} 끝 문장.`)
  await second.typeAtEnd("!")
  await second.waitForText(`${LONG} 끝 문장.!`)
  await second.seated()
})
