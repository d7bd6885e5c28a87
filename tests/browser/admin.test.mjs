// @ts-check
/**
 * The admin page by keyboard: the explanation of a held seat, and held locks by class; in English and
 * Korean.
 */

import assert from "node:assert/strict"
import { hostname } from "node:os"
import { test } from "node:test"

import { drawn, openMenu, until } from "./harness.mjs"
import { browser, galley, withGalley } from "./support.mjs"

withGalley()

/** An administrator who has shown the token. @param {string} locale @param {{ rows?: boolean }} [options] whether a seat is held */
async function administrator(locale, { rows = true } = {}) {
  const admin = await browser.newUser(galley, { locale })
  await admin.page.goto(`${galley.url}/admin`)
  await admin.page.locator("#token").fill(galley.adminToken)
  await admin.page.keyboard.press("Enter")
  await admin.page.locator(rows ? "#rows tr" : "#seats").first().waitFor()
  return admin.page
}

/** Presses Tab until the button of that name has the focus. @param {import("playwright-core").Page} page @param {RegExp} name */
async function tabTo(page, name) {
  for (let steps = 0; steps < 60; steps += 1) {
    const label = await page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? "")
    if (name.test(label)) return
    await page.keyboard.press("Tab")
  }
  assert.fail(`${name} cannot be reached`)
}

/**
 * The next list of seats is read now, and comes when it is let go: as it is, or with that status.
 *
 * @param {import("playwright-core").Page} page
 */
async function holdNextResponse(page) {
  /** @type {(status: number) => void} */
  let answer = () => undefined
  const released = new Promise((/** @type {typeof answer} */ done) => (answer = done))
  const seats = "**/api/admin/sessions"
  const isRead = new Promise((done) =>
    page.route(
      seats,
      async (route) => {
        const response = await route.fetch()
        done(undefined)
        const status = await released
        await route.fulfill(status === 200 ? { response } : { status, json: { status, title: "No" } })
      },
      { times: 1 },
    ),
  )
  await isRead
  return async (status = 200) => {
    const answered = page.waitForResponse(seats)
    answer(status)
    await (await answered).finished()
    // The page has handled the response by then.
    await drawn({ page })
  }
}

/** The accessible name of the focused element. @param {import("playwright-core").Page} page */
const focused = (page) => page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.id)

test("a forgotten token stays forgotten, also after a late response", async () => {
  const page = await administrator("en-US", { rows: false })
  for (const status of [200, 401, 503]) {
    if (!(await page.locator("#seats").isVisible())) {
      await page.locator("#token").fill(galley.adminToken)
      await page.keyboard.press("Enter")
    }
    await page.locator("#seats").waitFor()
    const release = await holdNextResponse(page)
    await openMenu({ page }, "#menu")
    await page.getByRole("button", { name: "Forget the token" }).click()
    await release(status)
    assert.equal(await page.locator("#seats").isVisible(), false, `after ${status}`)
    assert.equal(await page.locator("#token-error").textContent(), "", `after ${status}`)
    assert.equal(await page.evaluate(() => sessionStorage.length), 0, `after ${status}`)
  }
})

test("a response that a later one overtook is not shown", async () => {
  const writer = await browser.newUser(galley)
  await writer.begin("Kim", "A text to be left.")
  const page = await administrator("en-US")
  const release = await holdNextResponse(page)
  await writer.page.close()
  await page.getByText("Nothing is held.").waitFor()
  await release()
  assert.equal(await page.locator("#rows tr").count(), 0)
})

test("the list shows a page, and more on request", async () => {
  for (const name of ["Kim", "Lee"]) await (await browser.newUser(galley)).begin(name, "A text among many.")
  const page = await administrator("en-US")
  // Of one seat each; a thousand would fill one otherwise.
  await page.route(/\/api\/admin\/sessions(?:$|\?)/, (route) => {
    const url = new URL(route.request().url())
    url.searchParams.set("limit", "1")
    return route.continue({ url: url.href })
  })
  const more = page.getByRole("button", { name: "The 1 oldest are shown. Show more" })
  await more.waitFor()
  assert.equal(await page.locator("#rows tr").count(), 1)
  await page.getByText(/Seats: 2 /).waitFor()
  await more.press("Enter")
  await page.locator("#rows tr").nth(1).waitFor()
  await more.waitFor({ state: "hidden" })
  for (const name of ["Kim", "Lee"]) {
    await page.getByRole("button", { name: `End: ${name}` }).click()
    await page.getByRole("dialog").getByRole("button", { name: /End/ }).click()
    await page.locator("#rows tr", { hasText: name }).waitFor({ state: "detached" })
  }
})

test("evicting a session by keyboard leaves the focus in its place, and the last one in the search", async () => {
  for (const name of ["Kim", "Lee"]) await (await browser.newUser(galley)).begin(name, "A text to be taken away.")
  const page = await administrator("en-US")
  await page.locator("#rows tr").nth(1).waitFor()
  for (const [name, next] of [["Lee", "End: Kim"], ["Kim", "search"]]) {
    await tabTo(page, new RegExp(`^End: ${name}$`))
    await page.keyboard.press("Enter")
    await page.getByRole("dialog").waitFor()
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await page.locator("#rows tr", { hasText: name ?? "" }).waitFor({ state: "detached" })
    assert.equal(await focused(page), next)
  }
})

