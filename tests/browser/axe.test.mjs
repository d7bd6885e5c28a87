// @ts-check
/**
 * Axe reports nothing in any state of the page, in Korean and English, light,
 * dark and forced colors, in a wide window and on a phone (`looks.mjs`).
 */

import assert from "node:assert/strict"
import { test } from "node:test"

import { openMenu } from "./harness.mjs"
import { ALL, assertAccessibleIn, WORDS } from "./looks.mjs"
import { browser, galley, withGalley } from "./support.mjs"

withGalley()

/** @typedef {import("./harness.mjs").User} User */

const TEXT = `지원동기와 입사 후 포부

저는 대학에서 산업공학을 전공하며 데이터로 문제를 푸는 일에 매력을 느꼈습니다. 귀사에 꼭 기여하고싶습니다.

I believe that a good process is one that nobody notices. 중복 응답 37건을 지웠습니다.`

/** @param {import("playwright-core").BrowserContextOptions} [options] */
const newUser = (options) => browser.newUser(galley, { viewport: { width: 1280, height: 720 }, ...options })

/** The reviews of the desk: a comment, suggestions, and one whose passage is gone. */
const REVIEWS = [
  { quote: "산업공학을 전공하며", body: "어떤 과목이 특히 도움이 되었는지 한 마디 있으면 좋겠어요." },
  { quote: "기여하고싶습니다", body: "띄어쓰기", suggestion: "기여하고 싶습니다" },
  { quote: "nobody notices", body: "Less of a slogan?", suggestion: "goes unnoticed" },
  { quote: "데이터로 문제를", body: "지금은 괜찮아요." },
  { quote: "중복 응답 37건", body: "출처가 있나요?" },
]

/** @param {import("playwright-core").BrowserContextOptions} [options] */
async function desk(options) {
  const [writer, reviewer] = [await newUser(options), await newUser(options)]
  await writer.begin("김민수", TEXT)
  await reviewer.follow(await writer.invite(), "이서연")
  await reviewer.seated()
  return { writer, reviewer }
}

/** @param {User} reviewer */
const review = (reviewer) => reviewer.createReviews(TEXT, [...REVIEWS, { quote: null, body: "전체적으로 근거가 좋아요." }])

/**
 * Shows the states of a table one after the other, and runs axe in the looks of each: without own ones in half of them, and
 * the next state, which has most of its elements, in the other half.
 *
 * @param {User} user
 * @param {readonly (readonly [string, (user: User) => Promise<unknown>, (typeof ALL)?])[]} states
 */
async function each(user, states) {
  for (const [at, [name, show, looks = ALL.filter((_, look) => (look + at) % 2 === 0)]] of states.entries()) {
    await show(user)
    await assertAccessibleIn(user, name, looks)
  }
}

/** @param {string} selector */
const click = (selector) => (/** @type {User} */ { page }) => page.locator(selector).click()
/** @param {string} keys */
const press = (keys) => (/** @type {User} */ { page }) => page.keyboard.press(keys)

test("axe: the start page", async () => {
  const user = await newUser()
  await user.page.goto(galley.url)
  await each(user, [
    ["start", ({ page }) => page.locator("#name").waitFor()],
    ["start: no name", click("#way-paste"), WORDS],
    ["start: paste", async ({ page }) => {
      await page.locator("#name").fill("김민수")
      await page.locator("#way-paste").click()
      await page.locator("#paste-text").fill(TEXT)
    }],
    ["start: a wrong link", async ({ page }) => {
      await page.locator("#way-link").click()
      await page.locator("#link-field").fill("https://example.org/")
      await page.keyboard.press("Enter")
      await page.locator("#start-error:not(:empty)").waitFor()
    }, WORDS],
    ["start: returning", async ({ page }) => {
      await page.locator("#way-paste").click()
      await page.locator("#paste-go").click()
      await user.seated()
      await page.goto(galley.url)
      await page.locator(".row").waitFor()
    }],
    ["start: menu", click("#menu summary"), WORDS],
    ["start: delete", async ({ page }) => {
      await openMenu({ page }, "#menu")
      await page.locator("#mine .row button").first().click()
      await page.locator("#toast p").waitFor()
    }, WORDS],
    ["start: the bin", async ({ page }) => {
      await openMenu({ page }, "#bin details")
      await page.locator("#bin-list li").waitFor()
    }],
    ["start: delete for ever", async ({ page }) => {
      await page.locator("#bin-list li button").last().click()
      await page.locator("#confirm[open]").waitFor()
    }, WORDS],
    ["start: no such page", ({ page }) => page.goto(`${galley.url}/nonsense`), WORDS.slice(0, 1)],
  ])
})

