// @ts-check
/**
 * The margin with many reviews on one passage: the active card, its passage and its form stay inside
 * the window.
 */

import assert from "node:assert/strict"
import { test } from "node:test"

import { drawn, steadyBox, until } from "./harness.mjs"
import { browser, galley, withGalley } from "./support.mjs"

withGalley()

const COUNT = 20
const WINDOW = { width: 1280, height: 720 }
/** One paragraph of twenty numbered clauses, below other text. */
const clause = (/** @type {number} */ at) => `물류 현장에서 배운 점 ${at + 1}번`
const TEXT = `지원 동기\n\n${Array.from({ length: COUNT }, (_, at) => clause(at)).join(", ")}.\n\n${"마지막 문단입니다.\n\n".repeat(30)}`

/** Opens the document of two users, with a review on each clause. @param {number} [count] @param {string} [text] */
async function crowd(count = COUNT, text = TEXT) {
  const [writer, reviewer] = [await browser.newUser(galley), await browser.newUser(galley)]
  for (const user of [writer, reviewer]) await user.resize(WINDOW)
  await writer.begin("김민수", text)
  await reviewer.follow(await writer.invite(), "이서연")
  await reviewer.seated()
  const body = (/** @type {number} */ at) => `${at + 1}번째 의견입니다. 근거를 한 문장으로 더 써 주시면 좋겠습니다.`
  await reviewer.createReviews(text, Array.from({ length: count }, (_, at) => ({ quote: clause(at), body: body(at) })))
  for (const user of [writer, reviewer]) {
    await until(async () => (await user.page.locator("#cards .card").count()) === count, `${count} cards`)
  }
  return { writer, reviewer }
}

/**
 * The edges of the active card and of its passage, and of the part of the window between the bars.
 *
 * @param {import("./harness.mjs").User} user
 */
const edges = ({ page }) =>
  page.evaluate(() => {
    const span = (/** @type {Element | null | undefined} */ element) => {
      const rect = element?.getBoundingClientRect()
      return { top: Math.round(rect?.top ?? NaN), bottom: Math.round(rect?.bottom ?? NaN) }
    }
    const card = document.querySelector("#cards .card[data-active=true]")
    const passage = document.querySelector(".passage-active, .passage-pending")
    const send = card?.querySelector("button[type=submit]:not([hidden])")
    return {
      card: span(card),
      passage: span(passage),
      send: send && send.checkVisibility() ? span(send) : null,
      bar: span(document.querySelector("#bar")).bottom,
      foot: span(document.querySelector("#text-counts-bar")).top,
    }
  })

/** @param {import("./harness.mjs").User} user @param {string} what */
async function assertInside(user, what) {
  const isInside = async () => {
    const { card, passage, send, bar, foot } = await edges(user)
    const fits = (/** @type {{ top: number, bottom: number }} */ { top, bottom }) => bar <= top && bottom <= foot
    return fits(card) && bar <= passage.top && passage.top < foot && (send === null || fits(send))
  }
  await until(isInside, what, async () => JSON.stringify(await edges(user)))
}

test("with 20 reviews on one paragraph each click shows the passage and its card", async () => {
  const { writer, reviewer } = await crowd()
  for (const user of [writer, reviewer]) {
    for (const at of [0, 19, 7, 12, 3, 16]) {
      // The caret of the other user divides the passage that it stands in.
      const card = user.card(`${at + 1}번째 의견`).filter({ hasNotText: `1${at + 1}번째` }).first()
      await user.page.locator(`.passage[data-review="${await card.getAttribute("data-card")}"]`).first().click()
      await card.and(user.page.locator("[data-active=true]")).waitFor()
      await assertInside(user, `click on ${clause(at)}`)
    }
  }
  await writer.shot("margin-crowded-writer")
})

test("Alt ↓ shows each card in turn, and the first is the one after the caret", async () => {
  const { writer } = await crowd()
  await writer.select(clause(4))
  for (let step = 0; step < 2; step++) await writer.page.keyboard.press("ArrowLeft")
  for (let at = 4; at < COUNT; at++) {
    await writer.page.keyboard.press("Alt+ArrowDown")
    await writer.card(`${at + 1}번째 의견`).and(writer.page.locator("[data-active=true]")).waitFor()
    await assertInside(writer, `Alt ↓ to ${clause(at)}`)
  }
})

