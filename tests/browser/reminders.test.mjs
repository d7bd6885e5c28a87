// @ts-check
/** The settings of reminders, and the jobs on the admin page that send them. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { openMenu, until } from "./harness.mjs"
import { ALL, assertAccessibleIn } from "./looks.mjs"
import { hasFocus, newUser } from "./people.mjs"
import { assertFits, browser, galley, inEachLook, withGalley } from "./support.mjs"

/** @typedef {import("./harness.mjs").User} User */

withGalley({ settings: { GALLEY_JOBS__TICK: "1s" } })

const dialog = (/** @type {User} */ { page }) => page.locator("#identity-dialog")

/** Opens the settings by the menu. @param {User} user */
async function open(user) {
  await openMenu(user, "#menu")
  await user.page.locator("#menu-panel [data-t='menu.notifications']").click()
  await dialog(user).locator("#reminders-save").waitFor()
}

/** The settings that the server has. @param {User} user */
const stored = ({ page }) => page.evaluate(async () => (await source("notify_api")).reminders())

test("reminders are chosen, with quiet hours in the browser's time zone, and stay", async () => {
  const kim = await newUser("Kim", { timezoneId: "Asia/Seoul" })
  await open(kim)
  for (const name of ["review_unanswered", "seat_free", "request_unanswered"]) assert.equal(await kim.page.locator(`#reminders-${name}`).isChecked(), true, name)
  assert.equal(await kim.page.locator("#reminders-zone").inputValue(), "Asia/Seoul")
  await dialog(kim).locator("#reminders-from").waitFor({ state: "hidden" })
  await dialog(kim).getByLabel("A text that I waited for is free").uncheck()
  await dialog(kim).getByLabel("Quiet hours, without reminders").check()
  await dialog(kim).getByLabel("From").fill("23:30")
  await dialog(kim).getByLabel("Until").fill("07:00")
  await dialog(kim).getByRole("button", { name: "Save the reminders" }).click()
  await dialog(kim).getByRole("status").getByText("Saved. No reminder comes from 23:30 to 07:00 (Asia/Seoul).").waitFor()
  await hasFocus(kim, "#reminders-save")
  const expected = { review_unanswered: true, seat_free: false, request_unanswered: true, quiet: { from: "23:30", to: "07:00" }, time_zone: "Asia/Seoul" }
  assert.deepEqual(await stored(kim), expected)

  await kim.page.reload()
  await open(kim)
  assert.equal(await kim.page.locator("#reminders-from").inputValue(), "23:30")
  assert.equal(await kim.page.locator("#reminders-seat_free").isChecked(), false)
  await kim.page.locator("#reminders-zone").selectOption("America/New_York")
  await kim.page.locator("#reminders-quiet").uncheck()
  await dialog(kim).getByRole("button", { name: "Save the reminders" }).click()
  await dialog(kim).getByRole("status").getByText("Saved. Reminders come at any hour.").waitFor()
  assert.deepEqual(await stored(kim), { ...expected, quiet: null, time_zone: "America/New_York" })
  for (const name of ["review_unanswered", "request_unanswered"]) await kim.page.locator(`#reminders-${name}`).uncheck()
  await dialog(kim).getByRole("button", { name: "Save the reminders" }).click()
  await dialog(kim).getByRole("status").getByText("Saved. You get no reminders.").waitFor()
})

test("a missing time, equal times and an unknown time zone are refused at their field, and nothing is stored", async () => {
  const kim = await newUser("Kim")
  await open(kim)
  const before = await stored(kim)
  const [save, error] = [dialog(kim).getByRole("button", { name: "Save the reminders" }), dialog(kim).locator("#reminders-error")]
  await kim.page.locator("#reminders-quiet").check()
  await kim.page.locator("#reminders-from").fill("")
  await save.click()
  await error.getByText("Enter both times of the quiet hours").waitFor()
  await hasFocus(kim, "#reminders-from[aria-invalid=true]")
  await kim.page.locator("#reminders-from").fill("08:00")
  await error.waitFor({ state: "hidden" })
  await save.click()
  await error.getByText("Quiet hours begin and end at different times.").waitFor()
  await hasFocus(kim, "#reminders-to[aria-invalid=true]")
  await kim.page.locator("#reminders-to").fill("09:00")
  // A browser may know a zone that is newer than the server.
  await kim.page.locator("#reminders-zone").evaluate((/** @type {HTMLSelectElement} */ select) => {
    select.append(new Option("Mars/Olympus", "Mars/Olympus"))
    select.value = "Mars/Olympus"
  })
  await save.click()
  await error.getByText("The server does not know this time zone.").waitFor()
  await hasFocus(kim, "#reminders-zone[aria-invalid=true]")
  assert.deepEqual(await stored(kim), before)
  await kim.page.evaluate(async () => (await source("i18n")).i18n.setLanguage("ko"))
  await error.getByText("서버가 모르는 시간대입니다.").waitFor()
  await dialog(kim).getByRole("heading", { name: "다시 알림" }).waitFor()
  // Closed by keyboard, the focus is where the dialog was opened.
  await kim.page.keyboard.press("Escape")
  await hasFocus(kim, "#menu summary")
})

