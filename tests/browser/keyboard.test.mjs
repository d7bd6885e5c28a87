// @ts-check
/** Everything by keyboard: from the first page to an accepted suggestion, without a mouse. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { until } from "./harness.mjs"
import { bothSeated, browser, galley, tabTo, withGalley } from "./support.mjs"

withGalley()

/** @param {import("./harness.mjs").User} user */
const focused = (user) =>
  user.page.evaluate(() => {
    const { activeElement: element } = document
    const outline = element ? getComputedStyle(element).outlineStyle : "none"
    return { tag: element?.tagName ?? "", text: element?.textContent ?? "", outline, matches: element?.className ?? "" }
  })

test("a text is pasted, commented on, corrected and accepted without a mouse", async () => {
  const [writer, reviewer] = [await browser.newUser(galley), await browser.newUser(galley)]
  const keys = writer.page.keyboard
  await writer.page.goto(galley.url)
  await tabTo(writer, "#name")
  await keys.type("Kim")
  await tabTo(writer, "#way-paste")
  await keys.press("Enter")
  await keys.insertText("One two three. Four five six.")
  await tabTo(writer, "#paste-go")
  await keys.press("Enter")
  await writer.seated()
  await tabTo(writer, "#invite")
  const invite = await writer.copied(() => keys.press("Enter"))

  const others = reviewer.page.keyboard
  await reviewer.page.goto(invite)
  await reviewer.page.locator("#entry-name").waitFor()
  await others.type("Lee")
  await others.press("Enter")
  await reviewer.seated()
  await tabTo(reviewer, ".cm-content")
  await others.press("Control+Home")
  for (let step = 0; step < 3; step++) await others.press("Shift+ArrowRight")
  await others.press("Control+Alt+m")
  await others.type("Why one?")
  await others.press("Control+Enter")
  await reviewer.card("Why one?").waitFor()
  // The message may draw the card before the answer gives it the focus.
  await until(async () => /Why one\?/.test((await focused(reviewer)).text), "the focus is on the new card")
  await others.press("Escape")
  await others.press("Control+End")
  await others.press("ArrowLeft")
  for (let step = 0; step < 3; step++) await others.press("Shift+ArrowLeft")
  await others.press("Control+Alt+m")
  await tabTo(reviewer, ".review-form .button-quiet")
  await others.press("Enter")
  await others.type("seven")
  await others.press("Control+Enter")
  await writer.card("seven").waitFor()

  await keys.press("Alt+ArrowDown")
  assert.match((await focused(writer)).text, /Why one\?/)
  assert.notEqual((await focused(writer)).outline, "none", "the focus is visible")
  await keys.press("Alt+ArrowDown")
  assert.match((await focused(writer)).text, /seven/)
  await keys.press("Alt+a")
  await writer.waitForText("One two three. Four five seven.")
  await keys.press("Control+z")
  await writer.waitForText("One two three. Four five six.")
  await writer.card("seven").waitFor()
  await keys.press("Alt+ArrowDown")
  assert.match((await focused(writer)).text, /seven/)
  await keys.press("Alt+a")
  await writer.waitForText("One two three. Four five seven.")
  await writer.page.locator("#tab-done").getByText("1 done").waitFor()
  assert.match((await focused(writer)).text, /Why one\?/, "the focus went to the neighbour")
  await keys.press("Enter")
  await tabTo(writer, "[data-decision=resolve]")
  await keys.press("Shift+Tab")
  await keys.type("Because.")
  await keys.press("Control+Enter")
  await reviewer.card("Because.").waitFor()
  // The message may draw the reply at the reviewer before the answer empties the writer's field.
  await until(async () => (await writer.card("Because.").locator(".reply textarea").inputValue()) === "", "it is sent")
  await keys.press("Escape")
  await keys.press("Alt+ArrowUp")
  await keys.press("Alt+r")
  await writer.page.locator("#tab-done").getByText("2 done").waitFor()
  assert.match((await focused(writer)).matches, /cm-content/, "no card is left, so the text has the focus")
  await reviewer.page.locator("#tab-done").getByText("2 done").waitFor()
  await tabTo(reviewer, "#turn button")
  await others.press("Enter")
  await reviewer.page.locator("#toast").getByRole("button", { name: "Undo" }).waitFor()
  await writer.page.locator("#turn").getByText("Your turn").waitFor()
})

test("each card is one tab stop, Enter goes to its buttons, Esc back, and arrows to its neighbours", async () => {
  const { writer, reviewer } = await bothSeated("One. Two. Three.", {}, {}, ["Kim", "Lee"])
  for (const quote of ["One", "Two"]) await reviewer.review(quote, { body: `about ${quote}`, suggestion: quote.toLowerCase() })
  await writer.card("about Two").waitFor()
  for (const quote of ["One", "Two"]) {
    const card = writer.card(`about ${quote}`)
    const accept = card.getByRole("button", { name: `Accept: Lee, “${quote}”`, exact: true })
    // A screen reader finds it before its card is active.
    const found = async () => `${await writer.page.locator("body").innerText()}\n${(await card.evaluateAll((cards) => cards.map((card) => card.outerHTML))).join("\n")}`
    await until(async () => (await accept.count()) === 1, "the button is in the tree of a screen reader", found)
    if (quote === "One") await tabTo(writer, ".card")
    else await writer.page.keyboard.press("Tab")
    assert.equal(await card.evaluate((card) => card === document.activeElement), true, "one stop leads to the next card")
    assert.equal(await card.getAttribute("data-active"), "true")
  }
  await writer.page.keyboard.press("ArrowUp")
  assert.match((await focused(writer)).text, /about One/)
  await writer.page.keyboard.press("End")
  const accept = writer.card("about Two").getByRole("button", { name: "Accept" })
  await writer.page.keyboard.press("Enter")
  assert.equal(await accept.evaluate((button) => button === document.activeElement), true)
  const box = await accept.boundingBox()
  assert.ok(box && 24 <= box.width && 24 <= box.height, "it is shown")
  await writer.page.keyboard.press("Tab")
  assert.match((await focused(writer)).text, /Reject/, "inside a card Tab leads to the next button")
  await writer.page.keyboard.press("Escape")
  assert.match((await focused(writer)).matches, /card/)
  await writer.page.keyboard.press("Tab")
  assert.doesNotMatch((await focused(writer)).matches, /button-strong/, "from the card Tab leaves it again")
  await writer.page.keyboard.press("Shift+Tab")
  await writer.page.keyboard.press("Enter")
  await writer.page.keyboard.press("Enter")
  await writer.waitForText("One. two. Three.")
})

