// @ts-check
/** Two users, one text, two seats, and no third user. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { assertAsWritten } from "./looks.mjs"
import { bothSeated, browser, galley, withGalley } from "./support.mjs"

const TEXT = "지원동기\n\n저는 물류가 좋습니다. 꼭 기여하고싶습니다.\n\nI am very interested in this."

withGalley()

test("two users write, comment, suggest and accept, and a reload retains everything", async () => {
  const [writer, reviewer] = [await browser.newUser(galley), await browser.newUser(galley)]
  await writer.paste("김민수", TEXT)
  const invite = await writer.invite()
  assert.match(invite, /\/s\/[\w-]+#[\w-]{20,}$/)
  await reviewer.follow(invite, "이서연")
  await reviewer.seated()
  await reviewer.waitForText(TEXT)
  assert.doesNotMatch(reviewer.page.url(), /#/, "the invite is out of the address")
  await writer.page.locator("[data-role=reviewer][data-state=here]").getByText("이서연").waitFor()

  await writer.typeAtEnd(" Indeed 🙂!")
  const longer = `${TEXT} Indeed 🙂!`
  await reviewer.waitForText(longer)
  await writer.page.locator("#saved[data-kind=saved]").waitFor()

  await reviewer.review("물류가 좋습니다", { body: "왜 좋은지도 써 주세요." })
  await reviewer.review("기여하고싶습니다", { body: "띄어쓰기", suggestion: "기여하고 싶습니다" })
  const card = writer.card("띄어쓰기")
  await card.locator("del").getByText("기여하고싶습니다").waitFor()
  await writer.card("왜 좋은지도").locator(".who").getByText("이서연").waitFor()
  await card.click()
  await assertAsWritten(card.locator(".diff"))
  await writer.shot("together-writer")
  await card.getByRole("button", { name: "Accept" }).click()
  const accepted = longer.replace("기여하고싶습니다", "기여하고 싶습니다")
  await writer.waitForText(accepted)
  await reviewer.waitForText(accepted)
  await writer.page.locator("#tab-done").getByText("1 done").waitFor()

  await writer.card("왜 좋은지도").click()
  await writer.card("왜 좋은지도").locator(".reply-field").fill("그럴게요.")
  await writer.card("왜 좋은지도").getByRole("button", { name: "Send" }).click()
  await reviewer.card("왜 좋은지도").getByText("그럴게요.").waitFor()
  await reviewer.shot("together-reviewer")

  for (const user of [writer, reviewer]) {
    await user.page.reload()
    await user.seated()
    await user.waitForText(accepted)
    await user.card("그럴게요.").waitFor()
    await user.page.locator("#tab-done").getByText("1 done").waitFor()
  }
})

test("the peer's caret follows its typing", async () => {
  const [writer, reviewer] = [await browser.newUser(galley), await browser.newUser(galley)]
  await writer.begin("Kim", "First.\nLast.")
  await reviewer.follow(await writer.invite(), "Lee")
  await reviewer.waitForText("First.\nLast.")
  const { keyboard } = writer.page
  /** @param {string} wanted what stands before the caret on its line */
  const caretAfter = (wanted) =>
    reviewer.page.waitForFunction((before) => {
      const caret = document.querySelector(".peer-caret")
      const range = document.createRange()
      if (!caret) return false
      range.setStart(/** @type {Element} */ (caret.closest(".cm-line")), 0)
      range.setEndBefore(caret)
      return range.toString() === before
    }, wanted)

  await writer.page.locator(".cm-content").click()
  await keyboard.press("Control+End")
  await keyboard.type(" 끝에 씁니다")
  await caretAfter("Last. 끝에 씁니다")
  await keyboard.press("Control+Home")
  await keyboard.type("The ")
  await caretAfter("The ")
  for (let left = 0; left < 4; left += 1) await keyboard.press("ArrowLeft")
  await caretAfter("")
})