/** An administrator who has shown the token. @param {string} locale */
async function administrator(locale) {
  const admin = await browser.newUser(galley, { locale, viewport: { width: 1280, height: 720 } })
  await admin.page.goto(`${galley.url}/admin`)
  await admin.page.locator("#token").fill(galley.adminToken)
  await admin.page.keyboard.press("Enter")
  await admin.page.locator("#jobs").waitFor()
  return admin
}

test("the admin page shows the job of reminders, its last runs and its next one", async () => {
  const admin = await administrator("en-US")
  const all = admin.page.locator("#jobs")
  const jobs = all.locator("section", { has: admin.page.locator("#job-reminders") })
  await jobs.getByRole("heading", { name: "Reminders" }).waitFor()
  await jobs.getByText(/^(Next run at|Runs on node_\w+ since) \d\d:\d\d:\d\d\. A run takes about \d+(\.\d+)? s\.$/).waitFor()
  await until(async () => {
    const runs = await jobs.locator("tbody tr").count()
    return 0 < runs && runs <= 20
  }, "it has run")
  const run = jobs.locator("tbody tr").last()
  await run.getByText("done").waitFor()
  assert.match(String(await run.locator("td").nth(0).textContent()), /^\d+(\.\d+)? s$/)
  await jobs.getByText("nothing to do").first().waitFor()
  await admin.page.route("**/api/admin/jobs", async (route) => {
    const answer = await (await route.fetch()).json()
    const job = answer.jobs.find((/** @type {{ job: string }} */ { job }) => job === "reminders")
    const run = { ...job.last_runs.at(-1), ended_at: "2026-11-25T09:00:01Z" }
    const runs = [["done", 0], ["done", 4], ["failed", 0], ["done", 8]].map(([outcome, sent]) => ({ ...run, outcome, counts: { sent } }))
    await route.fulfill({ json: { jobs: [{ ...job, last_runs: runs }] } })
  })
  await jobs.locator(".run-bad").waitFor()
  const heights = await jobs.locator(".runs rect").evaluateAll((marks) => marks.map((mark) => mark.getAttribute("height")))
  assert.deepEqual(heights, ["20", "12", "2"], "the latest run stands at the right")
  await admin.page.unroute("**/api/admin/jobs")
  await admin.page.evaluate(async () => (await source("i18n")).i18n.setLanguage("ko"))
  await jobs.getByRole("heading", { name: "다시 알림" }).waitFor()
  await jobs.getByText("할 일 없음").first().waitFor()
  await openMenu(admin, "#menu")
  await admin.page.getByRole("button", { name: "토큰 지우기" }).click()
  await all.waitFor({ state: "hidden" })
})

test("axe: the settings of reminders and the jobs, in each look, without overflow", async () => {
  const kim = await newUser("김민수", { locale: "ko-KR", timezoneId: "Asia/Seoul" })
  await open(kim)
  await kim.page.locator("#reminders-quiet").check()
  await kim.page.locator("#reminders-to").fill("22:00")
  await kim.page.locator("#reminders-save").click()
  await kim.page.locator("#reminders-error").getByText(/.+/).waitFor()
  await assertAccessibleIn(kim, "reminders: refused", ALL)
  await inEachLook(kim, ({ width, scheme }) => assertFits(kim, `reminders-${width}-${scheme}`, "#identity-dialog"))
  const admin = await administrator("ko-KR")
  await admin.page.locator("#jobs tbody tr").first().waitFor()
  await admin.page.locator("#jobs").scrollIntoViewIfNeeded()
  await assertAccessibleIn(admin, "jobs", ALL)
  await inEachLook(admin, ({ width, scheme }) => assertFits(admin, `jobs-${width}-${scheme}`))
})