/** The gate says its sentences once, so each language has a browser of its own. */
for (const [locale, language] of /** @type {const} */ ([["ko-KR", "ko"], ["en-GB", "en"]])) {
  /** @param {readonly import("./looks.mjs").Look[]} looks */
  const own = (looks) => looks.filter((look) => look.language === language)
  test(`axe: the gate (${language})`, async () => {
    const { writer } = await desk({ locale })
    const invite = await writer.invite()
    const [third, member] = [await newUser({ locale }), await newUser({ locale })]
    await member.begin("박제삼", "Another text.")
    const another = await member.invite()
    await third.page.goto(another)
    await each(third, [
      ["gate: name", ({ page }) => page.locator("#entry-name").waitFor(), own(ALL)],
      ["gate: refusal", async ({ page }) => {
        await page.goto(invite)
        await page.locator("#entry-dialog h1").waitFor()
      }, own(ALL)],
      ["gate: half of a link", async ({ page }) => {
        await page.goto(invite.split("#")[0] ?? "")
        await page.getByRole("heading").first().waitFor()
      }, own(WORDS)],
      ["gate: no such document", async ({ page }) => {
        await page.goto(`${galley.url}/d/doc_00000000000000000000000000000000`)
        await page.getByRole("heading").first().waitFor()
      }, own(WORDS)],
    ])
    await writer.page.goto(another)
    await writer.page.locator("#entry-dialog h1").waitFor()
    await assertAccessibleIn(writer, "gate: a confirmation", own(ALL))
    assert.equal(await writer.page.evaluate(() => document.documentElement.lang), language)
  })
}

