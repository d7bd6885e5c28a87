// @ts-check
/**
 * The text in its own language and direction, its counts, and the controls round it in every window.
 */

import assert from "node:assert/strict"
import { test } from "node:test"

import { openMenu, until } from "./harness.mjs"
import { assertFits, bothSeated, browser, galley, withGalley } from "./support.mjs"

withGalley()

/** @typedef {import("./harness.mjs").User} User */

const KOREAN = "1. 지원동기 (500자 이내)\n\n저는 대학에서 산업공학을 전공하며 데이터로 문제를 푸는 일에 매력을 느꼈습니다."
const ENGLISH = "A well-known process is one that nobody notices.\n\nIt is the work of the team."
const WINDOWS = [{ width: 1280, height: 720 }, { width: 360, height: 640 }]

/** @param {string} text @param {import("playwright-core").BrowserContextOptions} [options] */
const both = (text, options = {}) => bothSeated(text, options, options, ["Anna Bergström", "Maximilian Okonkwo"])

/** A count that is drawn anew meanwhile has no box for a moment. @param {User} user @param {string} selector */
const box = async ({ page }, selector) => {
  let found = await page.locator(selector).boundingBox()
  await until(async () => (found ??= await page.locator(selector).boundingBox()) !== null, `${selector} is drawn`)
  assert.ok(found)
  return { ...found, right: found.x + found.width, bottom: found.y + found.height }
}

for (const viewport of WINDOWS) {
  test(`the foot counts the selection at ${viewport.width} px`, async () => {
    const writer = await browser.newUser(galley, { locale: "ko-KR", viewport })
    await writer.begin("김민수", KOREAN)
    const selected = writer.page.locator("#selected")
    assert.equal(await selected.isVisible(), false)
    await writer.select("산업공학을 전공하며")
    await selected.getByText("선택 10자", { exact: true }).waitFor()
    await assertFits(writer, `selected-ko-${viewport.width}`)
    await writer.page.keyboard.press("ArrowLeft")
    await selected.waitFor({ state: "hidden" })
  })

  test(`the selection bar stays inside the window for a selection of many pages at ${viewport.width} px`, async () => {
    const text = Array.from({ length: 120 }, (_, at) => `${at}: ${ENGLISH.slice(0, 40)}`).join("\n")
    const { reviewer } = await both(text, { viewport })
    // The first lines may be out of the window, so no click reaches them.
    await reviewer.page.locator(".cm-content").focus()
    await reviewer.page.keyboard.press("Control+a")
    for (const top of [0, 900, 100_000]) {
      await reviewer.page.evaluate((top) => scrollTo(0, top), top)
      await until(async () => {
        const bar = await reviewer.page.locator("#selection-bar").boundingBox()
        const [head, foot] = [await box(reviewer, "#bar"), await box(reviewer, "#text-counts-bar")]
        return bar !== null && head.bottom <= bar.y && bar.y + bar.height <= foot.y && bar.x + bar.width <= viewport.width
      }, `the bar is inside the window at ${top}`)
    }
    await reviewer.shot(`selection-bar-${viewport.width}`)
  })
}

test("English is counted in words, and EUC-KR is shown where Korean is", async () => {
  const kinds = (/** @type {User} */ { page }) =>
    page.evaluate(() => [...document.querySelectorAll("#counts .count")].map(({ className }) => className.replace("count count-", "")))
  const english = await browser.newUser(galley)
  await english.begin("Anna", ENGLISH)
  assert.deepEqual(await kinds(english), ["all", "solid", "words", "utf8"])
  await english.page.locator(".count-words").getByText("15", { exact: true }).waitFor()
  const korean = await browser.newUser(galley, { locale: "ko-KR" })
  await korean.begin("김민수", KOREAN)
  assert.deepEqual(await kinds(korean), ["all", "solid", "utf8", "euckr"])
  await openMenu(korean, "#menu")
  await korean.page.locator("#menu select").first().selectOption("en")
  await until(async () => (await kinds(korean)).join() === "all,solid,words,utf8,euckr", "both, for a Korean text on an English page")
  await openMenu(korean, "#target")
  await korean.page.locator("#target-unit").selectOption("words")
  await korean.page.locator("#target-number").fill("5")
  await korean.page.getByText("14 / 5 words · 9 over").waitFor()
})

test("the text has its own language, whatever the language of the page is", async () => {
  const writer = await browser.newUser(galley, { locale: "en-GB" })
  await writer.begin("김민수", KOREAN)
  const content = writer.page.locator(".cm-content")
  await content.and(writer.page.locator("[lang=ko]")).waitFor()
  await content.click()
  await writer.page.keyboard.press("Control+a")
  await writer.page.keyboard.insertText("The text of the essay is in English, and that is what it says.")
  await content.and(writer.page.locator("[lang=en]")).waitFor()
})