test("a button keeps the focus when the reply of the other user draws its card again", async () => {
  const { writer, reviewer } = await bothSeated("One. Two.", {}, {}, ["Kim", "Lee"])
  await reviewer.review("Two", { body: "about Two", suggestion: "two" })
  const card = writer.card("about Two")
  const accept = card.getByRole("button", { name: "Accept: Lee, “Two”", exact: true })
  await card.waitFor()
  await tabTo(writer, ".card")
  await writer.page.keyboard.press("Enter")
  await until(() => accept.evaluate((button) => button === document.activeElement), "the button has the focus")
  await reviewer.card("about Two").getByRole("textbox").fill("or 2")
  await reviewer.page.keyboard.press("Control+Enter")
  await card.getByText("or 2").waitFor()
  assert.ok(await accept.evaluate((button) => button === document.activeElement), "the button still has the focus")
  await writer.page.keyboard.press("Enter")
  await writer.waitForText("One. two.")
})

test("escape leads back into the text, to the passage", async () => {
  const { writer, reviewer } = await bothSeated("Begin. The middle part. The end.", {}, {}, ["Kim", "Lee"])
  await reviewer.review("middle part", { body: "here" })
  await writer.card("here").waitFor()
  const keys = writer.page.keyboard
  await keys.press("Alt+ArrowDown")
  await keys.press("Escape")
  await keys.type("very ")
  await writer.waitForText("Begin. The very middle part. The end.")
  assert.equal(await writer.page.locator(".passage").textContent(), "middle part")
})

test("the question mark lists the keys, and is a letter in the text", async () => {
  const writer = await browser.newUser(galley)
  await writer.begin("Kim", "Why")
  const keys = writer.page.keyboard
  await writer.page.locator("#menu summary").focus()
  await keys.press("?")
  await writer.page.getByRole("dialog").getByText("Comment on the selection").waitFor()
  await writer.shot("keyboard-list")
  await keys.press("Escape")
  await writer.page.locator(".cm-content").focus()
  await keys.press("Control+End")
  await keys.press("?")
  await writer.waitForText("Why?")
  assert.equal(await writer.page.getByRole("dialog").count(), 0)
  await keys.press("Control+/")
  await writer.page.getByRole("dialog").getByText("Comment on the selection").waitFor()
  await keys.press("Escape")
  await keys.press("!")
  await writer.waitForText("Why?!")
})

test("Ctrl Shift Z redoes on Windows in both editors, and struck words are no empty text", async () => {
  const writer = await browser.newUser(galley, { locale: "ko-KR" })
  const reviewer = await browser.newUser(galley, { locale: "ko-KR" })
  for (const { page } of [writer, reviewer]) await page.addInitScript(() => Object.defineProperty(navigator, "platform", { get: () => "Win32" }))
  await writer.begin("김민수", "둘째 문단이 여기 있습니다.")
  await reviewer.join(writer, "이서연")
  await reviewer.page.locator(".cm-content:not([aria-readonly=true])").waitFor()
  const { keyboard } = reviewer.page
  for (const [word, put] of [["둘째", "첫째"], ["문단이", "단락이"]]) {
    await reviewer.select(word ?? "")
    await keyboard.press("Delete")
    await keyboard.insertText(put ?? "")
  }
  const end = "첫째 단락이 여기 있습니다."
  await reviewer.waitForText(end)
  await keyboard.press("Control+KeyZ")
  await keyboard.press("Control+Shift+KeyZ")
  await reviewer.waitForText(end)
  await writer.page.locator("#cards .card").waitFor()
  // Typed text of the writer is redone by the same keys.
  await writer.page.locator(".cm-content").click()
  await writer.page.keyboard.press("Control+End")
  await writer.page.keyboard.insertText("가")
  await writer.page.keyboard.press("Control+KeyZ")
  await writer.waitForText("둘째 문단이 여기 있습니다.")
  await writer.page.keyboard.press("Control+Shift+KeyZ")
  await writer.waitForText("둘째 문단이 여기 있습니다.가")
  // Struck words are words: no sentence says that the writer has written nothing.
  await reviewer.page.locator(".cm-content").click()
  await keyboard.press("Control+KeyA")
  await keyboard.press("Delete")
  await reviewer.waitForText("")
  await reviewer.page.locator(".passage-old").first().waitFor()
  assert.equal(await reviewer.page.locator(".cm-placeholder").filter({ visible: true }).count(), 0)
})