test("Alt ↓ and Alt ↑ lead from the caret, in the middle and at the end of the text, to its neighbours", async () => {
  const { writer } = await crowd(6)
  const { page } = writer
  const active = (/** @type {number} */ at) => writer.card(`${at + 1}번째 의견`).and(page.locator("[data-active=true]")).waitFor()
  /** Puts the caret into the text by a click or a key, with no card active. @type {[string, () => Promise<unknown>, number, number][]} */
  const carets = [
    ["before the first", () => page.keyboard.press("Control+Home"), 0, 5],
    ["between the third and the fourth", async () => {
      await writer.select(clause(3))
      for (let step = 0; step < 2; step++) await page.keyboard.press("ArrowLeft")
    }, 3, 2],
    ["after the last", async () => {
      await writer.select("마지막 문단입니다")
      await page.keyboard.press("ArrowRight")
    }, 0, 5],
    ["at the end", () => page.keyboard.press("Control+End"), 0, 5],
  ]
  for (const [where, move, next, previous] of carets) {
    for (const [keys, at] of /** @type {const} */ ([["Alt+ArrowDown", next], ["Alt+ArrowUp", previous]])) {
      // A card elsewhere was the last one in use.
      await page.locator(".passage", { hasText: clause(1) }).first().click()
      await active(1)
      await page.locator(".cm-content").focus()
      await move()
      await page.locator("#cards .card[data-active=true]").waitFor({ state: "detached" })
      await page.keyboard.press(keys)
      await active(at)
      await assertInside(writer, `${keys} with the caret ${where}`)
    }
  }
})

test("the form of a new comment and its button are inside the window", async () => {
  const { reviewer } = await crowd()
  for (const at of [1, 10, 19]) {
    await reviewer.select(clause(at))
    await reviewer.page.keyboard.press("Control+Alt+m")
    await reviewer.page.locator(".card-draft").waitFor()
    await assertInside(reviewer, `the form on ${clause(at)}`)
    await reviewer.page.keyboard.type("첫 줄\n둘째 줄\n셋째 줄\n넷째 줄\n다섯째 줄")
    await assertInside(reviewer, `the grown form on ${clause(at)}`)
    if (at === 10) await reviewer.shot("margin-crowded-form")
    await reviewer.page.locator(".card-draft").getByRole("button", { name: "Cancel" }).click()
  }
})

test("an active card that grows stays above the foot", async () => {
  const { writer, reviewer } = await crowd(12)
  const card = writer.page.locator("#cards .card").nth(11)
  await card.click()
  await assertInside(writer, "the card")
  const id = await card.getAttribute("data-card")
  const height = (await card.boundingBox())?.height ?? 0
  await reviewer.page.evaluate(async (id) => {
    const api = await source("api")
    for (let reply = 0; reply < 3; reply += 1) await api.reply(location.pathname.split("/").pop(), { id }, "덧붙이는 말입니다. ".repeat(4))
  }, id)
  await until(async () => height + 100 < ((await card.boundingBox())?.height ?? 0), "the card has grown")
  await assertInside(writer, "the card with its replies")
})

test("done reviews have a tab of their own, and leave the open cards beside their lines", async () => {
  const { writer } = await crowd(6)
  for (let at = 0; at < 3; at++) {
    await writer.card(`${at + 1}번째 의견`).click()
    await writer.card(`${at + 1}번째 의견`).getByRole("button", { name: "Resolve" }).click()
  }
  await writer.page.locator("#tab-done").getByText("3 done").waitFor()
  await writer.page.locator("#tab-done").click()
  for (let at = 0; at < 3; at++) {
    const card = writer.page.locator("#done-cards .card", { hasText: `${at + 1}번째 의견` })
    await card.getByRole("button", { name: "Reopen" }).waitFor()
  }
  assert.equal(await writer.page.locator("#cards .card").first().isVisible(), false, "the tabs share no column")
  await writer.shot("margin-done")
  await writer.page.keyboard.press("ArrowLeft")
  await writer.page.locator(".passage", { hasText: clause(4) }).first().click()
  await assertInside(writer, "the open tab again")
})

