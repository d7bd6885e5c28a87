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

const galley = await Galley.start()
const browser = await Browser.start()
try {
  await shoot(galley, browser, "en-GB", "desk")
  await shoot(galley, browser, "ko-KR", "desk.ko")
  browser.assertContent()
} finally {
  await browser.stop()
  await galley.stop()
}
