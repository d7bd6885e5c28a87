// @ts-check
/** Review offers: one user offers places, others claim them by the link, and accepted claims make partners. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { openMenu, until } from "./harness.mjs"
import { ALL, assertAccessibleIn } from "./looks.mjs"
import { hasFocus, newUser, partner, readAgain, says } from "./people.mjs"
import { assertFits, browser, galley, inEachLook, tabTo, withGalley } from "./support.mjs"

/** @typedef {import("./harness.mjs").User} User */

withGalley()

/** Makes an offer by the form. @param {User} user @param {string} title @param {number} capacity @param {string} [message] */
async function offer({ page }, title, capacity, message = "") {
  await page.locator("#offer-open").click()
  await page.locator("#offer-title").fill(title)
  await page.locator("#offer-capacity").fill(String(capacity))
  await page.locator("#offer-message").fill(message)
  await page.locator("#offer-go").click()
  await own({ page }, title).waitFor()
}

/** @param {{ page: import("playwright-core").Page }} user @param {string} title */
const own = ({ page }, title) => page.locator("#offers-list > li, #offers-closed-list > li").filter({ hasText: title })
/** @param {User} user @param {string} title */
const opened = ({ page }, title) => page.locator("#opened-list > li", { hasText: title })

/** The link of an offer, copied from its row. @param {User} user @param {string} title */
const linkOf = (user, title) => user.copied(() => own(user, title).getByRole("button", { name: /^Copy the link/ }).click())