test("a line connects the active card and the one under the pointer with their passages, and no other", async () => {
  const { reviewer } = await crowd(3)
  const { page } = reviewer
  /** Where the lines to the cards begin and end, in px of the window. */
  const lines = () =>
    page.locator(".connectors path").evaluateAll((paths) =>
      paths.map((path) => {
        const { left, right, top, bottom } = path.getBoundingClientRect()
        return { left, right, top, bottom, active: path.classList.contains("connector-active") }
      }),
    )
  const number = async (/** @type {number} */ count, /** @type {string} */ what) =>
    until(async () => (await lines()).length === count, what, async () => JSON.stringify(await lines()))
  await page.locator(".cm-line").last().click()
  await page.mouse.move(5, 5)
  await number(0, "no card is active: no line")
  await page.locator(".passage", { hasText: clause(0) }).first().click()
  await page.mouse.move(5, 5)
  await number(1, "the active card has a line")
  const [line] = await lines()
  const card = await page.locator("#cards .card[data-active=true]").boundingBox()
  const passage = await page.locator(".passage-active").first().boundingBox()
  assert.ok(line?.active && card && passage)
  assert.ok(Math.abs(line.right - card.x) <= 2, `the line ends at the card: ${line.right} and ${card.x}`)
  assert.ok(card.y <= line.bottom && line.top <= card.y + card.height, "and at its height")
  const text = await page.locator(".cm-content").boundingBox()
  assert.ok(text && text.x + text.width <= line.left, `it is under no word: ${JSON.stringify([line, text])}`)
  assert.ok(line.top <= passage.y + passage.height && passage.y <= line.bottom, `and begins at the height of the passage: ${JSON.stringify([line, passage])}`)
  await page.locator("#cards .card").nth(2).hover()
  await number(2, "the card under the pointer has a line, too")
  assert.deepEqual((await lines()).map(({ active }) => active).sort(), [false, true])
  await page.mouse.move(5, 5)
  await number(1, "and loses it with the pointer")
})

test("the margin scrolls to the cards above, “above” leads to the first, and a click beside the paper releases the active card", async () => {
  const { writer } = await crowd()
  const { page } = writer
  const [first, last] = [page.locator("#cards .card").first(), page.locator("#cards .card").nth(COUNT - 1)]
  const isInside = () => first.evaluate((card) => {
    const head = document.querySelector("#margin-head")?.getBoundingClientRect().bottom ?? NaN
    return head <= card.getBoundingClientRect().top + 1
  })
  await page.locator(".passage", { hasText: clause(COUNT - 1) }).first().click()
  await last.and(page.locator("[data-active=true]")).waitFor()
  await until(async () => !(await isInside()), "the first card has made room")
  await last.hover()
  const isAtTop = () => page.evaluate(() => scrollY === 0)
  for (const [by, inside] of /** @type {const} */ ([[-4_000, true], [4_000, false], [-4_000, true]])) {
    // Up, the first turn of the wheel ends at the edge of the page, and the next one moves the column; down, the column
    // moves first. The browser scrolls the page some frames after the turn.
    await page.mouse.wheel(0, by)
    if (by < 0) await until(isAtTop, "the page is at its top")
    await page.mouse.wheel(0, by)
    if (0 < by) await until(async () => !(await isAtTop()), "the page is scrolled down")
    await until(async () => (await isInside()) === inside, `after the wheel: ${by}`)
  }
  assert.equal(await last.getAttribute("data-active"), "true", "the wheel activates nothing")
  await page.mouse.wheel(0, 4_000)
  await page.locator("#cards-above").click()
  await first.and(page.locator("[data-active=true]")).waitFor()
  await page.mouse.click(10, 400)
  await page.locator("#cards .card[data-active=true]").waitFor({ state: "detached" })
})

test("a comment on the whole text keeps its two lines while the cards below it fold, and folds where they leave it no room", async () => {
  const { writer, reviewer } = await crowd()
  await reviewer.page.evaluate(async () => {
    const api = await source("api")
    await api.createReview(location.pathname.split("/").pop(), { anchor: null, body: "글이 전체적으로 좋습니다. ".repeat(12) })
  })
  const summary = writer.page.locator("#cards .card[data-kind=summary]")
  await summary.waitFor()
  const folded = writer.page.locator("#cards .card[data-folded=true]")
  await until(async () => COUNT / 2 < (await folded.count()), "others are folded")
  assert.equal(await summary.getAttribute("data-folded"), "false")
  const height = await summary.evaluate((card) => card.getBoundingClientRect().height)
  assert.ok(32 < height && height < 100, `${height}`)
  await writer.page.locator(".passage", { hasText: clause(COUNT - 1) }).first().click()
  await summary.and(writer.page.locator("[data-folded=true]")).waitFor({ state: "attached" })
})