test("axe: the desk of both", async () => {
  const writer = await newUser()
  await writer.begin("김민수", TEXT)
  await assertAccessibleIn(writer, "writer alone")
  const reviewer = await newUser()
  await reviewer.follow(await writer.invite(), "이서연")
  await reviewer.seated()
  await each(reviewer, [
    ["reviewer: nothing yet", async () => undefined, WORDS],
    ["reviewer: a key is typed while reading", async ({ page }) => {
      await page.keyboard.press("Control+Alt+s")
      await page.locator(".cm-content").click()
      await page.keyboard.press("x")
      await page.locator("#typing-hint").waitFor()
    }],
    ["reviewer: a selection", (user) => user.select("매력을")],
    ["reviewer: a new comment", press("Control+Alt+m")],
    ["reviewer: a new suggestion", async ({ page }) => {
      await page.locator(".review-form .button-quiet").click()
      await page.locator(".review-form .prose").fill("큰 매력을")
    }],
    ["reviewer: put away, with a toast", async ({ page }) => {
      await page.locator(".card-draft .actions button:not([type=submit])").first().click()
      await page.locator("#toast button").waitFor()
    }],
    ["reviewer: an overall comment", click("#summary-add"), WORDS],
  ])
  await press("Escape")(reviewer)
  await reviewer.select("매력을")
  // The news go when each card was in the window for a second.
  await Promise.all([writer.page.locator("#news").waitFor(), review(reviewer)])
  await writer.card("띄어쓰기").waitFor()
  await each(writer, [
    ["writer: news", async () => undefined],
    ["writer: what may be done with all comments", (user) => openMenu(user, "#margin-more")],
    ["writer: an active suggestion", async (user) => {
      // The menu closes also when a list that is drawn again has taken the focus out of it.
      await user.page.evaluate(() => document.activeElement instanceof HTMLElement && document.activeElement.blur())
      await user.page.keyboard.press("Escape")
      await user.card("띄어쓰기").click()
    }],
    ["writer: a reply is written", (user) => user.card("띄어쓰기").locator(".reply-field").fill("고맙습니다."), WORDS],
    ["writer: a reply is sent", async ({ page }) => {
      await page.keyboard.press("Control+Enter")
      await page.locator(".replies li").waitFor()
      // Its button is faint until the request has ended.
      await page.locator(".button[aria-busy=true]").first().waitFor({ state: "detached" })
    }],
    ["writer: done", async (user) => {
      await user.card("지금은 괜찮아요").click()
      await user.page.keyboard.press("Alt+r")
      await user.page.locator("#done-cards [data-status=resolved]").waitFor({ state: "attached" })
      await user.page.locator("#tab-done").click()
    }],
    ["writer: an accepted suggestion", async (user) => {
      await user.page.locator("#tab-open").click()
      await user.card("Less of a slogan?").click()
      await user.page.keyboard.press("Alt+a")
      await user.page.locator("#done-cards [data-status=accepted]").waitFor({ state: "attached" })
      await user.page.locator("#tab-done").click()
      await user.page.locator("#done-cards [data-decision=take-back]").waitFor()
    }],
    ["writer: a lost passage", async (user) => {
      await user.page.locator("#tab-open").click()
      await user.select("중복 응답 37건")
      await user.page.keyboard.press("Delete")
      await user.page.locator("#tab-lost").click()
    }],
    ["writer: an edited passage", async (user) => {
      await user.page.locator("#tab-open").click()
      await user.select("산업공학을")
      await user.page.keyboard.press("ArrowRight")
      await user.page.keyboard.type("!")
      await user.page.locator(".card-state").first().waitFor()
    }, WORDS],
    ["writer: the target", async ({ page }) => {
      await openMenu({ page }, "#target")
      await page.locator("#target-number").fill("100")
    }],
    ["writer: the search", async ({ page }) => {
      await page.keyboard.press("Escape")
      await page.locator(".cm-content").click()
      await page.keyboard.press("Control+f")
      await page.locator(".find input").first().fill("으로")
      await page.locator(".find-count:not(:empty)").waitFor()
    }],
    ["writer: the menu", async ({ page }) => {
      await page.locator(".find input").first().press("Escape")
      await openMenu({ page }, "#menu")
    }, WORDS],
    ["writer: the keys", async ({ page }) => {
      await page.keyboard.press("Escape")
      await page.keyboard.press("Control+/")
      await page.locator("#keys[open]").waitFor()
    }],
    ["writer: history", async ({ page }) => {
      await page.keyboard.press("Escape")
      await page.keyboard.press("Alt+h")
      await page.locator("#history[open] form").waitFor()
    }],
    ["writer: a named version", async ({ page }) => {
      await page.locator("#history form input").fill("제출본")
      await page.locator("#history form input").press("Enter")
      await page.locator("#history").getByText("제출본").first().waitFor()
      // Its button is faint until the versions are read again.
      await page.locator(".button[aria-busy=true]").first().waitFor({ state: "detached" })
    }],
    ["writer: a version is restored", async ({ page }) => {
      await page.locator("#history [role=option]").last().click()
      await page.locator("#history").getByRole("button", { name: /Restore|복원/ }).click()
      await page.locator("#confirm[open]").waitFor()
    }, WORDS],
    ["writer: print", async ({ page }) => {
      await page.locator("#confirm").press("Escape")
      await page.locator("#history-close").click()
      await page.keyboard.press("Control+p")
      await page.locator(".print-dialog[open]").waitFor()
    }],
  ])
  await press("Escape")(writer)
  await each(reviewer, [
    ["reviewer: cards", (user) => user.card("띄어쓰기").click()],
    ["reviewer: edits a comment", (user) => user.card("띄어쓰기").locator(":scope > .actions button").first().click()],
    ["reviewer: history", async ({ page }) => {
      await page.keyboard.press("Escape")
      await page.keyboard.press("Alt+h")
      await page.locator("#history[open]").waitFor()
    }, WORDS],
    ["reviewer: handed over", async ({ page }) => {
      await page.keyboard.press("Escape")
      await page.locator("#turn button").click()
      await page.locator("#turn .turn-status").waitFor()
    }],
    ["reviewer: the sheet of a phone", async (user) => {
      await user.page.keyboard.press("Escape")
      await user.resize({ width: 360, height: 740 })
      await user.page.locator("#sheet-open").evaluate((open) => open instanceof HTMLElement && open.click())
      await user.page.locator("[data-sheet=open]").waitFor()
    }, ALL.slice(3)],
  ])
  await each(writer, [
    ["writer: the turn is theirs", ({ page }) => page.locator("#turn .turn-status").waitFor(), WORDS],
    ["writer: edits a reply", async (user) => {
      await user.card("띄어쓰기").click()
      await user.card("띄어쓰기").locator(".reply-actions button").first().click()
      await user.page.locator(".reply-edit").waitFor()
    }, WORDS],
  ])
})

/** A page whose socket the test holds: it can freeze it, send events of the server, and close it. */
class HeldSocket {
  frozen = false
  /** The answer to the next attempts, if it is not the server's. @type {{ code: number, reason: string } | null} */
  refusal = null
  /** @type {import("playwright-core").WebSocketRoute | null} */
  #client = null

