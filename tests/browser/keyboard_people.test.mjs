// @ts-check
/**
 * Reminders, notifications, requests, offers and files by the keyboard alone. Each change of a
 * status is spoken on the page of its cause and on the page of the other user.
 */

import assert from "node:assert/strict"
import { test } from "node:test"

import { ko } from "../../static/js/lib/i18n/ko.ts"
import { until } from "./harness.mjs"
import { hasFocus, newUser, partner, readAgain, reading, two } from "./people.mjs"
import { withPushService } from "./push_service.mjs"
import { hears, listen } from "./spoken.mjs"
import { browser, galley, tabTo, withGalley } from "./support.mjs"

/** @typedef {import("./harness.mjs").User} User */
/** @typedef {import("../../static/js/lib/i18n.ts").PageSentence} Sentence */

withGalley()

/** @param {User} user @param {string} key @param {number} [times] */
async function press({ page }, key, times = 1) {
  for (let time = 0; time < times; time += 1) await page.keyboard.press(key)
}

/** Tabs to an element and presses it. @param {User} user @param {string} selector @param {string} [key] */
async function choose(user, selector, key = "Enter") {
  await tabTo(user, selector)
  await press(user, key)
}

/** Agrees to the question of the page: its first button refuses. @param {User} user */
async function agree(user) {
  await hasFocus(user, "#confirm .button:first-child")
  await press(user, "Tab")
  await press(user, "Enter")
}

/** Opens the settings of notifications by the menu. @param {User} user */
async function openNotifications(user) {
  await choose(user, "#menu summary")
  await choose(user, "#menu-panel [data-t='menu.notifications']")
  await hasFocus(user, "#identity-title")
  await user.page.locator("#reminders-save").waitFor()
}

/** Records what the page says, from when it knows its user and their requests. @param {User} user */
async function listenToUser(user) {
  await listen(user)
  await user.page.locator("#partners-none").waitFor()
}

/** The settings that the server has. @param {User} user */
const stored = ({ page }) => page.evaluate(async () => (await source("notify_api")).reminders())

/** @param {User} user @param {string} selector */
const closed = ({ page }, selector) => page.locator(selector).waitFor({ state: "hidden" })

/** @param {Sentence} name @param {Record<string, string | number>} [values] */
const t = (name, values = {}) => String(ko[name]).replace(/\{(\w+)\}/g, (whole, key) => String(values[key] ?? whole))

test("reminders are set by the keyboard, and Escape discards what is not saved", async () => {
  const kim = await newUser("Kim", { locale: "ko-KR", timezoneId: "Asia/Seoul" })
  await listenToUser(kim)
  const { page } = kim
  await openNotifications(kim)
  await choose(kim, "#reminders-seat_free", "Space")
  await choose(kim, "#reminders-quiet", "Space")
  // The first part of the time: the hour, or the half of the day.
  await choose(kim, "#reminders-from", "ArrowUp")
  const from = await page.locator("#reminders-from").inputValue()
  assert.notEqual(from, "22:00")
  await tabTo(kim, "#reminders-zone")
  await page.keyboard.type("America/New")
  await choose(kim, "#reminders-save")
  const quiet = { from, to: "08:00" }
  await hears(kim, t("reminders.saved.quiet", { ...quiet, zone: "America/New York" }))
  await hasFocus(kim, "#reminders-save")
  const expected = { review_unanswered: true, seat_free: false, request_unanswered: true, quiet, time_zone: "America/New_York" }
  assert.deepEqual(await stored(kim), expected)

  await choose(kim, "#reminders-request_unanswered", "Space")
  await press(kim, "Escape")
  await closed(kim, "#identity-dialog")
  await hasFocus(kim, "#menu summary")
  assert.deepEqual(await stored(kim), expected)
  await openNotifications(kim)
  assert.equal(await page.locator("#reminders-request_unanswered").isChecked(), true)

  // A missing time is refused at its field.
  await choose(kim, "#reminders-to", "Backspace")
  await choose(kim, "#reminders-save")
  await hears(kim, t("reminders.time.missing"))
  await hasFocus(kim, "#reminders-to[aria-invalid=true]")
})