test("an Arabic line runs from right to left, its full stop on the left; the lines round it do not", async () => {
  const { writer } = await both("The first line.\nهذا نص باللغة العربية.\nThe third line.")
  const lines = writer.page.locator(".cm-line")
  const directions = await lines.evaluateAll((all) => all.map((line) => getComputedStyle(line).direction))
  assert.deepEqual(directions, ["ltr", "rtl", "ltr"])
  const stop = await lines.nth(1).evaluate((line) => {
    const [line_, range] = [line.getBoundingClientRect(), document.createRange()]
    const text = document.createTreeWalker(line, NodeFilter.SHOW_TEXT).nextNode()
    if (!text) throw new Error("no text")
    const end = text.nodeValue?.length ?? 0
    range.setStart(text, end - 1)
    range.setEnd(text, end)
    const rect = range.getBoundingClientRect()
    range.setStart(text, 0)
    range.setEnd(text, 1)
    return { stop: rect.left, first: range.getBoundingClientRect().left, right: line_.right }
  })
  assert.ok(stop.stop < stop.first && stop.right - stop.first < 40, JSON.stringify(stop))
  await writer.shot("right-to-left")
})

test("a new word over the tail of a marked passage is outside the mark", async () => {
  const { writer, reviewer } = await both(ENGLISH)
  await reviewer.review("process is one", { body: "Which?" })
  await writer.card("Which?").waitFor()
  await writer.select("is one")
  await writer.page.keyboard.type("seems")
  await writer.waitForText(ENGLISH.replace("is one", "seems"))
  const mark = await writer.page.locator(".passage").allTextContents()
  assert.equal(mark.join("").trim(), "process")
})

test("over the target the parts of the foot keep their places", async () => {
  const writer = await browser.newUser(galley, { locale: "ko-KR", viewport: { width: 1440, height: 900 } })
  await writer.begin("김민수", "가".repeat(95))
  await writer.page.locator(".count-all dd").getByText("95", { exact: true }).waitFor()
  await openMenu(writer, "#target")
  await writer.page.locator("#target-number").fill("100")
  await writer.page.keyboard.press("Escape")
  const offsets = async () => [(await box(writer, ".count-all")).x, (await box(writer, ".count-utf8")).x, (await box(writer, ".count-euckr")).x]
  const before = await offsets()
  await writer.page.locator(".cm-content").click()
  await writer.page.keyboard.insertText("나".repeat(1_000))
  await writer.page.getByText("1,095 / 100자 · 995자 초과").waitFor()
  assert.deepEqual(await offsets(), before)
  await writer.shot("over-the-target-ko")
})

/** Words of controls that stand on more than one line, though they have no space. @param {User} user */
const brokenWords = ({ page }) =>
  page.evaluate(() => {
    const found = []
    for (const element of document.querySelectorAll(".button, summary, .tab, dt, dd, .seat-badge-name, .selected")) {
      const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT)
      for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        if (!node.parentElement?.checkVisibility() || node.parentElement.closest(".hidden")) continue
        for (const { index, 0: word } of (node.nodeValue ?? "").matchAll(/\S+/g)) {
          const range = document.createRange()
          range.setStart(node, index)
          range.setEnd(node, index + word.length)
          const lines = new Set([...range.getClientRects()].map(({ top }) => Math.round(top / 4)))
          if (1 < lines.size && 4 < range.getBoundingClientRect().width) found.push(word)
        }
      }
    }
    return found
  })

/** The parts of the foot that stand on each other. @param {User} user */
const overlapping = ({ page }) =>
  page.locator("#text-counts-bar > :not(.target), #target-now, #counts").evaluateAll((parts) => {
    const shown = parts.filter((part) => part.checkVisibility()).map((part) => ({ id: part.id, rect: part.getBoundingClientRect() }))
    return shown.filter(({ rect }, at) => at + 1 < shown.length && (shown[at + 1]?.rect.left ?? 0) + 1 < rect.right).map(({ id }) => id)
  })

const SIZES = [
  [320, 256], [320, 640], [360, 740], [480, 800], [600, 900], [768, 1024], [900, 700], [1024, 768], [1180, 720], [1280, 720], [1440, 900], [1920, 1080],
].map(([width = 0, height = 0]) => ({ width, height }))

