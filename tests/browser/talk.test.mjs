// @ts-check
/**
 * Writer and reviewer talk: comments of both, overall comments, replies, what is new, and whose turn it is.
 */

import assert from "node:assert/strict"
import { test } from "node:test"

import { User, openMenu, steadyBox, until } from "./harness.mjs"
import { assertAccessible, assertFits, bothSeated, galley, withGalley } from "./support.mjs"

withGalley()

const TEXT = `첫 문장입니다. 둘째 문장입니다.\n\n${"가운데 문단입니다.\n\n".repeat(40)}마지막 문장입니다.`
const WIDE = { width: 1280, height: 720 }
const NARROW = { width: 360, height: 740 }
const WORDS = {
  en: {
    comment: "Comment", suggest: "Suggest", example: /does this sentence read well/, resolve: "Resolve", edit: "Edit", remove: "Delete",
    sure: "Delete it?", save: "Save", cancel: "Cancel", undo: "Undo", summary: "Overall comment", edited: "edited",
    news: /이서연: new comment on “마지막 문장”/, unread: "1 new",
    done: "I'm done, your turn", told: "이서연 is done reviewing. It's your turn.", first: "Ready for your review", again: "Please look again",
    asked: "김민수 asks you to look at the text. It's your turn.", theirs: "The writer's turn", mine: "Your turn",
    notYet: "이서연 is not done reviewing yet.", waiting: "Waiting for 이서연", open: "1 open comment",
  },
  ko: {
    comment: "의견 달기", suggest: "고쳐 쓰기 제안", example: /이 문장이 어색한가요/, resolve: "해결", edit: "수정", remove: "삭제",
    sure: "삭제할까요?", save: "저장", cancel: "취소", undo: "실행 취소", summary: "총평", edited: "수정됨",
    news: /이서연님의 새 의견: “마지막 문장”/, unread: "새 소식 1",
    done: "다 봤습니다 · 작성자 차례", told: "이서연님이 다 봤습니다. 이제 내 차례입니다.", first: "이제 봐 주세요", again: "다시 봐 주세요",
    asked: "김민수님이 글을 봐 달라고 합니다. 이제 내 차례입니다.", theirs: "작성자 차례", mine: "내 차례",
    notYet: "이서연님이 아직 보고 있습니다.", waiting: "이서연님 차례", open: "남은 의견 1개",
  },
}
const LOOKS = /** @type {const} */ ([
  { language: "ko", name: "1280", viewport: WIDE },
  { language: "en", name: "360", viewport: NARROW },
])

/** Both users in one document. @param {"en" | "ko"} language @param {{ width: number, height: number }} viewport */
async function together(language, viewport) {
  const options = { locale: language === "ko" ? "ko-KR" : "en-GB", viewport, ...(viewport === NARROW ? { hasTouch: true } : {}) }
  const { writer, reviewer } = await bothSeated(TEXT, options)
  return { writer, reviewer }
}

/** @param {User} user */
const draft = ({ page }) => page.locator(".card-draft")

/** @param {User} user @param {string} body */
async function send(user, body) {
  await draft(user).locator("textarea:not(.prose)").fill(body)
  await draft(user).locator("button[type=submit]").click()
  await draft(user).waitFor({ state: "detached" })
}

/** Opens the sheet of a narrow window. @param {User} user */
async function openSheet({ page }) {
  if ((page.viewportSize()?.width ?? 0) < 900 && !(await page.locator("#margin").isVisible())) await page.locator("#sheet-open").click()
}

/** Focuses the card of a review, which activates it. @param {User} user @param {string} text */
async function choose(user, text) {
  await openSheet(user)
  await user.card(text).focus()
  await user.card(text).and(user.page.locator("[data-active=true]")).waitFor()
}