test("a card is level with the first line of its passage, and only the covered ones are counted as above", async () => {
  const { writer } = await crowd()
  const { page } = writer
  const measure = (/** @type {number} */ at) =>
    page.evaluate((clause) => {
      const middle = (/** @type {Node | null | undefined} */ node) => {
        const range = document.createRange()
        if (node) range.selectNodeContents(node)
        const { top = NaN, bottom = NaN } = range.getClientRects()[0] ?? {}
        return (top + bottom) / 2
      }
      const passage = [...document.querySelectorAll(".passage")].find(({ textContent }) => textContent?.includes(clause))
      const card = document.querySelector("#cards .card[data-active=true] header") ?? document.querySelector("#cards .card .body")
      const head = document.querySelector("#margin-head")?.getBoundingClientRect().bottom ?? NaN
      const covered = [...document.querySelectorAll("#cards .card")].filter((card) => card.getBoundingClientRect().top + 8 < head)
      const said = document.querySelector("#cards-above:not([hidden]) > [aria-hidden]")?.textContent ?? ""
      return { level: Math.round(middle(card) - middle(passage)), covered: covered.length, said: Number(/\d+/.exec(said)?.[0] ?? 0), scrolled: scrollY }
    }, clause(at))
  const holds = (/** @type {number} */ at) =>
    until(async () => {
      const { level, covered, said, scrolled } = await measure(at)
      return Math.abs(level) <= 2 && (covered === said || 0 < scrolled)
    }, `the card of clause ${at}`, async () => JSON.stringify(await measure(at)))
  await holds(0)
  for (const at of [1, 3, 6, 10]) {
    await page.evaluate(() => scrollTo({ top: 0 }))
    await page.locator(".passage", { hasText: clause(at) }).first().click()
    await page.locator("#cards .card").nth(at).and(page.locator("[data-active=true]")).waitFor()
    await holds(at)
  }
})

test("a folded card that moves away under the pointer stays active after the click", async () => {
  const { writer } = await crowd()
  const { page } = writer
  for (const at of [3, 9, 14]) {
    await page.locator(".passage", { hasText: clause(COUNT - 1) }).first().click()
    await page.locator("#cards .card").nth(COUNT - 1).and(page.locator("[data-active=true]")).waitFor()
    await page.locator(".passage", { hasText: clause(at) }).first().click()
    const [active, next] = [page.locator("#cards .card").nth(at), page.locator("#cards .card").nth(at + 1)]
    await active.and(page.locator("[data-active=true]")).waitFor()
    const box = await steadyBox(next)
    await page.mouse.move(box.x + box.width / 2, box.y + box.height - 2)
    await page.mouse.down()
    // The press has opened the card and moved it.
    await next.and(page.locator("[data-active=true]")).waitFor()
    await drawn(writer)
    await page.mouse.move(box.x + box.width / 2, box.y + box.height + 400)
    await page.mouse.up()
    await drawn(writer)
    assert.equal(await next.getAttribute("data-active"), "true")
  }
})

test("the toast of a resolved comment reopens it, and the invite is not offered beside a reviewer", async () => {
  const { writer } = await crowd(2)
  const { page } = writer
  await page.locator("#invite").waitFor({ state: "hidden" })
  await writer.card("1번째 의견").click()
  await writer.card("1번째 의견").getByRole("button", { name: "Resolve" }).click()
  await page.locator("#tab-done").getByText("1 done").waitFor()
  await page.locator("#toast", { hasText: "Resolved." }).getByRole("button", { name: "Undo" }).click()
  await writer.card("1번째 의견").and(page.locator("[data-active=true]")).waitFor()
  await page.locator("#tab-done").waitFor({ state: "hidden" })
})

