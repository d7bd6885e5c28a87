// @ts-check
/**
 * Takes the pictures of the README: a writer and a reviewer of one document, in both languages and schemes.
 *
 *     cargo build && node tests/data/readme/shoot.mjs
 *
 * The script drives a real server and Chromium, as the browser tests do.
 */

import { readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

import { Browser, Galley } from "../../browser/harness.mjs"

const here = dirname(fileURLToPath(import.meta.url))
const text = readFileSync(join(here, "cover_letter.txt"), "utf8").trim()
const viewport = { width: 1280, height: 860 }

/** Sends the reviewer's requests through the API: the pictures need no mouse. */
const make = (/** @type {[string, string, any[]]} */ [link, text, reviews]) =>
  Promise.all(
    reviews.map(async ({ quote, ...rest }) => {
      const start = text.indexOf(quote)
      // Without a quote it is a remark on the whole text.
      const anchor = quote === undefined ? null : { start, end: start + quote.length, quote }
      const response = await fetch(`/api/share-links/${link}/reviews`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ anchor, ...rest }),
      })
      if (!response.ok) throw new Error(await response.text())
    }),
  )

const reviews = [
  { body: "경험이 구체적이어서 좋습니다. 2번에는 결과까지 써 주세요." },
  {
    quote: "원인은 사람이 아니라 마감 시각이 저마다 다른 분류표였습니다.",
    body: "이 문장이 가장 좋습니다. 첫머리로 올리면 어떨까요?",
  },
  {
    quote: "귀사에 기여하고싶습니다.",
    body: "띄어쓰기를 고치고, 무엇으로 기여할지 한마디만 더해 주세요.",
    suggestion: "현장을 아는 분석으로 귀사에 기여하고 싶습니다.",
  },
]

/** @param {Galley} galley @param {Browser} browser @param {string} locale @param {string} name */
async function shoot(galley, browser, locale, name) {
  const options = { locale, viewport, deviceScaleFactor: 1.5 }
  const writer = await browser.newUser(galley, options)
  const reviewer = await browser.newUser(galley, options)
  await writer.page.goto(galley.url)
  await writer.page.locator("#name").fill("김민수")
  await writer.page.locator("#way-paste").click()
  await writer.page.locator("#paste-title").fill("한빛물류 자기소개서")
  await writer.page.locator("#paste-text").fill(text)
  await writer.page.locator("#paste button[type=submit]").click()
  await writer.seated()
  await reviewer.follow(await writer.invite(), "이서연")
  await reviewer.seated()
  const link = new URL(reviewer.page.url()).pathname.split("/").pop() ?? ""
  await reviewer.page.evaluate(make, /** @type {[string, string, any[]]} */ ([link, text, reviews]))
  await reviewer.select("석 달 동안")
  const card = writer.card("띄어쓰기를")
  await card.waitFor()
  await writer.page.locator(".cm-content").click({ position: { x: 40, y: 20 } })
  await card.click()
  // The notices of the copied invite and of the new comments have disappeared.
  await writer.page.waitForFunction(() => document.querySelector(".toast > p, .news > p") === null)
  for (const [colorScheme, end] of /** @type {const} */ ([["light", ".png"], ["dark", ".dark.png"]])) {
    await writer.page.emulateMedia({ colorScheme })
    await writer.page.screenshot({ path: join(here, name + end) })
  }
}

/** Words to type in place of a quote, or behind it. @typedef {{ quote: string, words: string, behind?: boolean }} Change */

/** @type {Record<string, { text: string, names: [string, string], changes: [Change, ...Change[]] }>} */
const typed = {
  "en-GB": {
    text: "I am writing to apply because I worked nights in a parcel depot, and I have learned how many decisions stand behind one box.",
    names: ["Mina", "Sora"],
    changes: [
      { quote: "am writing to apply", words: "apply" },
      { quote: "nights", words: " for three months", behind: true },
      { quote: "have learned", words: "learned" },
    ],
  },
  "ko-KR": {
    text: "저는 물류가 좋습니다. 택배 상하차 아르바이트를 하면서 하나의 상자가 사람의 손에 닿기까지 얼마나 많은 판단이 필요한지 알게 되었습니다.",
    names: ["김민수", "이서연"],
    changes: [
      { quote: "좋습니다", words: "재미있습니다" },
      { quote: "사람의 ", words: "" },
      { quote: "필요한지", words: " 새로", behind: true },
    ],
  },
}

/** The four steps of a typed suggestion. @param {Galley} galley @param {Browser} browser @param {string} locale @param {string} end of the names */
async function shootTyped(galley, browser, locale, end) {
  const { text, names, changes } = /** @type {typeof typed[string]} */ (typed[locale])
  const options = { locale, viewport: { width: 1280, height: 560 } }
  const [writer, reviewer] = [await browser.newUser(galley, options), await browser.newUser(galley, options)]
  await writer.begin(names[0], text)
  await reviewer.follow(await writer.invite(), names[1])
  await reviewer.seated()
  const { keyboard } = reviewer.page
  await reviewer.page.locator(".cm-content:not([aria-readonly=true])").waitFor()
  for (const { quote, words, behind } of changes) {
    await reviewer.select(quote)
    if (behind) await keyboard.press("ArrowRight")
    if (words === "") await keyboard.press("Backspace")
    else await keyboard.type(words)
    // Each is a suggestion of its own, and stored.
    await reviewer.page.waitForTimeout(1_500)
  }
  const clip = { x: 40, y: 0, width: 1200, height: 330 }
  const shot = (/** @type {import("../../browser/harness.mjs").User} */ { page }, /** @type {string} */ step) =>
    page.screenshot({ path: join(here, `${step}${end}.png`), clip })
  await shot(reviewer, "typed")
  await writer.page.waitForFunction(() => document.querySelector(".toast > p, .news > p") === null)
  await writer.select(changes[0].quote.split(" ")[0] ?? "")
  await writer.page.keyboard.press("ArrowRight")
  await writer.page.locator("#decision-bar button").first().waitFor()
  await shot(writer, "seen")
  await writer.page.keyboard.press("Alt+Enter")
  await writer.page.waitForTimeout(1_500)
  await shot(writer, "accepted")
  await writer.page.keyboard.press("Control+z")
  await writer.page.waitForTimeout(1_500)
  await shot(writer, "undone")
}

const galley = await Galley.start()
const browser = await Browser.start()
try {
  await shoot(galley, browser, "en-GB", "desk")
  await shoot(galley, browser, "ko-KR", "desk.ko")
  await shootTyped(galley, browser, "en-GB", "")
  await shootTyped(galley, browser, "ko-KR", ".ko")
  browser.assertContent()
} finally {
  await browser.stop()
  await galley.stop()
}