for (const [locale, text] of [["en-GB", ENGLISH], ["ko-KR", KOREAN]]) {
  test(`no control breaks inside a word from 320 to 1920 px, and the foot is one row (${locale})`, async () => {
    const { writer, reviewer } = await both(`${text}\n\n`.repeat(20), { locale: String(locale) })
    await reviewer.page.evaluate(async (quote) => {
      const api = await source("api")
      await api.createReview(location.pathname.split("/").pop(), { anchor: { start: 3, end: 3 + quote.length, quote }, body: "?" })
    }, String(text).slice(3, 12))
    await writer.page.locator("#sheet-count", { hasText: "1" }).waitFor({ state: "attached" })
    await openMenu(writer, "#target")
    await writer.page.locator("#target-number").fill("1000")
    await writer.page.keyboard.press("Escape")
    for (const [at, size] of [...SIZES, ...SIZES].entries()) {
      if (at === SIZES.length) await writer.select(String(text).slice(0, 8))
      await writer.resize(size)
      const name = `window-${locale}-${size.width}-${size.height}${at < SIZES.length ? "" : "-selected"}`
      await assertFits(writer, name)
      await assertFits(writer, `${name}-foot`, "#text-counts-bar")
      assert.deepEqual(await brokenWords(writer), [], JSON.stringify(size))
      assert.deepEqual(await overlapping(writer), [], JSON.stringify(size))
      const foot = await box(writer, "#text-counts-bar")
      assert.ok(foot.height < 62, `the foot is ${foot.height} px high at ${size.width}`)
    }
    await writer.resize({ width: 320, height: 256 })
    const pinned = await writer.page.evaluate(() => ["#bar", "#text-counts-bar"].map((of) => getComputedStyle(/** @type {Element} */ (document.querySelector(of))).position))
    assert.deepEqual(pinned, ["static", "relative"], "a low window is for the text")
  })
}

for (const [locale, text] of [["en-GB", ENGLISH], ["ko-KR", KOREAN]]) {
  test(`a long selection, a target and an unread comment stand beside each other in a narrow foot (${locale})`, async () => {
    const { writer, reviewer } = await both(`${text}\n\n`.repeat(60), { locale: String(locale), viewport: { width: 320, height: 640 } })
    await openMenu(writer, "#target")
    await writer.page.locator("#target-number").fill("10000")
    await writer.page.keyboard.press("Escape")
    await reviewer.page.evaluate(async () => {
      const api = await source("api")
      await api.createReview(location.pathname.split("/").pop(), { anchor: null, body: "?" })
    })
    // In the closed sheet the comment stays unread.
    await writer.page.locator("#sheet-unread").waitFor()
    await writer.page.locator(".cm-content").focus()
    await writer.page.keyboard.press("Control+a")
    await writer.page.locator("#selected").waitFor()
    for (const size of [...SIZES, { width: 700, height: 900 }]) {
      await writer.resize(size)
      await assertFits(writer, `long-selection-${locale}-${size.width}-${size.height}`, "#text-counts-bar")
      await assertFits(writer, `long-selection-${locale}-${size.width}-${size.height}-page`)
      assert.deepEqual(await overlapping(writer), [], JSON.stringify(size))
      const cut = await writer.page.locator("#selected").evaluate((selected) => selected.scrollWidth - selected.clientWidth)
      assert.ok(cut <= 0, `the count is whole at ${size.width} px`)
    }
    await writer.page.getByRole("button", { name: locale === "ko-KR" ? /첨삭|의견/ : /Comments/ }).and(writer.page.locator("#sheet-open")).waitFor()
  })
}

test("at 1024 px no seat badge is cut while there is room", async () => {
  const { writer } = await both(ENGLISH, { viewport: { width: 1024, height: 768 } })
  const cut = await writer.page.locator(".seat-badge-name").evaluateAll((names) => names.filter((name) => name.clientWidth < name.scrollWidth).map((name) => name.textContent))
  assert.deepEqual(cut, [])
  assert.ok((await box(writer, "#turn button")).height < 40, "the button is one line")
})

test("the card of a suggestion whose passage has changed shows the quote once", async () => {
  const { writer, reviewer } = await both(ENGLISH)
  await reviewer.review("the work of the team", { body: "Plainer.", suggestion: "teamwork" })
  await writer.card("Plainer.").waitFor()
  await writer.select("work of")
  await writer.page.keyboard.type("labour of")
  const card = writer.card("Plainer.")
  await card.click()
  await card.locator(".card-state").getByText("The text has changed. With these words:").waitFor()
  await card.locator(".diff del").getByText("the labour of the team").waitFor()
  const quote = await card.locator("blockquote").boundingBox()
  assert.ok(!quote || quote.width <= 1, "the quote itself is for a screen reader")
})

test("the documents of a user who returns stand in the upper half of the start page", async () => {
  const { writer } = await both(ENGLISH, { viewport: { width: 1280, height: 720 } })
  await writer.page.goto(galley.url)
  const row = await box(writer, "#mine .row")
  assert.ok(row.bottom <= 360, `the first document ends at ${row.bottom} of 720 px`)
})