test("of 300 open comments those near the window are drawn, a key moves none, and the keyboard reaches all", async () => {
  const count = 300
  const text = Array.from({ length: count }, (_, at) => `${clause(at)}을 적었습니다. ${"그 뒤의 문장입니다. ".repeat(12)}`).join("\n\n")
  const { writer } = await crowd(count, text)
  const { page } = writer
  const drawn = () => page.locator("#cards .card > .actions").count()
  const isDrawn = (/** @type {number} */ at) => page.locator("#cards > .card").nth(at).locator(".reply").count()
  await until(async () => 0 < (await drawn()), "the first cards are drawn")
  const bounded = async (/** @type {string} */ what) => {
    const nodes = await page.locator("#cards *").count()
    assert.ok((await drawn()) <= 60 && nodes < 9 * count, `${what}: ${await drawn()} cards are drawn, ${nodes} elements`)
  }
  await bounded("at the top")

  // Each card is in the list, with its subject as its name and its words, drawn or not.
  const list = await page.locator("#cards > .card").evaluateAll((cards) =>
    cards.map((card) => ({ name: card.getAttribute("aria-label") ?? "", words: card.querySelector(".body")?.textContent, tab: card.tabIndex })))
  for (const [at, { name, words, tab }] of list.entries()) {
    assert.ok(name.includes("이서연") && name.includes(`“${clause(at)}”`), `the name of card ${at}: ${name}`)
    assert.ok(words?.startsWith(`${at + 1}번째 의견`) && tab === 0, `the words of card ${at}: ${words}`)
  }

  // A card that is seen after a second in the window would change, too.
  await page.locator("#read-all").evaluate((button) => button instanceof HTMLElement && button.click())
  await until(async () => (await page.locator("#cards > .card[data-unread=true]").count()) === 0, "all are read")

  // A key beside the passages changes no card; a new line moves those near the window alone.
  await page.locator(".cm-line").nth(2).click()
  await page.keyboard.press("End")
  await writer.seated()
  const changes = (/** @type {() => Promise<void>} */ act) => changedCards(page, act)
  assert.equal((await changes(() => page.keyboard.type("abcde"))).length, 0, "a key writes to no card")
  const moved = (await changes(() => page.keyboard.press("Enter"))).length
  assert.ok(0 < moved && moved <= 60, `a new line moves ${moved} cards`)

  // The middle of the text: its cards are drawn beside their lines, and those of the top no more.
  await page.evaluate(() => window.scrollTo(0, document.documentElement.scrollHeight / 2))
  await until(async () => (await isDrawn(0)) === 0 && (await drawn()) > 0, "other cards are drawn")
  await bounded("in the middle")
  const apart = () => page.evaluate(() => {
    const inside = [...document.querySelectorAll(".cm-line .passage")].filter((mark) => {
      const { top } = mark.getBoundingClientRect()
      return 100 < top && top < innerHeight - 60
    })
    return inside.map((mark) => {
      const card = document.querySelector(`.card[data-card="${mark.getAttribute("data-review")}"]`)
      return card?.querySelector(".reply") ? Math.abs(card.getBoundingClientRect().top - mark.getBoundingClientRect().top) : NaN
    })
  })
  await until(async () => { const tops = await apart(); return 0 < tops.length && tops.every((top) => top < 40) }, "each stands beside its line", async () => JSON.stringify(await apart()))

  // The keyboard walks on where the cards were not drawn, and to both ends.
  await page.evaluate(() => {
    const reached = new Set()
    Object.assign(globalThis, { reached })
    document.querySelector("#cards")?.addEventListener("focusin", ({ target }) => target instanceof HTMLElement && reached.add(target.dataset.card))
  })
  await page.locator("#cards > .card").first().focus()
  for (let step = 1; step < 50; step++) await page.keyboard.press("ArrowDown")
  // @ts-expect-error -- set above
  assert.equal(await page.evaluate(() => globalThis.reached.size), 50)
  await assertInside(writer, "the fiftieth card")
  await bounded("on the way")
  await page.keyboard.press("End")
  await writer.card(`${count}번째 의견`).and(page.locator("[data-active=true]")).waitFor()
  await assertInside(writer, "the last card")
  await bounded("at the end")
  await page.keyboard.press("Enter")
  assert.equal(await page.evaluate(() => document.activeElement?.getAttribute("data-decision")), "resolve", "Enter leads to its buttons")
  await page.keyboard.press("Escape")
  await page.keyboard.press("Home")
  await writer.card("1번째 의견").first().and(page.locator("[data-active=true]:focus")).waitFor()
  await page.keyboard.press("Alt+ArrowUp")
  await page.locator("#cards > .card:last-child[data-active=true]:focus").waitFor()
  await page.keyboard.press("Alt+ArrowDown")
  await page.locator("#cards > .card:first-child[data-active=true]:focus").waitFor()
  await assertInside(writer, "the first card")
})

/** The cards that change until the page has drawn an act. @param {import("playwright-core").Page} page @param {() => Promise<void>} act */
async function changedCards(page, act) {
  const changed = await page.evaluateHandle(() => {
    /** @type {Set<Element>} */
    const cards = new Set()
    new MutationObserver((records) => {
      for (const { target } of records) {
        const card = target instanceof Element ? target.closest("#cards > .card") : target.parentElement?.closest("#cards > .card")
        if (card) cards.add(card)
      }
    }).observe(document.querySelector("#margin") ?? document.body, { subtree: true, childList: true, attributes: true, characterData: true })
    return cards
  })
  await act()
  await drawn({ page }, 5)
  return changed.evaluate((cards) => [...cards].map((card) => card.getAttribute("data-card")))
}
