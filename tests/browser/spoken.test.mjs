// @ts-check
/** The page to a screen reader: names, marks in the text, and each act confirmed on the screen and spoken. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { openMenu, timersRun, until } from "./harness.mjs"
import { assertAccessible, bothSeated, galley, withGalley } from "./support.mjs"

withGalley()

/** @typedef {import("./harness.mjs").User} User */

/** @param {import("playwright-core").BrowserContextOptions} [options] */
const desk = (options = {}) => bothSeated("One two three. Four five six. 중복 응답 37건을 지웠습니다.", options, options, ["김민수", "박제삼"])

/** The tree of an element, without the time of day. @param {import("playwright-core").Locator} locator */
async function tree(locator) {
  const snapshot = await locator.ariaSnapshot()
  return snapshot.replace(/\d\d:\d\d/g, "TIME")
}

/** The parts of the text, as a screen reader is given them. @param {User} user */
async function spokenText({ page }) {
  const cdp = await page.context().newCDPSession(page)
  const { nodes } = await cdp.send("Accessibility.getFullAXTree")
  const backend = new Map(nodes.map((node) => [node.nodeId, node]))
  /** @type {string[]} */
  const spoken = []
  const walk = (/** @type {string} */ id, /** @type {string} */ mark) => {
    const node = backend.get(id)
    if (!node) return
    if (node.role?.value === "StaticText") spoken.push(mark === "" ? String(node.name?.value) : `[${mark}: ${node.name?.value}]`)
    const details = node.properties?.some(({ name }) => String(name) === "details")
    const inner = ["mark", "deletion"].includes(String(node.role?.value)) ? `${node.description?.value}${details ? " with details" : ""}` : mark
    for (const child of node.childIds ?? []) walk(child, inner)
  }
  const text = nodes.find(({ role, properties }) =>
    role?.value === "textbox" && properties?.some(({ name, value }) => name === "multiline" && value.value) && !properties.some(({ name, value }) => name === "editable" && value.value === "richtext"))
  walk(text?.nodeId ?? "", "")
  await cdp.detach()
  return spoken.join("")
}

test("the list, a card and the form are named, and each button says to which card it belongs", async () => {
  const { writer, reviewer } = await desk()
  await reviewer.review("two", { body: "a digit", suggestion: "2" })
  await reviewer.review("중복 응답 37건", { body: "출처가 있나요?" })
  await writer.card("출처가").click()
  await writer.page.locator("#cards .card[data-active=true] .reply-field").waitFor()
  await writer.page.locator("#read-all").evaluate((button) => /** @type {HTMLElement} */ (button).click())
  await until(async () => !(await writer.page.title()).includes("●"), "both are read")
  await until(async () => (await writer.page.locator("#cards .unread").count()) === 0, "no card is called new")
  assert.equal(
    await tree(writer.page.locator("#cards")),
    `- list "2 open comments":
  - listitem "박제삼, “two”":
    - text: 박제삼
    - blockquote: two
    - paragraph:
      - deletion: "deleted: two"
      - insertion: "added: 2"
    - paragraph: a digit
    - 'button "Accept: 박제삼, “two”"': Accept
    - 'button "Reject: 박제삼, “two”"': Reject
  - listitem "박제삼, “중복 응답 37건”":
    - text: 박제삼
    - time: TIME
    - blockquote: 중복 응답 37건
    - paragraph: 출처가 있나요?
    - 'textbox "Reply: 박제삼, “중복 응답 37건”"':
      - /placeholder: Reply…
    - 'button "Resolve: 박제삼, “중복 응답 37건”"': Resolve`,
  )
  await reviewer.select("five")
  await reviewer.page.keyboard.press("Control+Alt+m")
  await reviewer.page.locator(".review-form .button-quiet").click()
  assert.equal(
    await tree(reviewer.page.locator(".card-draft")),
    `- listitem:
  - form "Comment on “five”":
    - text: Instead of the passage
    - textbox "Instead of the passage": five
    - text: Comment
    - textbox "Comment":
      - /placeholder: What should be different, and why?
    - button "Send" [disabled]
    - button "Cancel"
    - button "Comment only"`,
  )
  for (const user of [writer, reviewer]) await assertAccessible(user, "the named margin")
})