/** Selections that span or touch the peer's caret, by keys after Control+Home, and what is left of the text before and behind them. */
const OVER_CARET = [
  { keys: ["End", "Shift+ArrowRight"], left: ["I am fine.", "끝 줄입니다.\nLast."], name: "the break before the caret's line" },
  { keys: ["ArrowDown", "Home", "Shift+End"], left: ["I am fine.\n", "\nLast."], name: "the caret's line" },
  { keys: ["ArrowRight", "Control+Shift+End"], left: ["I", ""], name: "three lines" },
]
for (const role of /** @type {const} */ (["writer", "reviewer"])) {
  test(`what the ${role} types over a selection with the peer's caret in it replaces that selection alone`, async () => {
    const [writer, reviewer] = [await browser.newUser(galley), await browser.newUser(galley)]
    const text = "I am fine.\n끝 줄입니다.\nLast."
    await writer.begin("Kim", text)
    await reviewer.follow(await writer.invite(), "이서연")
    await reviewer.waitForText(text)
    const [user, peer] = role === "writer" ? [writer, reviewer] : [reviewer, writer]
    await peer.page.locator(".cm-line", { hasText: "끝" }).click()
    for (const key of ["Home", "ArrowRight", "ArrowRight", "ArrowRight"]) await peer.page.keyboard.press(key)
    await user.page.locator(".cm-line", { hasText: "끝" }).locator(".peer-caret").waitFor({ state: "attached" })
    const { keyboard } = user.page
    const session = await user.page.context().newCDPSession(user.page)
    await user.page.locator(".cm-content").click()
    const seen = () => user.page.evaluate(() => /** @type {any} */ (document.querySelector(".cm-content")).cmTile.root.view.state.doc.toString())
    const ways = {
      "a key": () => keyboard.press("x"),
      "an input": () => keyboard.insertText("x"),
      "a deletion by a menu": () => session.send("Input.dispatchKeyEvent", { type: "rawKeyDown", commands: ["deleteBackward"] }),
    }
    for (const { keys, left, name } of OVER_CARET) {
      for (const [way, act] of Object.entries(ways)) {
        for (const key of ["Control+Home", ...keys]) await keyboard.press(key)
        await act()
        assert.equal(await seen(), left.join(way.startsWith("a deletion") ? "" : "x"), `${way} over ${name}`)
        await keyboard.press("Control+z")
        assert.equal(await seen(), text, `one undo of ${way} over ${name}`)
      }
    }
  })
}

test("the actions of a selection are shown until one is taken", async () => {
  const [writer, reviewer] = [await browser.newUser(galley), await browser.newUser(galley)]
  await writer.begin("Kim", "One line.\nAnother line.")
  await reviewer.follow(await writer.invite(), "Lee")
  await reviewer.waitForText("One line.\nAnother line.")
  const bar = reviewer.page.locator("#selection-bar")
  await reviewer.select("One")
  await bar.getByRole("button", { name: "Comment" }).click()
  await bar.waitFor({ state: "hidden" })
  await reviewer.page.keyboard.type("Which one?")
  await reviewer.page.keyboard.press("Control+Enter")
  await reviewer.card("Which one?").waitFor()
  // The message may draw the card before the answer closes the form.
  await reviewer.page.locator(".card-draft").waitFor({ state: "detached" })
  await bar.waitFor({ state: "hidden" })
  await reviewer.select("Another")
  await bar.waitFor()
})

test("a reviewer who reads cannot change the text, by typing or by pasting", async () => {
  const { writer, reviewer } = await bothSeated("Leave me as I am.", {}, {}, ["Kim", "Lee"])
  await reviewer.page.locator("#mode label", { hasText: "Reading" }).click()
  await reviewer.select("me")
  await reviewer.page.keyboard.type("XX")
  await reviewer.page.keyboard.press("Delete")
  await reviewer.page.keyboard.insertText("pasted")
  await reviewer.waitForText("Leave me as I am.")
  await writer.waitForText("Leave me as I am.")
})

