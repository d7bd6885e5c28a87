// @ts-check
/** What a person is told when something goes wrong, and that nothing they wrote is lost by it. */

import assert from "node:assert/strict"
import { afterEach, before, after, beforeEach, test } from "node:test"

import { Browser, Galley, Redis } from "./harness.mjs"

/** Seats that are looked after every second, so that nobody waits for a tick. */
const QUICK = { GALLEY_SEATS__LEASE: "3s", GALLEY_SEATS__RENEW_EVERY: "1s" }

/** @type {Galley} */
let galley
/** @type {Browser} */
let browser

before(async () => {
  browser = await Browser.start()
})
after(() => browser.stop())
beforeEach(async () => {
  galley = await Galley.start()
})
afterEach(() => galley.stop())

/** @param {import("./harness.mjs").Person} person @param {string} text at the end */
async function type(person, text) {
  await person.page.locator(".cm-content").click()
  await person.page.keyboard.press("Control+End")
  await person.page.keyboard.type(text)
}

test("a killed server is said, typing goes on, and what was typed is saved when it is back", async () => {
  const [writer, reviewer] = [await browser.person(galley), await browser.person(galley)]
  await writer.paste("Kim", "Before.")
  await reviewer.follow(await writer.invite(), "Lee")
  await reviewer.seated()
  await galley.end("SIGKILL")
  await writer.notice.getByText("Connection lost.").waitFor()
  await type(writer, " Meanwhile.")
  await writer.notice.getByText("11 edits are not saved yet.").waitFor()
  assert.doesNotMatch((await writer.page.locator("#saved").textContent()) ?? "", /^Saved/)
  await writer.shot("states-offline")
  await galley.run()
  await writer.seated()
  await writer.notice.waitFor({ state: "hidden" })
  await reviewer.sees("Before. Meanwhile.")
  const id = new URL(writer.page.url()).pathname.split("/").pop()
  const stored = await writer.page.request.get(`${galley.url}/api/documents/${id}/text`)
  assert.equal(await stored.text(), "Before. Meanwhile.")
  browser.assertContent()
})

test("a deletion made while the server is away is saved when it is back", async () => {
  const writer = await browser.person(galley)
  await writer.paste("Kim", "Too long.")
  await galley.end("SIGKILL")
  await writer.notice.getByText("Connection lost.").waitFor()
  await writer.page.locator(".cm-content").click()
  await writer.page.keyboard.press("Control+End")
  for (let step = 0; step < 6; step++) await writer.page.keyboard.press("Backspace")
  await writer.notice.getByText("6 edits are not saved yet.").waitFor()
  await galley.run()
  await writer.seated()
  await writer.page.reload()
  await writer.seated()
  await writer.sees("Too")
  browser.assertContent()
})

test("a deleted document ends the reviewer's seat with a reason", async () => {
  const [writer, reviewer] = [await browser.person(galley), await browser.person(galley)]
  await writer.paste("Kim", "Soon gone.")
  await reviewer.follow(await writer.invite(), "Lee")
  await reviewer.seated()
  await writer.page.goto(galley.url)
  await writer.page.locator("#mine .row").getByText("Lee there now").waitFor()
  await writer.page.locator("#mine").getByRole("button", { name: "Delete" }).click()
  await writer.page.getByRole("dialog").getByRole("button", { name: "Delete it" }).click()
  await writer.page.locator("#mine").getByText("Nothing here yet.").waitFor()
  await reviewer.notice.getByText("The share link was taken back.").waitFor()
  browser.assertContent()
})

test("a stopped server sends its clients back, and they come by themselves", async () => {
  const writer = await browser.person(galley)
  await writer.paste("Kim", "Steady.")
  await galley.end("SIGTERM")
  await galley.run()
  await writer.seated()
  await type(writer, " On.")
  await writer.page.locator("#saved[data-kind=saved]").waitFor()
  await writer.page.reload()
  await writer.sees("Steady. On.")
  browser.assertContent()
})

test("who does nothing for long is asked, and a sign of life keeps the seat", async () => {
  await galley.stop()
  galley = await Galley.start({ ...QUICK, GALLEY_SEATS__IDLE_RELEASE: "8s" })
  const writer = await browser.person(galley)
  await writer.paste("Kim", "Thinking.")
  await writer.notice.getByText(/Still there\? Your seat is given back in 0:0\d/).waitFor()
  await writer.shot("states-idle")
  // Said once to who cannot see the seconds go by, and any key is an answer.
  await writer.page.locator("#say", { hasText: "Still there? Your seat is given back in" }).waitFor()
  await writer.page.keyboard.press("Shift")
  await writer.notice.waitFor({ state: "hidden" })
  await writer.notice.getByText("Still there?").waitFor()
  await writer.notice.getByRole("button", { name: "Keep it" }).click()
  await writer.notice.waitFor({ state: "hidden" })
  await writer.notice.getByText("Still there?").waitFor()
  await writer.notice.getByText("Nothing happened here for a long time").waitFor()
  await writer.notice.getByRole("button", { name: "Sit down again" }).click()
  await writer.seated()
  browser.assertContent()
})

test("while the seat cannot be confirmed typing is paused, and goes on when it is", async () => {
  const redis = await Redis.start()
  try {
    await galley.stop()
    galley = await Galley.start({ ...QUICK, GALLEY_LOCKS__URL: redis.url, GALLEY_DATABASE__SHARED_SQLITE: "true" })
    const writer = await browser.person(galley)
    await writer.paste("Kim", "Sure.")
    redis.signal("SIGSTOP")
    await writer.notice.getByText("Checking your seat").waitFor()
    await writer.shot("states-uncertain")
    await type(writer, " Nothing of this.")
    await writer.sees("Sure.")
    redis.signal("SIGCONT")
    await writer.notice.waitFor({ state: "hidden" })
    await type(writer, " Again.")
    await writer.sees("Sure. Again.")
    await writer.seated()
    browser.assertContent()
  } finally {
    await redis.stop()
  }
})