test("the marks in the text are spoken, and lead to their cards, in the language of the page", async () => {
  const { writer, reviewer } = await desk()
  await reviewer.review("two", { body: "a digit", suggestion: "2" })
  await reviewer.review("중복 응답 37건", { body: "출처가 있나요?" })
  await writer.card("출처가").waitFor()
  const wanted = "One [suggestion with details: two] three. Four five six. [comment with details: 중복 응답 37건]을 지웠습니다."
  await until(async () => (await spokenText(writer)) === wanted, `the text is spoken as ${wanted}; it is: ${await spokenText(writer)}`)
  const leads = await writer.page.locator(".passage:not(.passage-new)").evaluateAll((marks) =>
    marks.map((mark) => document.getElementById(mark.getAttribute("aria-details") ?? "")?.closest("[role=comment]")?.closest(".card")?.getAttribute("data-card") === mark.getAttribute("data-review")))
  assert.deepEqual(leads, [true, true])
  await openMenu(writer, "#menu")
  await writer.page.locator("#menu select").first().selectOption("ko")
  await until(async () => (await spokenText(writer)).includes("[의견 with details: 중복 응답 37건]"), "the mark is spoken in Korean")
})

test("each act is shown and spoken, and no sentence replaces the one before it", async () => {
  const { writer, reviewer } = await desk()
  await reviewer.review("two", { body: "a digit" })
  await reviewer.page.locator("#announcer").getByText("Sent.").waitFor()
  await writer.card("a digit").click()
  await writer.card("a digit").locator(".reply-field").fill("Yes.")
  await writer.page.keyboard.press("Control+Enter")
  await writer.page.locator("#announcer").getByText("Sent.").waitFor()
  await writer.card("a digit").getByRole("button", { name: "Resolve" }).click()
  await writer.page.locator("#toast").getByText("Resolved.").waitFor()
  await writer.page.locator("#tab-done").click()
  await writer.page.locator("#done-cards").getByRole("button", { name: "Reopen" }).click()
  await writer.page.locator("#toast").getByText("Open again.").waitFor()
  await writer.page.locator("#toast").getByText("Resolved.").waitFor()
  await assertAccessible(writer, "two toasts")
  const spoken = await writer.page.evaluate(async () => {
    const { announce } = await source("announce")
    const region = document.getElementById("announcer")
    /** @type {string[]} */
    const spoken = []
    const heard = new MutationObserver(() => region?.textContent && spoken.push(region.textContent))
    if (region) heard.observe(region, { childList: true })
    for (const sentence of ["First.", "Second.", "Second.", "Third."]) announce(sentence)
    while (spoken.at(-1) !== "Third.") await new Promise((resolve) => setTimeout(resolve, 50))
    return spoken.filter((sentence) => /^(First|Second|Third)/.test(sentence))
  })
  assert.deepEqual(spoken, ["First.", "Second.", "Third."])
})

/**
 * Records what the live regions speak: the text of each element that is put in, where the name of a button
 * stands for its words.
 *
 * @param {User} user
 */
const record = ({ page }) =>
  page.evaluate(() => {
    /** @type {string[]} */
    const said = []
    const nameOf = (/** @type {Node} */ node) => {
      if (!(node instanceof Element)) return node.textContent ?? ""
      for (const button of node.querySelectorAll("button")) button.dataset.name = button.getAttribute("aria-label") ?? button.textContent ?? ""
      return [...node.querySelectorAll("span, button")].map((part) => (part instanceof HTMLElement && part.dataset.name) || (part.closest("button") ? "" : part.textContent)).join(" ")
    }
    const heard = new MutationObserver((changes) => {
      for (const { addedNodes } of changes) for (const node of addedNodes) said.push(nameOf(node))
    })
    for (const region of document.querySelectorAll("#toast, #announcer")) heard.observe(region, { childList: true })
    Object.assign(globalThis, { said })
  })