test("notifications are accepted, ended, refused and left alone by the keyboard", async () => {
  const users = await Promise.all([newUser("Kim", { locale: "ko-KR" }), newUser("Lee", { locale: "ko-KR" }), newUser("Park", { locale: "ko-KR" })])
  const [kim, lee, park] = users
  await withPushService(kim)
  for (const user of users) await listenToUser(user)
  await openNotifications(kim)
  await choose(kim, "[data-key=own]")
  await hears(kim, t("push.outcome.on"))
  await hasFocus(kim, "[data-key=own]")
  await press(kim, "Space")
  await hears(kim, t("push.stopped"))
  await hasFocus(kim, "[data-key=own]")
  for (const [user, answer, outcome] of /** @type {const} */ ([[lee, "denied", "push.outcome.blocked"], [park, "default", "push.outcome.dismissed"]])) {
    await withPushService(user, answer)
    await openNotifications(user)
    await choose(user, "[data-key=own]")
    await hears(user, t(outcome))
    await press(user, "Escape")
    await hasFocus(user, "#menu summary")
  }
})

test("after a request the offered notifications are switched on by the keyboard", async () => {
  const { kim, handles } = await two({ locale: "ko-KR" })
  await withPushService(kim)
  await listenToUser(kim)
  await choose(kim, "#ask-open")
  await kim.page.keyboard.insertText(handles.lee)
  await choose(kim, "#ask-go")
  await hears(kim, t("push.offer.request"))
  await choose(kim, "#toast button")
  await hears(kim, t("push.outcome.on"))
})

test("requests are sent, declined, withdrawn and accepted by the keyboard, and both users hear of it", async () => {
  const { kim, lee, handles } = await two({ locale: "ko-KR" })
  for (const user of [kim, lee]) await listenToUser(user)
  const send = async () => {
    await choose(kim, "#ask-open")
    await hasFocus(kim, "#ask-to")
    await kim.page.keyboard.insertText(`@${handles.lee}`)
    await press(kim, "Tab")
    await hears(kim, t("ask.found", { name: "Lee" }))
    await choose(kim, "#ask-go")
    await kim.page.locator("#requests-sent li").waitFor()
    await hasFocus(kim, "#ask-open")
    await readAgain(lee)
    await lee.page.locator("#requests-received li").waitFor()
  }
  await send()
  await hears(kim, t("ask.sent", { name: "Lee" }))
  await hears(lee, t("request.came", { request: t("request.received.writer", { name: "Kim" }) }))
  await choose(lee, "#requests-received [data-act=decline]")
  await hears(lee, t("request.declined", { name: "Kim" }))
  await reading(kim, hears(kim, t("request.answer.declined", { name: "Lee" })))
  await closed(lee, "#requests")
  await hasFocus(lee, "#partners-title")

  await send()
  await choose(kim, "#requests-sent [data-act=withdraw]")
  await hears(kim, t("request.withdrawn", { name: "Lee" }))
  await reading(lee, hears(lee, t("request.answer.withdrawn", { name: "Kim" })))
  await hasFocus(kim, "#partners-title")

  await send()
  await choose(lee, "#requests-received [data-act=accept]")
  await hears(lee, t("request.accepted", { name: "Kim" }))
  await reading(kim, hears(kim, t("request.answer.accepted", { name: "Lee" })))
  await partner(kim, "Lee").waitFor()
  await choose(kim, "#partners-list [data-act=remove]")
  await agree(kim)
  await hears(kim, t("partners.removed", { name: "Lee" }))
})

test("an offer is made, claimed, given up, declined and closed by the keyboard, and both users hear of it", async () => {
  const [kim, lee] = await Promise.all([newUser("Kim", { locale: "ko-KR" }), newUser("Lee", { locale: "ko-KR" })])
  for (const user of [kim, lee]) await listenToUser(user)
  const title = "Letters"
  await choose(kim, "#offer-open")
  await kim.page.keyboard.insertText(title)
  await choose(kim, "#offer-go")
  await hears(kim, t("offer.made", { title }))
  await hasFocus(kim, "#offer-open")
  const [{ url, id }] = await kim.page.evaluate(async () => (await source("offers_api")).ownOffers())
  await lee.page.goto(url)
  await hasFocus(lee, "#opened-list h3")
  const claim = async (/** @type {number} */ number) => {
    await choose(lee, "#opened-list [type=submit]")
    await hears(lee, t("opened.claimed", { name: "Kim", number }))
    await hasFocus(lee, "#opened-list h3")
    await reading(kim, kim.page.locator("#offers-list").getByText(t("offer.remaining", { count: 4, capacity: 5 })).waitFor())
    await hears(kim, t("offer.claim.came", { name: "Lee", title }))
  }
  await claim(1)
  await choose(lee, `[aria-label="${t("opened.withdraw")}: ${title}"]`)
  await agree(lee)
  await hears(lee, t("opened.withdrawn", { title }))
  await hasFocus(lee, "#opened-list h3")
  await reading(kim, hears(kim, t("offer.claim.left", { name: "Lee", title })))

  await claim(2)
  await choose(kim, `[aria-controls="people-${id}"]`)
  await choose(kim, ".offer-people [data-act=decline]")
  await hears(kim, t("offer.claim.decline.done", { name: "Lee" }))
  await hasFocus(kim, `[aria-controls="people-${id}"]`)
  await reading(lee, hears(lee, t("opened.lost", { name: "Kim" })))
  await choose(kim, `[aria-label="${t("offer.close")}: ${title}"]`)
  await agree(kim)
  await hears(kim, t("offer.closed.done", { title }))
  await hasFocus(kim, "#offers-title")
  await reading(lee, hears(lee, t("opened.closed", { name: "Kim" })))
  const left = await kim.page.evaluate(() => /** @type {string[]} */ (Reflect.get(globalThis, "spoken")))
  assert.equal(left.filter((text) => text === t("offer.claim.left", { name: "Lee", title })).length, 1, "a declined user gave up nothing")
})