test("the first key of a reviewer who reads is answered, and its button suggests for the sentence at the caret", async () => {
  const { reviewer } = await bothSeated("첫 문장입니다. 둘째 문장을 고칩니다. 셋째 문장입니다.")
  await reviewer.page.locator("#mode label", { hasText: "Reading" }).click()
  await reviewer.select("둘째")
  for (const key of ["ArrowRight", "x"]) await reviewer.page.keyboard.press(key)
  const hint = reviewer.page.locator("#typing-hint")
  await hint.getByText("This is “Reading”: keys change nothing.").waitFor()
  await reviewer.shot("typing-hint")
  const before = reviewer.page.viewportSize() ?? { width: 1280, height: 720 }
  await reviewer.resize({ width: 480, height: 720 })
  // Earlier than its own end.
  await hint.waitFor({ state: "hidden", timeout: 6_000 })
  await reviewer.resize(before)
  await reviewer.page.keyboard.press("x")
  await hint.getByRole("button", { name: "Suggest for this sentence" }).click()
  const field = reviewer.page.locator(".card-draft .prose")
  await field.waitFor()
  assert.equal(await field.inputValue(), "둘째 문장을 고칩니다.")
  assert.equal(await hint.isVisible(), false)
  await reviewer.page.keyboard.press("Escape")
  await reviewer.page.locator(".cm-line").first().click()
  await reviewer.page.keyboard.press("x")
  await hint.getByRole("button", { name: "Switch to Suggesting" }).click()
  await reviewer.toEnd()
  await reviewer.page.keyboard.type("!")
  await reviewer.waitForText("첫 문장입니다. 둘째 문장을 고칩니다. 셋째 문장입니다.!")
})

test("while a reply is written its button is the strong one", async () => {
  const { writer, reviewer } = await bothSeated("One sentence.", {}, {}, ["Kim", "Lee"])
  await reviewer.review("One", { body: "why" })
  const card = writer.card("why")
  await card.click()
  const color = (/** @type {string} */ name) =>
    card.getByRole("button", { name }).evaluate((button) => getComputedStyle(button).backgroundColor)
  const decides = await color("Resolve")
  await card.locator(".reply-field").fill("Because")
  assert.equal(await color("Send"), await writer.page.locator("#turn button").evaluate((button) => getComputedStyle(button).backgroundColor))
  assert.notEqual(await color("Resolve"), decides)
})