/** How often each of the sentences was spoken since `record`. @param {User} user @param {readonly string[]} sentences */
const counts = ({ page }, sentences) =>
  page.evaluate((sentences) => {
    const said = /** @type {string[]} */ (Reflect.get(globalThis, "said")).join("\n")
    return sentences.map((sentence) => `${sentence} ${said.split(sentence).length - 1}`)
  }, sentences)

test("a toast and what its button does are spoken once each", async () => {
  const { writer, reviewer } = await desk()
  await reviewer.review("two", { body: "a digit", suggestion: "2" })
  await reviewer.review("five", { body: "why?" })
  const toast = writer.page.locator("#toast")
  /** @param {string} quote @param {string} body @param {string} act */
  const decide = async (quote, body, act) => {
    await writer.page.locator(".passage", { hasText: quote }).click()
    await writer.card(body).and(writer.page.locator("[data-active=true]")).waitFor()
    await writer.card(body).getByRole("button", { name: act }).click()
    await toast.getByRole("button", { name: "Undo", exact: true }).click()
  }
  const acts = /** @type {const} */ ([["two", "a digit", "Accept", "Accepted", "Undone."], ["two", "a digit", "Reject", "Rejected", "Undone."], ["five", "why?", "Resolve", "Resolved.", "Open again."]])
  for (const [quote, body, act, done, undone] of acts) {
    await record(writer)
    await decide(quote, body, act)
    // Not the toast: that of the act before has the same words, and may still be there.
    await until(async () => (await counts(writer, [undone]))[0] !== `${undone} 0`, `${act} is undone`)
    // An announcement that follows comes within its time in the region.
    await timersRun(writer, 1_500)
    assert.deepEqual(await counts(writer, [done, undone]), [`${done} 1`, `${undone} 1`], act)
  }
  await assertAccessible(writer, "a toast with a button")
})

/** The visible targets that are smaller than a finger needs. @param {User} user */
const small = ({ page }) =>
  page.evaluate(() => {
    const found = []
    for (const target of document.querySelectorAll("a[href], button, summary, input, select, textarea")) {
      if (!target.checkVisibility({ visibilityProperty: true, opacityProperty: true }) || target.closest(".cm-editor, [inert]")) continue
      const { width, height, right, bottom } = target.getBoundingClientRect()
      // The skip link stands outside until it has the focus.
      const isHidden = right <= 0 || bottom <= 0 || width <= 1 || height <= 1
      if (!isHidden && (width < 43.5 || height < 43.5)) found.push(`${target.outerHTML.slice(0, 120)} ${Math.round(width)}×${Math.round(height)}`)
    }
    return found
  })

test("where the pointer is coarse each target is 44 px high and wide", async () => {
  for (const viewport of [{ width: 390, height: 844 }, { width: 1024, height: 768 }]) {
    const { writer, reviewer } = await desk({ viewport, hasTouch: true, isMobile: true })
    await reviewer.page.evaluate(async () => {
      const api = await source("api")
      const link = location.pathname.split("/").pop()
      await api.createReview(link, { anchor: { start: 4, end: 7, quote: "two" }, body: "a digit", suggestion: "2" })
      await api.createReview(link, { anchor: { start: 20, end: 24, quote: "five" }, body: "a digit, too" })
    })
    for (const user of [writer, reviewer]) {
      await user.page.locator(".passage:not(.passage-new)").first().tap()
      await user.card("2").getByRole("button").first().waitFor()
      assert.deepEqual(await small(user), [], `the desk at ${viewport.width}`)
      await user.page.locator("#sheet-close").evaluate((close) => close instanceof HTMLElement && close.checkVisibility() && close.click())
      await user.page.locator("#menu summary").tap()
      assert.deepEqual(await small(user), [], `the menu at ${viewport.width}`)
      await user.shot(`touch-${viewport.width}`)
    }
    await writer.page.goto(galley.url)
    await writer.page.locator(".row").waitFor()
    await writer.page.locator("#way-paste").tap()
    assert.deepEqual(await small(writer), [], `the start page at ${viewport.width}`)
    await writer.shot(`touch-start-${viewport.width}`)
  }
})