test("a file becomes a document, and the document a file, by the keyboard", async () => {
  const user = await browser.newUser(galley, { locale: "ko-KR" })
  const { page } = user
  await page.goto(galley.url)
  await listen(user)
  const name = (/** @type {string} */ end) => ({ name: `letter.${end}`, mimeType: "text/plain", buffer: Buffer.from("One.\n둘.") })
  await tabTo(user, "#name")
  await page.keyboard.insertText("Kim")
  await choose(user, "#way-file")
  await hasFocus(user, "#file-choose")
  const pick = async (/** @type {string} */ end) => {
    /** @type {import("playwright-core").FileChooser | null} */
    let chooser = null
    // The browser ignores a press while it closes the window of an earlier choice.
    await until(async () => {
      const offered = page.waitForEvent("filechooser", { timeout: 500 }).catch(() => null)
      await press(user, "Enter")
      return (chooser = await offered) !== null
    }, "the browser offers the files")
    await /** @type {any} */ (chooser).setFiles(name(end))
  }
  await pick("hwp")
  await hears(user, t("import.failed", { name: "letter.hwp", why: t("error.import-format") }))
  await hasFocus(user, "#file-choose")
  // The answer waits until the page has said what it does.
  let release = () => undefined
  /** @type {Promise<void>} */
  const isHeard = new Promise((done) => (release = () => void done()))
  await page.route("**/api/documents/import?*", async (route) => {
    await isHeard
    await route.continue()
  })
  await pick("txt")
  await hears(user, t("import.sending", { name: "letter.txt" }))
  await hasFocus(user, "#file-cancel, #file-status")
  release()
  await user.seated()
  await user.waitForText("One.\n둘.")

  await choose(user, "#menu > summary")
  await choose(user, "#menu-panel [data-t='menu.export']")
  await hasFocus(user, "#export-format")
  await press(user, "End")
  await press(user, "ArrowUp")
  assert.equal(await page.locator("#export-format").inputValue(), "md")
  const download = page.waitForEvent("download")
  await choose(user, "#export-dialog [type=submit]")
  assert.equal((await download).suggestedFilename(), "letter.md")
  await hears(user, t("export.building"))
  await hears(user, t("out.saved", { name: "letter.md" }))
  await until(() => page.evaluate(() => document.activeElement?.closest("#menu") !== null), "the focus is at the menu")
})

test("a claim and its end change the free places on every page that shows them, without a reload", async () => {
  const [kim, lee, park] = await Promise.all([newUser("Kim"), newUser("Lee"), newUser("Park")])
  const offers = (/** @type {User} */ { page }, /** @type {string} */ name, /** @type {unknown[]} */ ...given) =>
    page.evaluate(async ([name, given]) => (await source("offers_api"))[name](...given), /** @type {[string, any[]]} */ ([name, given]))
  const { url, id } = await offers(kim, "createOffer", { title: "Letters", capacity: 3 })
  await readAgain(kim)
  await park.page.goto(url)
  const [own, opened] = [kim.page.locator("#offers-list .row-offer"), park.page.locator("#opened-list li")]
  for (const page of [kim.page, park.page]) await page.evaluate(() => Object.assign(globalThis, { isFirst: true }))
  const shows = async (/** @type {string} */ sentence) => {
    for (const shown of [own, opened]) await shown.getByText(sentence).waitFor()
  }
  await shows("3 of 3 places left")
  const claim = await offers(lee, "claimOffer", id, "")
  await shows("2 of 3 places left")
  await offers(lee, "endClaim", claim)
  await shows("3 of 3 places left")
  for (const page of [kim.page, park.page]) assert.equal(await page.evaluate(() => Reflect.get(globalThis, "isFirst")), true)
})