test("a third user is refused with a sentence, and sees nothing of the text", async () => {
  const [writer, reviewer, third] = [
    await browser.newUser(galley),
    await browser.newUser(galley),
    await browser.newUser(galley),
  ]
  // The first line is the title, which a valid invite shows.
  await writer.begin("Kim", "A letter\n\nBetween the two of us.")
  const invite = await writer.invite()
  await reviewer.follow(invite, "Lee")
  await reviewer.seated()
  await third.page.goto(invite)
  await third.page.getByRole("heading", { name: "This document already has a reviewer" }).waitFor()
  assert.equal(await third.page.getByText("Between the two of us.").count(), 0)
  await third.shot("together-third")
  await third.page.getByRole("button", { name: "Tell Kim" }).click()
  await third.page.locator("#entry-name").fill("Park")
  await third.page.keyboard.press("Enter")
  await third.page.getByRole("heading", { name: "Kim has been told" }).waitFor()
  await third.page.goto(writer.page.url())
  await third.page.getByRole("heading", { name: "There is no such document for you" }).waitFor()
  await third.page.goto(invite.replace(/#.*/, ""))
  await third.page.getByRole("heading", { name: "The link is incomplete" }).waitFor()
})

test("the same user's other tab is named, and may take over", async () => {
  const writer = await browser.newUser(galley)
  await writer.begin("Kim", "One tab.")
  const second = await writer.page.context().newPage()
  await second.goto(writer.page.url())
  const here = second.locator("#notice").getByRole("button", { name: "Use it here instead" })
  await second.getByText("You have this open in another tab.").waitFor()
  // The text of the server stands there, read-only, so no text is called empty.
  await second.locator(".cm-line", { hasText: "One tab." }).waitFor()
  assert.equal(await second.locator(".cm-placeholder").isVisible(), false)
  await here.click()
  await second.locator("#saved[data-kind=saved]").waitFor()
  assert.equal(await second.locator("#counts").isVisible(), true)
  await writer.page.getByText("You're now editing in another tab").waitFor()
  await writer.shot("together-taken-over")
  assert.equal(await writer.page.locator(".cm-content").getAttribute("contenteditable"), "true")
  await writer.page.locator(".cm-content").click()
  await writer.page.keyboard.type("lost?")
  await writer.waitForText("One tab.")
  await second.locator(".cm-content").click()
  await second.keyboard.press("Control+End")
  await second.keyboard.type(" Two.")
  await second.locator(".cm-line", { hasText: "One tab. Two." }).waitFor()
})

test("reviews can be edited, rejected, resolved, reopened and deleted", async () => {
  const { writer, reviewer } = await bothSeated("The first one. The second one. The third one.", {}, {}, ["Kim", "Lee"])
  await reviewer.review("first", { body: "one" })
  await reviewer.review("second", { suggestion: "next" })
  await reviewer.review("third", { body: "three" })

  const mine = reviewer.card("one")
  // The active card stands near its line: one card has room above it, and the other left the column at its top.
  await reviewer.page.locator("#cards-above").getByText("1 above").click()
  await mine.and(reviewer.page.locator("[data-active=true]")).waitFor()
  await mine.getByRole("button", { name: "Edit" }).click()
  await reviewer.page.locator("#cards .review-form textarea:not(.prose)").fill("one, really")
  await reviewer.page.locator("#cards .review-form").getByRole("button", { name: "Save" }).click()
  await writer.card("one, really").click()
  await writer.card("one, really").getByRole("button", { name: "Resolve" }).click()
  await writer.page.locator("#tab-done").getByText("1 done").waitFor()

  await writer.card("next").click()
  await writer.card("next").getByRole("button", { name: "Reject" }).click()
  await writer.page.locator("#tab-done").getByText("2 done").waitFor()
  await writer.waitForText("The first one. The second one. The third one.")

  await writer.page.locator("#tab-done").click()
  const done = writer.page.locator("#done-cards .card", { hasText: "one, really" })
  await done.getByRole("button", { name: "Reopen" }).click()
  // Another review is still done: the page follows this one to the open ones, and its card has the focus.
  await writer.page.locator("#cards .card:focus", { hasText: "one, really" }).waitFor()
  await reviewer.card("one, really").waitFor()

  const third = reviewer.card("three")
  await third.click()
  await third.getByRole("button", { name: "Delete" }).click()
  await third.getByRole("button", { name: "Delete it?" }).click()
  await writer.card("three").waitFor({ state: "detached" })
  assert.notEqual(await reviewer.page.evaluate(() => document.activeElement?.tagName), "BODY", "the focus went somewhere")
})

test("the review of a deleted passage moves to the tab of lost ones, and a moved passage is located", async () => {
  const { writer, reviewer } = await bothSeated("A sentence that goes away. Another that stays here.", {}, {}, ["Kim", "Lee"])
  await reviewer.review("sentence that goes", { body: "about it" })
  await writer.card("about it").waitFor()
  await writer.select("A sentence that goes away. ")
  await writer.page.keyboard.press("Delete")
  for (const { page } of [writer, reviewer]) await page.locator("#tab-lost").click()
  const orphan = writer.page.locator("#lost-cards .card", { hasText: "about it" })
  await orphan.locator("blockquote").getByText("sentence that goes").waitFor()
  await reviewer.page.locator("#lost-cards .card", { hasText: "about it" }).waitFor()
  await writer.shot("together-orphan")

  await writer.page.keyboard.press("Control+End")
  await writer.page.keyboard.insertText(" A sentence that goes away.")
  await writer.card("about it").waitFor()
  await writer.page.locator(".passage", { hasText: "sentence that goes" }).waitFor()
})

test("the writer may change the title, and the reviewer sees the new one", async () => {
  const writer = await browser.newUser(galley)
  await writer.begin("Kim", "Body")
  await writer.page.locator("#title").fill("자기소개서 3차")
  await writer.page.keyboard.press("Enter")
  await writer.page.waitForFunction(() => document.title.startsWith("자기소개서 3차"))
  await writer.page.goto(galley.url)
  await writer.page.locator("#mine").getByRole("link", { name: "자기소개서 3차" }).waitFor()
})
