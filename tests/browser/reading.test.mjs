// @ts-check
/** The line that a user reads stays where it is while the other user's edits, suggestions and decisions change the text above it. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { drawn, until } from "./harness.mjs"
import { bothSeated, withGalley } from "./support.mjs"
import { suggest } from "./typed.mjs"

withGalley()

/** @typedef {import("./harness.mjs").User} User */

/** `above`: a line above the window of the one that is read, near enough to be drawn. */
const WINDOWS = [{ width: 1440, height: 900, above: 64 }, { width: 360, height: 640, above: 76 }]
/** How far the line may move, in px. */
const STILL = 3
/** The line that is read. */
const READ = 80
/** Lines of different lengths, each with a name of its own; long ones wrap. */
const LINES = Array.from({ length: 160 }, (_, at) => `line${at} ${"저는 물류가 좋습니다. One plain sentence. ".repeat(1 + (at % 4))}`.trim())
const TEXT = LINES.join("\n")

/** @param {{ width: number, height: number }} viewport */
const both = (viewport) => bothSeated(TEXT, { viewport }, { viewport }, ["Kim", "Lee"])

/** Frames in which nothing is left to lay out. @param {User} user */
const settled = (user) => drawn(user, 12)

/** Where a line stands in the window, in px; infinite: it is not drawn, and above or below. @param {User} user @param {number} line */
const topOf = ({ page }, line) =>
  page.evaluate((wanted) => {
    const drawn = [...document.querySelectorAll(".cm-line")].flatMap((line) => {
      const name = /^line(\d+) /.exec(line.textContent ?? "")?.[1]
      return name === undefined ? [] : [{ name: Number(name), top: line.getBoundingClientRect().top }]
    })
    const found = drawn.find(({ name }) => name === wanted)?.top
    return found ?? ((drawn[0]?.name ?? 0) < wanted ? 1e6 : -1e6)
  }, line)

/** Scrolls until a line stands there. @param {User} user @param {number} line @param {number} wanted in px */
async function scrollLine(user, line, wanted) {
  await until(async () => {
    const by = (await topOf(user, line)) - wanted
    await user.page.evaluate((by) => scrollBy({ top: by, behavior: "instant" }), Math.max(Math.min(by, 700), -700))
    await drawn(user)
    return Math.abs(by) < 2
  }, `line ${line} is there`)
}

/** Reads a line in the middle of the window, with or without the caret in it. @param {User} user @param {boolean} hasFocus */
async function read(user, hasFocus) {
  const { page } = user
  await scrollLine(user, READ, (page.viewportSize()?.height ?? 0) / 2)
  if (hasFocus) await page.locator(".cm-line", { hasText: `line${READ} ` }).first().click({ position: { x: 200, y: 8 } })
  else await page.evaluate(() => document.activeElement instanceof HTMLElement && document.activeElement.blur())
  await settled(user)
}

/** The line that is read stays. @param {User} user @param {string} what @param {() => Promise<unknown>} act until the page has followed */
async function stays(user, what, act) {
  const before = await topOf(user, READ)
  await act()
  await settled(user)
  const by = (await topOf(user, READ)) - before
  assert.ok(Math.abs(by) <= STILL, `${what} moves the line by ${by} px`)
}

/** Puts the caret before a line of the text. @param {User} user @param {number} line */
async function caretBefore(user, line) {
  await scrollLine(user, line, 300)
  await user.page.locator(".cm-line", { hasText: `line${line} ` }).first().click({ position: { x: 4, y: 8 } })
  await user.page.keyboard.press("Home")
}

/** The page has another text. @param {User} user @param {() => Promise<unknown>} act */
async function changes({ page }, act) {
  const count = () => page.locator(".count-all dd").first().textContent()
  const before = await count()
  await act()
  await until(async () => (await count()) !== before, "the text changes")
}

// The tests take each pair of role, window and caret once.
for (const [at, { above, ...viewport }] of WINDOWS.entries()) {
  const how = (/** @type {boolean} */ hasFocus) => `at ${viewport.width} px, ${hasFocus ? "with" : "without"} the caret in it`
  test(`the line that the reviewer reads stays under the writer's edits ${how(at === 1)}`, async () => {
    const hasFocus = at === 1
    const { writer, reviewer } = await both(viewport)
    const { keyboard } = writer.page
    for (const line of [12, 60]) {
      await caretBefore(writer, line)
      await read(reviewer, hasFocus)
      const seen = (/** @type {string} */ what, /** @type {() => Promise<unknown>} */ act) => stays(reviewer, `${what} before line ${line}`, () => changes(reviewer, act))
      await seen("an insertion", () => keyboard.insertText("새 줄\n".repeat(12)))
      await seen("a long paragraph", () => keyboard.insertText(`${"새 줄과 긴 글입니다. ".repeat(80)}\n`))
      await seen("a deletion", async () => {
        await keyboard.down("Shift")
        for (let step = 0; step < 6; step++) await keyboard.press("ArrowUp")
        await keyboard.up("Shift")
        await keyboard.press("Delete")
      })
      await seen("an undo", () => keyboard.press("Control+z"))
    }
  })

  test(`the line that the writer reads stays under suggestions and decisions ${how(at === 0)}`, async () => {
    const hasFocus = at === 0
    const { writer, reviewer } = await both(viewport)
    await read(writer, hasFocus)
    await stays(writer, "a suggestion", async () => {
      await suggest(
        reviewer,
        TEXT,
        { changes: [{ after: "line3 ", text: "아주 긴 제안입니다. ".repeat(40) }] },
        { changes: [{ after: "line60 ", text: "둘째\n줄\n셋\n".repeat(4) }] },
        { changes: [{ quote: LINES[62] ?? "", text: "" }] },
        { changes: [{ quote: `line${above} 저는`, text: `line${above} 나는 정말로 아주 많이 `.repeat(8) }] },
      )
      await until(async () => (await writer.page.locator("#cards .card").count()) === 4, "four suggestions")
      await writer.page.locator(".cm-line .passage-new", { hasText: "정말로" }).first().waitFor({ state: "attached" })
    })
    await read(writer, hasFocus)
    await read(reviewer, hasFocus)
    const acceptAll = () => writer.page.keyboard.press("Control+Alt+a")
    const done = (/** @type {User} */ { page }, /** @type {boolean} */ isShown) => page.locator(`#tab-done${isShown ? ":not([hidden])" : "[hidden]"}`).waitFor({ state: "attached" })
    await stays(writer, "an acceptance of all", async () => {
      await changes(writer, acceptAll)
      await done(reviewer, true)
    })
    await stays(reviewer, "the undo of a decision", async () => {
      await writer.page.locator("#toast button").first().click()
      await Promise.all([done(writer, false), done(reviewer, false)])
    })
    await read(writer, hasFocus)
    await stays(writer, "one acceptance", () => changes(writer, () => writer.page.evaluate(async () => {
      const api = await source("api")
      const link = (await api.links())[0]
      const review = (await api.reviews(link.id)).find((/** @type {any} */ { parts, anchor }) => (parts?.[0]?.text ?? anchor?.quote ?? "").includes("정말로"))
      await api.decide(link.id, review, "accept")
    })))
  })
}
