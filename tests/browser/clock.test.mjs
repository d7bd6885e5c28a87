// @ts-check
/** Countdowns and days on a machine whose clock is wrong, or is set while the page is open. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { Galley, openMenu, timersRun, until } from "./harness.mjs"
import { browser, galley, replaceGalley, withGalley } from "./support.mjs"

/** @typedef {import("./harness.mjs").User} User */

withGalley({ per: "test" })

/** In ms. */
const HOUR = 3_600_000
const TEXT = "One plain sentence."

/** A user of a machine with a wrong clock. @param {number} hours @param {string} [locale] */
async function late(hours, locale = "en-GB") {
  const user = await browser.newUser(galley, { locale })
  await user.page.context().addInitScript((by) => {
    const Right = Date
    const now = () => Right.now() + Reflect.get(globalThis, "shift")
    const Wrong = new Proxy(Right, {
      construct: (of, given) => Reflect.construct(of, given.length === 0 ? [now()] : given),
      get: (of, name) => (name === "now" ? now : Reflect.get(of, name)),
    })
    Object.assign(globalThis, { shift: by, Date: Wrong })
  }, hours * HOUR)
  return user
}

/** Sets the clock of the machine while the page is open. @param {User} user @param {number} hours */
const setClock = ({ page }, hours) => page.evaluate((shift) => void Object.assign(globalThis, { shift }), hours * HOUR)

for (const hours of [9, -9]) {
  test(`the idle countdown is the server's, with a clock that is ${hours} h wrong and with one that is set meanwhile`, async () => {
    await replaceGalley(await Galley.start({ GALLEY_SEATS__LEASE: "3s", GALLEY_SEATS__RENEW_EVERY: "1s", GALLEY_SEATS__IDLE_RELEASE: "20s" }))
    const writer = await late(hours)
    await writer.begin("Kim", TEXT)
    const countdown = writer.notice.getByText(/Others can start in 0:(0[1-9]|1\d)\b/)
    await countdown.waitFor()
    await setClock(writer, -hours)
    await writer.page.waitForFunction((before) => document.getElementById("notice")?.textContent !== before, await writer.notice.textContent())
    assert.ok(await countdown.isVisible(), (await writer.notice.textContent()) ?? "")
  })

  test(`the code for another device is valid for a quarter of an hour, with a clock that is ${hours} h wrong`, async () => {
    const writer = await late(hours)
    await writer.begin("Kim", TEXT)
    await openMenu(writer, "#menu")
    await writer.page.locator("#menu-panel").getByRole("button", { name: "Use on another device" }).click()
    await writer.page.locator("#identity-dialog").getByText(/for another 1[45]:\d\d/).waitFor()
  })

  test(`a deleted document stays in the bin for 30 days, with a clock that is ${hours} h wrong`, async () => {
    const writer = await late(hours)
    await writer.begin("Kim", TEXT)
    await writer.page.evaluate(async () => (await source("api")).deleteDocument(location.pathname.split("/").pop()))
    await writer.notice.getByText("It stays in your bin for 30 days.").waitFor()
  })

  test(`a wait goes on for its hour when the clock is set by ${hours} h`, async () => {
    const writer = await late(0)
    await writer.begin("Kim", TEXT)
    const page = await writer.page.context().newPage()
    const tab = Object.assign(Object.create(writer), { page })
    await page.goto(writer.page.url())
    await page.locator("#notice").getByRole("button", { name: /^Wait/ }).click()
    await page.locator("#notice .waited", { hasText: /^Waiting since \d\d:\d\d$/ }).waitFor()
    const minute = async () => {
      const [, hour, past] = /(\d\d):(\d\d)$/.exec((await page.locator("#notice .waited").textContent()) ?? "") ?? []
      return Number(hour) * 60 + Number(past)
    }
    const before = await minute()
    await setClock(tab, hours)
    // The countdown has drawn itself twice since.
    await timersRun(tab, 1_100)
    // The page knows the server's clock to a second, and a minute may begin in it.
    const after = await minute()
    assert.ok(Math.abs(after - before) % (24 * 60 - 2) <= 1, `since minute ${before} and ${after} of the day`)
    await writer.page.close()
    await page.locator("#saved[data-kind=saved]").waitFor()
  })

  test(`the operations page counts the age of a seat by the server's clock, ${hours} h wrong here`, async () => {
    const writer = await browser.newUser(galley)
    await writer.begin("Kim", TEXT)
    const admin = await late(hours)
    await admin.page.goto(`${galley.url}/admin`)
    await admin.page.locator("#token").fill(galley.adminToken)
    await admin.page.keyboard.press("Enter")
    const row = admin.page.locator("#seats tbody tr", { hasText: "Kim" })
    await row.waitFor()
    const words = await row.innerText()
    assert.match(words, /\d+ seconds? ago/)
    assert.doesNotMatch(words, /hours?/)
  })
}

for (const hours of [33, -33]) {
  test(`today is the server's day, and a decision can be taken back for a day, with a clock that is ${hours} h wrong`, async () => {
    const writer = await late(hours)
    const reviewer = await browser.newUser(galley)
    await writer.begin("Kim", TEXT)
    await reviewer.follow(await writer.invite(), "Lee")
    await reviewer.seated()
    await reviewer.review("plain", { body: "Plainer.", suggestion: "clear" })
    const card = writer.card("Plainer.")
    await card.click()
    assert.match((await card.locator("time").first().textContent()) ?? "", /^\d\d:\d\d$/)
    await card.locator("[data-decision=accept]").click()
    await writer.waitForText("One clear sentence.")
    await writer.page.locator("#tab-done").click()
    await writer.page.locator("#done-cards .card").locator("[data-decision=take-back]").click()
    await writer.waitForText(TEXT)

    await openMenu(writer, "#menu")
    await writer.page.locator("#menu-panel").getByRole("button", { name: /^History/ }).click()
    const day = writer.page.locator(".history-day").first()
    await until(async () => (await day.textContent()) === "Today", "the newest version is of today", async () => (await day.textContent()) ?? "")
  })
}