for (const { language, name, viewport } of LOOKS) {
  const words = WORDS[language]

  test(`the writer starts a comment, edits and deletes it, and alone decides (${name}, ${language})`, async () => {
    const { writer, reviewer } = await together(language, viewport)
    await writer.select("둘째 문장")
    const bar = writer.page.locator("#selection-bar")
    await bar.getByRole("button", { name: words.comment }).waitFor()
    assert.equal(await bar.getByRole("button", { name: words.suggest }).count(), 0, "the writer changes the text itself")
    await writer.page.keyboard.press("Control+Alt+m")
    const field = draft(writer).locator("textarea:not(.prose)")
    assert.match((await field.getAttribute("placeholder")) ?? "", words.example)
    assert.equal(await draft(writer).locator(".prose").isVisible(), false)
    await writer.shot(`talk-writer-form-${name}`)
    await assertAccessible(writer, "form of the writer")
    await field.fill("쓰다 만 의견")
    await writer.page.reload()
    await writer.seated()
    await field.waitFor()
    assert.equal(await field.inputValue(), "쓰다 만 의견", "a reload keeps it")
    await send(writer, "이 문장이 어색한가요?")

    await reviewer.card("어색한가요").waitFor({ state: "attached" })
    await choose(reviewer, "어색한가요")
    for (const button of [words.resolve, words.edit, words.remove]) {
      assert.equal(await reviewer.card("어색한가요").locator("button", { hasText: button }).count(), 0, button)
    }
    await choose(writer, "어색한가요")
    const card = writer.card("어색한가요")
    await card.getByRole("button", { name: words.resolve }).waitFor()
    await writer.shot(`talk-writer-card-${name}`)
    await card.locator(".actions").getByRole("button", { name: words.edit }).click()
    const form = writer.page.locator(".card[data-active=true] .review-form")
    await form.locator("textarea:not(.prose)").fill("이 문장을 뺄까요?")
    await form.getByRole("button", { name: words.save }).click()
    await reviewer.card("뺄까요").waitFor({ state: "attached" })
    await choose(writer, "뺄까요")
    await writer.card("뺄까요").locator(".actions").getByRole("button", { name: words.remove }).click()
    await writer.card("뺄까요").locator(".actions").getByRole("button", { name: words.sure }).click()
    await reviewer.card("뺄까요").waitFor({ state: "detached" })
  })

  test(`an overall comment stands above all others, and Alt ↓ passes through it (${name}, ${language})`, async () => {
    const { writer, reviewer } = await together(language, viewport)
    await reviewer.select("첫 문장")
    await reviewer.page.keyboard.press("Control+Alt+m")
    await send(reviewer, "첫째 의견")
    if (viewport === NARROW) await reviewer.page.locator("#sheet-close").click()
    await reviewer.page.locator(".cm-content").focus()
    await reviewer.page.keyboard.press("Control+End")
    await reviewer.page.keyboard.press("Control+Alt+m")
    await draft(reviewer).locator("textarea:not(.prose)").fill("전체적으로 좋습니다.")
    await reviewer.shot(`talk-summary-form-${name}`)
    await assertAccessible(reviewer, "form of an overall comment")
    await reviewer.page.reload()
    await reviewer.seated()
    const field = draft(reviewer).locator("textarea:not(.prose)")
    await field.waitFor()
    assert.equal(await field.inputValue(), "전체적으로 좋습니다.", "a reload keeps it")
    await draft(reviewer).getByRole("button", { name: words.cancel }).click()
    await draft(reviewer).waitFor({ state: "detached" })
    await reviewer.page.locator("#toast").getByRole("button", { name: words.undo }).click()
    assert.equal(await field.inputValue(), "전체적으로 좋습니다.")
    await send(reviewer, "전체적으로 좋습니다.")

    await writer.card("전체적으로").waitFor({ state: "attached" })
    for (const user of [writer, reviewer]) {
      const first = user.page.locator("#cards .card").first()
      assert.equal(await first.getAttribute("data-kind"), "summary")
      assert.equal(await first.locator(".kind").textContent(), words.summary)
      assert.equal(await user.page.locator("#tab-lost").isVisible(), false, "it has no passage to lose")
    }
    await writer.page.keyboard.press("Escape")
    await writer.page.locator(".cm-content").focus()
    await writer.page.keyboard.press("Control+Home")
    for (const text of ["전체적으로", "첫째 의견", "전체적으로"]) {
      await writer.page.keyboard.press("Alt+ArrowDown")
      await writer.card(text).and(writer.page.locator("[data-active=true]")).waitFor()
      await until(() => writer.card(text).evaluate((card) => card === document.activeElement), `${text} has the focus`)
    }
    const box = await steadyBox(writer.card("전체적으로"))
    assert.ok(0 <= box.y && box.y + box.height <= viewport.height, `inside the window: ${JSON.stringify(box)}`)
    await writer.shot(`talk-summary-card-${name}`)
    await assertFits(writer, `talk-summary-fits-${name}`)
    await assertAccessible(writer, "card of an overall comment")

    // The writer's own, by the button.
    await openSheet(writer)
    await writer.page.locator("#summary-add").click()
    await send(writer, "분량을 더 줄일까요?")
    await reviewer.card("분량을").waitFor({ state: "attached" })
    await choose(writer, "전체적으로")
    await writer.card("전체적으로").getByRole("button", { name: words.resolve }).click()
    await reviewer.page.locator("#done-cards .card", { hasText: "전체적으로" }).waitFor({ state: "attached" })
    assert.equal(await reviewer.page.locator("#done-cards .card .kind").textContent(), words.summary)
  })

  test(`replies are edited and deleted by their author (${name}, ${language})`, async () => {
    const { writer, reviewer } = await together(language, viewport)
    await reviewer.select("첫 문장")
    await reviewer.page.keyboard.press("Control+Alt+m")
    await send(reviewer, "의견")
    await writer.card("의견").waitFor({ state: "attached" })
    await choose(writer, "의견")
    await writer.card("의견").locator(".reply-field").fill("처음 답글")
    await writer.page.keyboard.press("Control+Enter")
    const reply = writer.card("의견").locator(".replies > li")
    await reply.getByText("처음 답글").waitFor()
    await choose(reviewer, "의견")
    await reviewer.card("의견").locator(".replies > li").getByText("처음 답글").waitFor()
    assert.equal(await reviewer.card("의견").locator(".reply-actions").count(), 0, "they are its author's")

    await reply.getByRole("button", { name: words.edit }).focus()
    await writer.page.keyboard.press("Enter")
    await writer.page.keyboard.press("Control+A")
    await writer.page.keyboard.type("고친 답글")
    await writer.shot(`talk-reply-edit-${name}`)
    await assertAccessible(writer, "a reply that is edited")
    await writer.page.reload()
    await writer.seated()
    await choose(writer, "의견")
    assert.equal(await reply.locator("textarea").inputValue(), "고친 답글", "a reload keeps it")
    await reply.locator("textarea").focus()
    await writer.page.keyboard.press("Control+Enter")
    for (const user of [writer, reviewer]) {
      await user.card("의견").locator(".replies > li").getByText("고친 답글").waitFor()
      await user.card("의견").locator(".reply-edited", { hasText: words.edited }).waitFor()
    }
    await writer.shot(`talk-reply-edited-${name}`)
    await assertAccessible(writer, "an edited reply")
    await reply.getByRole("button", { name: words.remove }).click()
    await reply.getByRole("button", { name: words.sure }).click()
    for (const user of [writer, reviewer]) await user.card("의견").locator(".replies > li").waitFor({ state: "detached" })
    assert.equal(await writer.page.evaluate(() => document.activeElement?.closest(".card") !== null), true, "the focus stays at the card")
  })

  test(`a new comment is shown, counted in the title, and seen after a look (${name}, ${language})`, async () => {
    const { writer, reviewer } = await together(language, viewport)
    const { page } = writer
    await page.locator(".cm-content").focus()
    await page.keyboard.press("Control+Home")
    await reviewer.page.locator(".cm-content").focus()
    await reviewer.page.keyboard.press("Control+End")
    await reviewer.select("마지막 문장")
    await reviewer.page.keyboard.press("Control+Alt+m")
    await send(reviewer, "끝맺음이 짧습니다.")
    const isNarrow = viewport === NARROW
    const news = page.locator(isNarrow ? "#sheet-unread" : "#news")
    await news.waitFor()
    await page.locator("#announcer").getByText(words.news).waitFor()
    assert.equal((await page.locator("#news").textContent())?.trim(), words.unread)
    await until(async () => (await page.title()).startsWith("● (1) "), "the title counts it")
    await writer.card("끝맺음").locator(".unread").waitFor({ state: "attached" })
    const isApart = await page.evaluate(() => {
      const rect = [...document.querySelectorAll("#news, #sheet-open")].find((shown) => shown.checkVisibility())?.getBoundingClientRect()
      const caret = document.querySelector(".cm-cursor, .cm-activeLine, .cm-line")?.getBoundingClientRect()
      return rect !== undefined && caret !== undefined && (rect.bottom <= caret.top || caret.bottom <= rect.top || caret.right <= rect.left)
    })
    assert.equal(isApart, true, "the news does not cover the line with the caret")
    for (const colorScheme of /** @type {const} */ (["dark", "light"])) {
      await page.emulateMedia({ colorScheme })
      await writer.shot(`talk-news-${name}-${colorScheme}`)
      await assertAccessible(writer, `news, ${colorScheme}`)
    }

    const start = await writer.page.context().newPage()
    await start.goto(galley.url)
    await start.locator("#mine .mark-new").getByText(words.unread).waitFor()
    await start.locator("#mine").getByText(words.open).waitFor()
    await start.close()

    if (isNarrow) await choose(writer, "끝맺음")
    else await news.click()
    await writer.card("끝맺음").and(page.locator("[data-active=true]")).waitFor()
    await until(async () => !(await page.title()).includes("●"), "it is seen")
    await until(() => serverKnowsAllSeen(writer), "the server knows")
    await page.reload()
    await writer.seated()
    await writer.card("끝맺음").waitFor({ state: "attached" })
    assert.equal(await writer.card("끝맺음").locator(".unread").count(), 0, "and still knows after a reload")

    // Without a press: a card that stands in the window for a second is seen.
    await page.locator(".cm-content").focus()
    await page.keyboard.press("Control+Home")
    if (viewport === NARROW && (await page.locator("#sheet-close").isVisible())) await page.locator("#sheet-close").click()
    await reviewer.select("마지막 문장")
    await choose(reviewer, "끝맺음")
    await reviewer.card("끝맺음").locator(".reply-field").fill("한 문장만 더 써 주세요.")
    await reviewer.page.keyboard.press("Control+Enter")
    await until(async () => (await page.title()).startsWith("● (1) "), "the title counts the reply")
    if (viewport === NARROW) await openSheet(writer)
    await writer.card("끝맺음").scrollIntoViewIfNeeded()
    await until(async () => !(await page.title()).includes("●"), "the reply is seen")
    await until(() => serverKnowsAllSeen(writer), "the server knows of the reply")

    // All at once.
    await page.locator("#panel-open").evaluate(() => window.scrollTo(0, 0))
    if (viewport === NARROW) await page.locator("#sheet-close").click()
    await page.evaluate(() => Object.defineProperty(document, "hidden", { value: true, configurable: true }))
    await reviewer.card("끝맺음").locator(".reply-field").fill("하나 더.")
    await reviewer.page.keyboard.press("Control+Enter")
    await until(async () => (await page.title()).startsWith("● (1) "), "a hidden page sees nothing")
    await openSheet(writer)
    await writer.shot(`talk-unread-${name}`)
    await openMenu({ page }, "#margin-more")
    await page.locator("#read-all").click()
    await until(async () => !(await page.title()).includes("●"), "all are read")
    await until(() => serverKnowsAllSeen(writer), "the server knows of all")
  })

  test(`the reviewer hands back, the writer asks again, and both can undo it (${name}, ${language})`, async () => {
    const { writer, reviewer } = await together(language, viewport)
    const turnOf = (/** @type {User} */ { page }) => page.locator("#turn")
    await turnOf(writer).getByRole("button", { name: words.first }).waitFor()
    await reviewer.shot(`talk-turn-none-${name}`)
    // A toast is gone after some seconds: the wait for it begins before its cause.
    await Promise.all([
      writer.page.locator("#toast").getByText(words.told).waitFor(),
      turnOf(reviewer).getByRole("button", { name: words.done }).click(),
    ])
    await turnOf(reviewer).locator(".turn-status").getByText(words.theirs).waitFor()
    await turnOf(writer).locator(".turn-status").getByText(words.mine).waitFor()
    await reviewer.shot(`talk-turn-reviewer-${name}`)
    await Promise.all([
      writer.page.locator("#toast").getByText(words.notYet).waitFor(),
      reviewer.page.locator("#toast").getByRole("button", { name: words.undo }).click(),
    ])
    await turnOf(reviewer).locator(".turn-status").getByText(words.mine).waitFor()
    await turnOf(reviewer).getByRole("button", { name: words.done }).click()
    await turnOf(writer).locator(".turn-status").getByText(words.mine).waitFor()
    await writer.shot(`talk-turn-writer-${name}`)
    for (const user of [writer, reviewer]) await assertAccessible(user, "whose turn")
    await reviewer.page.emulateMedia({ forcedColors: "active" })
    await reviewer.shot(`talk-turn-forced-${name}`)

    const [mine, theirs] = [await writer.page.context().newPage(), await reviewer.page.context().newPage()]
    for (const page of [mine, theirs]) await page.goto(galley.url)
    await mine.locator("#mine .mark-turn").waitFor()
    await theirs.locator("#reviewed .row").first().waitFor()
    assert.equal(await theirs.locator("#waiting").isVisible(), false, "nothing waits for a review that is done")
    await new User(galley, mine).shot(`talk-start-mine-${name}`)
    await new User(galley, theirs).shot(`talk-start-reviewed-${name}`)

    await Promise.all([
      reviewer.page.locator("#toast").getByText(words.asked).waitFor(),
      turnOf(writer).getByRole("button", { name: words.again }).click(),
    ])
    await theirs.reload()
    await theirs.locator("#waiting .row .mark-turn").waitFor()
    await mine.reload()
    await mine.locator("#mine .mark").getByText(words.waiting).waitFor()
  })
}

/** Whether the server counts nothing as unread. @param {User} user */
function serverKnowsAllSeen({ page }) {
  return page.evaluate(async () => {
    const { share_links: links } = await (await fetch("/api/share-links")).json()
    return links.length === 1 && links[0].reviews.unread === 0
  })
}