test("an offer is made, claimed by its link and accepted, and both are partners", async () => {
  const [kim, lee] = await Promise.all([newUser("Kim"), newUser("Lee")])
  await kim.page.getByText("You offer nothing at the moment.").waitFor()
  await Promise.all([says(kim, "“Two letters” is open."), offer(kim, "Two letters", 2, "By Friday,\nplease.")])
  await hasFocus(kim, "#offer-open")
  await own(kim, "Two letters").getByText("2 of 2 places left").waitFor()
  const url = await linkOf(kim, "Two letters")
  assert.match(url, /\/#offer=[\w-]+$/)

  await lee.page.goto(url)
  await until(async () => (await lee.page.evaluate(() => location.hash)) === "", "the address is clean")
  const card = opened(lee, "Two letters")
  await card.getByText("Kim offers to review texts.").waitFor()
  assert.equal(await card.locator(".request-message").textContent(), "By Friday,\nplease.")
  await hasFocus(lee, "#opened-list h3")
  await card.getByLabel("Message to Kim, if you like").fill("My letter to a bank.")
  await Promise.all([says(lee, "You have a place, no. 1."), card.getByRole("button", { name: "Take a place: Two letters" }).click()])
  await hasFocus(lee, "#opened-list h3")
  await card.getByText("1 of 2 places left").waitFor()
  await card.locator("form").waitFor({ state: "hidden" })

  // The owner reads of it without a reload.
  await own(kim, "Two letters").getByText("1 of 2 places left").waitFor()
  for (const row of [own(kim, "Two letters"), card]) assert.match((await row.locator(".meter").getAttribute("style")) ?? "", /--filled: 50%/)
  await own(kim, "Two letters").getByRole("button", { name: "People (1): Two letters" }).click()
  const claim = own(kim, "Two letters").locator(".offer-people li")
  await claim.getByText("My letter to a bank.").waitFor()
  await Promise.all([says(kim, "You and Lee are partners now."), claim.getByRole("button", { name: "Accept: Lee" }).click()])
  await claim.getByText("accepted, you are partners").waitFor()
  await partner(kim, "Lee").waitFor()
  await Promise.all([says(lee, "Kim accepted, and you are partners now."), readAgain(lee)])
  await partner(lee, "Kim").waitFor()
  assert.equal(await card.getByRole("button", { name: /^Give up/ }).isVisible(), false)

  // Without the link it is there again, until it is hidden.
  await lee.page.goto(galley.url)
  await opened(lee, "Two letters").getByText("Kim accepted").waitFor()
  await opened(lee, "Two letters").getByRole("button", { name: "Hide: Two letters" }).click()
  await hasFocus(lee, "#offers-title")
  await lee.page.reload()
  await lee.page.locator("#offers-none").waitFor()
  assert.equal(await lee.page.locator("#opened").isVisible(), false)
})

test("the last place goes to one user, and a place that is given up becomes free on the other page", async () => {
  const [kim, lee, park] = await Promise.all([newUser("Kim"), newUser("Lee"), newUser("Park")])
  await offer(kim, "One letter", 1)
  const url = await linkOf(kim, "One letter")
  for (const user of [lee, park]) {
    await user.page.goto(url)
    await opened(user, "One letter").getByText("1 of 1 places left").waitFor()
  }
  const take = (/** @type {User} */ user) => opened(user, "One letter").getByRole("button", { name: /^Take a place/ }).click()
  await take(lee)
  await opened(lee, "One letter").getByText("You have a place, no. 1.").waitFor()
  // Park's page may have read of it; otherwise the press is refused. Either way the page says so.
  const free = opened(park, "One letter").getByRole("button", { name: /^Take a place/ })
  await free.evaluateAll((shown) => shown.forEach((press) => press instanceof HTMLElement && press.click()))
  const soldOut = opened(park, "One letter").getByText("All places are taken. If one becomes free")
  await soldOut.waitFor()
  await own(kim, "One letter").getByText("The one place is taken").waitFor()

  await opened(lee, "One letter").getByRole("button", { name: /^Give up my place/ }).click()
  await lee.page.locator("#confirm").getByRole("button", { name: "Give up my place" }).click()
  await says(lee, "You gave up your place in “One letter”.")
  await opened(lee, "One letter").locator("form").waitFor()
  // It looks by itself.
  await opened(park, "One letter").locator("form").waitFor()
  await take(park)
  await opened(park, "One letter").getByText("You have a place, no. 2.").waitFor()

  // The owner declines: the page of its claimant says so, also after a reload.
  await readAgain(kim)
  const people = own(kim, "One letter").getByRole("button", { name: /^People/ })
  if ((await people.getAttribute("aria-expanded")) === "false") await people.click()
  await Promise.all([says(kim, "You declined Park."), own(kim, "One letter").getByRole("button", { name: "Decline: Park" }).click()])
  await own(kim, "One letter").getByText("Nobody has taken a place yet.").waitFor()
  await park.page.reload()
  await opened(park, "One letter").getByText("You have no place here any more: Kim declined").waitFor()
  await opened(park, "One letter").locator("form").waitFor()
})

test("a sold-out, closed, own or unknown offer says so, and a refused claim reads the offer again", async () => {
  const [kim, lee, park] = await Promise.all([newUser("Kim"), newUser("Lee"), newUser("Park")])
  await offer(kim, "Letters", 1)
  const url = await linkOf(kim, "Letters")
  const id = String(url.split("=").pop())
  await lee.page.goto(url)
  const card = opened(lee, "Letters")
  const press = card.getByRole("button", { name: /^(Take a place|Try again)/ })
  await press.waitFor()
  // Another user is quicker.
  const claims = /\/claims$/
  await lee.page.route(claims, async (route) => {
    await callOffers(park, "claimOffer", id, "")
    await route.continue()
  }, { times: 1 })
  await Promise.all([says(lee, "The last place was taken a moment ago."), press.click()])
  await card.getByText("All places are taken.").waitFor()
  await hasFocus(lee, "#opened-list h3")

  const { claim } = await callOffers(park, "offer", id)
  await callOffers(park, "endClaim", claim)
  await readAgain(lee)
  await press.waitFor()
  // The wait queue is too long: the message stays for another try.
  await card.locator("textarea").fill("My letter.")
  await lee.page.route(claims, (route) => route.fulfill({
    status: 503,
    headers: { "retry-after": "2", "content-type": "application/problem+json" },
    json: { type: "/problems/lock-wait-timeout", title: "", status: 503 },
  }), { times: 1 })
  /** @type {() => void} */
  let goOn = () => undefined
  const mayGoOn = new Promise((done) => (goOn = () => done(undefined)))
  // The next press does not wait for the read after the refusal.
  await lee.page.route(new RegExp(`review-offers/${id}$`), async (route) => {
    await mayGoOn
    await route.continue()
  })
  await press.click()
  await card.getByRole("alert").getByText("your turn did not come. You have no place yet. Try again in 2 seconds.").waitFor()
  assert.equal(await card.locator("textarea").inputValue(), "My letter.")
  assert.match(String(await press.getAttribute("aria-label")), /^Try again/)

  // The claim waits: the page says so, and closing overtakes it. Not before the page said so: a read of the closed
  // offer hides the sentence.
  await lee.page.route(claims, async (route) => {
    await mayGoOn
    await callOffers(kim, "closeOffer", id)
    await route.continue()
  }, { times: 1 })
  await press.click()
  await card.getByText("Many people ask at this moment.").waitFor()
  goOn()
  await says(lee, "The offer was closed a moment ago.")
  await card.getByText("Kim has closed this offer.").waitFor()
  assert.equal(await card.locator("form").isVisible(), false)

  await kim.page.goto(url)
  await opened(kim, "Letters").getByText("This is your own offer.").waitFor()
  await kim.page.getByRole("button", { name: "To my offers: Letters" }).click()
  await hasFocus(kim, "#offers-title")
  await kim.page.goto(`${galley.url}/#offer=${id.slice(0, -4)}`)
  await kim.page.locator("#opened-list").getByText("There is no such offer.").waitFor()
  await kim.page.getByRole("button", { name: "Hide", exact: true }).click()
  assert.equal(await kim.page.locator("#opened-list > li").count(), 1)
})

test("a visitor without a name opens an offer, also by the field for links", async () => {
  const kim = await newUser("Kim")
  await offer(kim, "Letters", 3)
  const url = await linkOf(kim, "Letters")
  const visitor = await browser.newUser(galley, { viewport: { width: 360, height: 740 } })
  await visitor.page.goto(url)
  await visitor.page.locator("#asked").getByText("Somebody offers to review texts.").waitFor()
  await assertFits(visitor, "offers-asked-360")
  // It outlives a reload, and so a sign-in elsewhere.
  await visitor.page.reload()
  await visitor.page.locator("#name").fill("Park")
  await visitor.page.locator("#name").press("Enter")
  await opened(visitor, "Letters").getByText("3 of 3 places left").waitFor()
  const other = await newUser("Lee")
  await other.page.locator("#way-link").click()
  await other.page.locator("#link-field").fill(url)
  await other.page.locator("#link-field").press("Enter")
  await opened(other, "Letters").getByText("3 of 3 places left").waitFor()
})

test("an offer is closed after a question, and stays among the closed ones with its people", async () => {
  const [kim, lee] = await Promise.all([newUser("Kim"), newUser("Lee")])
  await offer(kim, "Letters", 2)
  const id = String((await linkOf(kim, "Letters")).split("=").pop())
  await callOffers(lee, "claimOffer", id, "")
  await own(kim, "Letters").getByRole("button", { name: "Close the offer: Letters" }).click()
  await kim.page.locator("#confirm").getByText("People with a place keep it.").waitFor()
  await kim.page.locator("#confirm").getByRole("button", { name: "Close the offer" }).click()
  await says(kim, "“Letters” is closed.")
  await kim.page.getByText("Closed offers (1)").waitFor()
  await hasFocus(kim, "#offers-title")
  await openMenu(kim, "#offers-closed")
  assert.equal(await own(kim, "Letters").getByRole("button", { name: /^Copy/ }).isVisible(), false)
  await own(kim, "Letters").getByRole("button", { name: /^People/ }).click()
  await own(kim, "Letters").getByRole("button", { name: "Accept: Lee" }).click()
  await partner(kim, "Lee").waitFor()
})

test("the fields of an offer are refused where they are wrong", async () => {
  const kim = await newUser("Kim")
  await kim.page.locator("#offer-open").click()
  await hasFocus(kim, "#offer-title")
  await kim.page.locator("#offer-capacity").fill("0")
  await kim.page.locator("#offer-go").click()
  await kim.page.locator("#offer-title-error").getByText("Give your offer a title first.").waitFor()
  await kim.page.locator("#offer-capacity-error").getByText("Enter a whole number from 1 to 100.").waitFor()
  await hasFocus(kim, "#offer-title[aria-invalid=true]")
  await kim.page.keyboard.insertText("Letters")
  await kim.page.locator("#offer-title-error").waitFor({ state: "hidden" })
  for (const wrong of ["101", "1.5", ""]) {
    await kim.page.locator("#offer-capacity").fill(wrong)
    await kim.page.locator("#offer-capacity").press("Enter")
    await kim.page.locator("#offer-capacity-error").getByText("1 to 100").waitFor()
  }
  await kim.page.route(/review-offers$/, (route) =>
    route.request().method() === "POST"
      ? route.fulfill({ status: 409, json: { type: "/problems/quota-spent" } })
      : route.continue())
  await kim.page.locator("#offer-capacity").fill("100")
  await kim.page.locator("#offer-capacity").press("Enter")
  await kim.page.locator("#offer-error").getByText("You’ve reached the limit of open offers. Close one first.").waitFor()
})

test("a draw of the own list keeps the focus of an offer whose place was given up", async () => {
  const [kim, lee] = await Promise.all([newUser("Kim"), newUser("Lee")])
  const { url, id } = await callOffers(kim, "createOffer", { title: "Letters", capacity: 2 })
  await callOffers(lee, "claimOffer", id, "")
  await lee.page.goto(url)
  await opened(lee, "Letters").getByText("You have a place").waitFor()
  // The next state of the offer does not arrive, so another read draws its card.
  await lee.page.route(new RegExp(`review-offers/${id}$`), () => undefined)
  // The read that waits for that state is the last one until the next call: no poll draws the card in between.
  const list = lee.page.waitForRequest(/review-offers\?/)
  await readAgain(lee)
  await (await (await list).response())?.finished()
  await tabTo(lee, "[aria-label='Give up my place: Letters']")
  await lee.page.keyboard.press("Enter")
  await lee.page.keyboard.press("Tab")
  await Promise.all([says(lee, "You gave up your place"), lee.page.keyboard.press("Enter")])
  await hasFocus(lee, "[aria-label='Give up my place: Letters']")
  await callOffers(lee, "createOffer", { title: "Mine", capacity: 1 })
  await readAgain(lee)
  await own(lee, "Mine").waitFor()
  await hasFocus(lee, "#opened-list h3")
})

test("g13_the free places are read less and less often while nothing changes, and not by a hidden page", async () => {
  const kim = await newUser("Kim")
  await offer(kim, "Letters", 5)
  await kim.page.clock.install()
  let reads = 0
  /** @type {Set<import("playwright-core").Request>} */
  const unanswered = new Set()
  kim.page.on("request", (request) => {
    if (!/review-offers\?/.test(request.url())) return
    reads += 1
    unanswered.add(request)
  })
  kim.page.on("requestfinished", (request) => void unanswered.delete(request))
  const during = async (/** @type {number} */ seconds) => {
    const before = reads
    for (let second = 0; second < seconds; second += 1) {
      await kim.page.clock.runFor(1_000)
      // The next read is timed from the answer, and the clock of the page does not wait for the server.
      await until(async () => unanswered.size === 0, "it is answered")
      await kim.page.evaluate(() => new Promise((done) => queueMicrotask(() => done(undefined))))
    }
    return reads - before
  }
  await readAgain(kim)
  await until(async () => 1 <= reads, "it is read")
  await during(60)
  const later = await during(60)
  assert.ok(later <= 3, `${later} reads in the second minute`)
  await kim.page.evaluate(() => Object.defineProperty(document, "hidden", { value: true, configurable: true }))
  await during(61)
  assert.equal(await during(120), 0)
})

test("axe: the own offers with their people, the form and opened offers, in each look, without overflow", async () => {
  const [kim, choi, park] = await Promise.all([newUser("Kim", { locale: "ko-KR" }), newUser("Choi With-A-Very-Long-Name-That-Never-Breaks-Anywhere"), newUser("박제삼")])
  const first = await callOffers(kim, "createOffer", { title: "이번 주 자기소개서 다섯 편", capacity: 5, message: `금요일까지 봐 드릴게요.\n${"longword".repeat(20)}` })
  const closed = await callOffers(kim, "createOffer", { title: "지난주", capacity: 1 })
  await callOffers(kim, "closeOffer", closed.id)
  await callOffers(choi, "claimOffer", first.id, "부탁드려요.")
  const claim = await callOffers(park, "claimOffer", first.id, "")
  await callOffers(kim, "acceptClaim", claim)
  const others = await Promise.all([5, 1, 3].map((capacity) => callOffers(park, "createOffer", { title: `제안 ${capacity}`, capacity, message: "무엇이든 봅니다." })))
  await callOffers(kim, "claimOffer", others[0].id, "")
  await callOffers(choi, "claimOffer", others[1].id, "")
  for (const { url } of others) {
    await kim.page.goto(url)
    await kim.page.locator("#opened-list .offer-remaining").first().waitFor()
  }
  await kim.page.reload()
  await kim.page.locator("#offers-list .offer-people li").nth(1).waitFor()
  /** @param {string} name */
  const look = async (name) => {
    await assertAccessibleIn(kim, `offers: ${name}`, ALL)
    await inEachLook(kim, ({ width, scheme }) => assertFits(kim, `offers-${name}-${width}-${scheme}`))
  }
  await kim.page.goto(others[1].url)
  await kim.page.getByText("이런 제안").or(kim.page.locator("#opened-list .offer-state").first()).waitFor()
  await look("opened")
  await kim.page.locator("#offers-title").evaluate((title) => title.scrollIntoView())
  await openMenu(kim, "#offers-closed")
  await kim.page.locator("#offer-open").click()
  await kim.page.locator("#offer-capacity").fill("0")
  await kim.page.locator("#offer-go").click()
  await look("form")
})

/** A call of the user's page about offers. @param {User} user @param {string} name @param {...unknown} given @returns {Promise<any>} */
function callOffers(user, name, ...given) {
  return user.page.evaluate(async ([name, given]) => {
    const api = await source("offers_api")
    return api[name](...given)
  }, /** @type {[string, any[]]} */ ([name, given]))
}