test("a seat that is released during the confirmation leaves the focus in the search", async () => {
  const writer = await browser.newUser(galley)
  await writer.begin("Kim", "A text to be left.")
  const page = await administrator("en-US")
  await tabTo(page, /^End: Kim$/)
  await page.keyboard.press("Enter")
  await page.getByRole("dialog").waitFor()
  await writer.page.close()
  await page.locator("#rows tr").waitFor({ state: "detached" })
  await page.keyboard.press("Escape")
  await until(async () => (await focused(page)) === "search", "the focus is somewhere")
})

test("the explanation of a seat opens and closes by keyboard, keeps the focus, and is updated", async () => {
  const writer = await browser.newUser(galley)
  await writer.begin("Kim", "A text to be reviewed.")
  const page = await administrator("en-US")
  await tabTo(page, /^Why does Kim hold this seat\?$/)
  await page.keyboard.press("Enter")
  const panel = page.locator("#rows tr.panel")
  await panel.getByText(/^The browser of Kim was heard .+ The seat is kept until .+ unless it is renewed again\.$/).waitFor()
  await page.locator("#announcer").getByText(/The browser of Kim/).waitFor()
  const explain = page.getByRole("button", { name: "Why does Kim hold this seat?" })
  assert.equal(await explain.getAttribute("aria-expanded"), "true")
  assert.equal(await explain.getAttribute("aria-controls"), await panel.getAttribute("id"))
  /** @param {string} name */
  const fact = (name) => panel.locator("dl > div", { has: page.getByText(name, { exact: true }) }).locator("dd").last()
  assert.equal(await fact("Last edit").textContent(), "never")
  assert.equal(await fact("Waiting").textContent(), "nobody")
  assert.equal(await fact("Known from").textContent(), "this server, which has the connection")
  await writer.page.locator(".cm-content").click()
  await writer.page.keyboard.type("More. ")
  await until(async () => /ago$/.test((await fact("Last edit").textContent()) ?? ""), "the edit is told")
  const focused = () => page.evaluate(() => document.activeElement?.getAttribute("aria-label"))
  assert.equal(await focused(), "Why does Kim hold this seat?", "reading anew leaves the focus alone")
  await page.keyboard.press("Space")
  await panel.waitFor({ state: "detached" })
  assert.equal(await explain.getAttribute("aria-expanded"), "false")
  assert.equal(await focused(), "Why does Kim hold this seat?")
  // Held locks by class.
  await tabTo(page, /^Show what is held of Seats$/)
  assert.match((await page.locator("#classes tr").first().textContent()) ?? "", /^Seats1/)
  await page.keyboard.press("Enter")
  await page.locator("#classes tr.panel").getByText("Kim").waitFor()
  await page.keyboard.press("Enter")
  await page.locator("#classes tr.panel").waitFor({ state: "hidden" })
  await writer.page.close()
  await page.getByText("Nothing is held.").waitFor()
})

test("the Korean page has no English word, and a switch of language keeps open panels", async () => {
  const writer = await browser.newUser(galley, { locale: "ko-KR" })
  await writer.begin("김민수", "검토할 글입니다.")
  const page = await administrator("ko-KR")
  await page.getByRole("button", { name: "김민수님이 이 자리를 쓰고 있는 이유" }).click()
  await page.locator("p").filter({ hasText: /^김민수님의 브라우저에서 .+초 전에 신호가 왔고/ }).waitFor()
  await page.getByRole("button", { name: "자리 잠금 보기" }).click()
  await page.locator("#classes tr.panel").getByText("김민수").waitFor()
  const text = await page.evaluate(() => {
    const main = /** @type {HTMLElement} */ (document.querySelector("main"))
    const labels = [...main.querySelectorAll("[aria-label]")].map((element) => element.getAttribute("aria-label"))
    return [main.innerText, main.textContent, document.title, ...labels].join("\n")
  })
  const ids = /(?:shr|node|ses|usr)_\w+(?::\w+)?/g
  const acts = /(?:DELETE|PATCH|POST|PUT) \/api\S*/g
  const foreign = text.replace(ids, "").replace(acts, "").replaceAll(hostname(), "").replace("data/admin-token", "").match(/[A-Za-z]{2,}/g) ?? []
  assert.deepEqual(foreign.filter((word) => !["Galley", "Redis"].includes(word)), [])
  await openMenu({ page }, "#menu")
  await page.locator("#menu select").first().selectOption("en")
  await page.locator("p").filter({ hasText: /^The browser of 김민수 was heard/ }).waitFor()
  await page.locator("#classes").getByText("Lease left").first().waitFor()
  await writer.page.close()
})

test("the last hour is drawn as three plots that say their figures", async () => {
  const writer = await browser.newUser(galley)
  await writer.begin("Kim", "A text to be counted.")
  const page = await administrator("ko-KR")
  const plots = page.locator("#plots figure")
  await plots.nth(2).waitFor()
  assert.match((await page.getByRole("img", { name: "사용 중인 자리" }).getAttribute("aria-label")) ?? "", /\d/u)
  assert.equal(await page.locator("#plots-missing").textContent(), "")
  /** A server that has stopped, and minutes in which none answered. */
  await page.route("**/api/admin/series", async (route) => {
    const series = await (await route.fetch()).json()
    for (const name of ["seats", "edits", "renewal_p99_ms"]) series[name] = series.minutes.map((/** @type {string} */ _, /** @type {number} */ at) => (at % 20 < 15 ? at + 0.25 : null))
    await route.fulfill({ json: { ...series, missing: ["node_1"] } })
  })
  await page.reload()
  await page.locator("#plots-missing", { hasText: "서버 1대의 수치가 빠져 있습니다: node_1." }).waitFor()
  assert.equal(((await page.locator("#plot-seats .plot-line").getAttribute("d")) ?? "").split("M").length, 4, "three parts")
})