  /** @param {User} user */
  async hold({ page }) {
    await page.routeWebSocket(/\/ws\//, (client) => {
      this.#client = client
      if (this.refusal) return void client.close(this.refusal)
      const server = client.connectToServer()
      client.onMessage((message) => this.frozen || server.send(message))
      server.onMessage((message) => this.frozen || client.send(message))
    })
  }

  /** @param {object} event */
  send(event) {
    const text = Buffer.from(JSON.stringify(event))
    const length = text.length < 128 ? [text.length] : [(text.length & 127) | 128, text.length >> 7]
    this.#client?.send(Buffer.concat([Buffer.from([100, ...length]), text]))
  }

  /** @param {number} code @param {string} reason */
  async close(code, reason) {
    this.refusal = { code, reason }
    await this.#client?.close(this.refusal)
  }
}

test("axe: the states of a seat", async () => {
  const writer = await newUser()
  const socket = new HeldSocket()
  await socket.hold(writer)
  await writer.begin("김민수", TEXT)
  const { page, notice } = writer
  /** @param {string} words */
  const says = (words) => notice.getByText(words).waitFor()
  const english = () => page.evaluate(async () => (await source("i18n")).i18n.setLanguage("en"))
  const holder = (/** @type {boolean} */ own) => JSON.stringify({ holder: { name: "박제삼", since: new Date().toISOString(), you: own } })
  /** Of the same component; they differ by words and buttons. @type {[string, () => Promise<unknown>][]} */
  const states = [
    ["idle", async () => {
      socket.send({ event: "seat.idle", release_at: new Date(Date.now() + 58_000).toISOString() })
      await says("Still there?")
    }],
    ["nearly full", async () => {
      await page.keyboard.press("Shift")
      socket.send({ event: "document.size", state: "near", bytes: 900, limit: 1_000 })
      await says("nearly full")
    }],
    ["full", async () => {
      socket.send({ event: "document.size", state: "full", bytes: 1_000, limit: 1_000 })
      await says("This document is full")
    }],
    ["uncertain", async () => {
      socket.send({ event: "document.size", state: "ample" })
      socket.send({ event: "seat.uncertain" })
      await says("Checking that it is still your turn")
    }],
    ["frozen, with unsaved text", async () => {
      socket.send({ event: "seat.restored" })
      await notice.waitFor({ state: "hidden" })
      socket.frozen = true
      await page.locator(".cm-content").click()
      await page.keyboard.press("Control+End")
      await page.keyboard.type(" 아직 저장되지 않은 문장. One more sentence.")
      await says("the server does not answer")
    }],
    ["not stored", async () => {
      socket.send({ event: "problem", type: "/problems/not-saved", title: "not saved", status: 507 })
      await says("the server's disk is full")
    }],
    ["draining", async () => {
      socket.send({ event: "server.draining", reconnect_after_ms: 60_000 })
      await socket.close(1012, "draining")
      await says("The server is restarting")
    }],
    ["taken by another", async () => {
      socket.refusal = { code: 4409, reason: holder(false) }
      await notice.getByRole("button", { name: "Try now" }).click()
      await says("has been writing this since")
    }],
    ["taken by the own tab", async () => {
      socket.refusal = { code: 4409, reason: holder(true) }
      await notice.getByRole("button", { name: "Try again" }).click()
      await says("You have this open in another tab.")
    }],
    ["lost, with unsaved text", async () => {
      socket.refusal = { code: 4410, reason: "evicted" }
      await notice.getByRole("button", { name: "Use it here instead" }).click()
      await says("The administrator of this server ended your session.")
    }],
  ]
  for (const [at, [name, show]] of states.entries()) {
    await english()
    await show()
    await assertAccessibleIn(writer, `seat: ${name}`, at === 0 ? ALL : WORDS)
  }
  await english()
  page.on("dialog", (dialog) => dialog.accept())
  Object.assign(socket, { frozen: false, refusal: null })
  await page.reload()
  await page.locator("#recovered-drafts button").first().waitFor()
  await assertAccessibleIn(writer, "seat: unsaved text of last time")
  for (const [code, reason] of /** @type {const} */ ([[4401, "token-expired"], [4403, "not-your-role"], [4404, "revoked"], [4404, "deleted"]])) {
    await socket.close(code, reason)
    await page.reload()
    await notice.waitFor()
    await assertAccessibleIn(writer, `seat: closed, ${reason}`, WORDS)
  }
})
