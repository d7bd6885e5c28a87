// @ts-check
/**
 * Notifications of this browser: the question in context, the states, the texts of the service worker.
 *
 * The browser of the tests reaches no push service, so `PushManager.subscribe` answers with a subscription
 * of real keys. Pushes come by the protocol of the browser's own tools.
 */

import assert from "node:assert/strict"
import { test } from "node:test"

import { drawn, openMenu, until } from "./harness.mjs"
import { ALL, assertAccessibleIn } from "./looks.mjs"
import { hasFocus, newUser, says, two, write } from "./people.mjs"
import { withPushService } from "./push_service.mjs"
import { assertFits, galley, inEachLook, withGalley } from "./support.mjs"

/** @typedef {import("./harness.mjs").User} User */

withGalley()

const dialog = (/** @type {User} */ { page }) => page.locator("#identity-dialog")

/** Opens the settings by the menu. @param {User} user */
async function open(user) {
  await openMenu(user, "#menu")
  await user.page.locator("#menu-panel").getByRole("button", { name: /^(Notifications|알림)$/ }).click()
  await dialog(user).locator("#push-state").waitFor()
}

/** @param {User} user @returns {Promise<import("../../static/js/lib/notify_api.ts").Browser[]>} */
const browsers = ({ page }) => page.evaluate(async () => (await source("notify_api")).browsers())
/** @param {User} user */
const questions = ({ page }) => page.evaluate(() => Number(Reflect.get(globalThis, "questions") ?? 0))

test("notifications are switched on and off by the menu, and no page asks when it loads", async () => {
  const kim = await newUser("Kim")
  await withPushService(kim)
  await open(kim)
  await hasFocus(kim, "#identity-title")
  assert.equal(await questions(kim), 0)
  assert.equal(await kim.page.evaluate(() => navigator.serviceWorker.getRegistrations().then(({ length }) => length)), 0)
  await dialog(kim).getByRole("button", { name: "Notify me on this browser" }).click()
  await dialog(kim).getByRole("status").getByText("This browser shows notifications now.").waitFor()
  assert.equal(await questions(kim), 1)
  assert.equal(await kim.page.evaluate(() => Reflect.get(globalThis, "byPress")), true, "the press is still the user's")
  const [{ service, lang } = { service: "", lang: "" }, ...rest] = await browsers(kim)
  assert.deepEqual([service, lang, rest], ["fcm.googleapis.com", "en", []])
  await hasFocus(kim, "[data-key=own]")
  await kim.page.keyboard.press("Escape")
  await hasFocus(kim, "#menu summary")

  // It stays on over a reload, and follows the language.
  await kim.page.reload()
  await open(kim)
  await dialog(kim).getByText("This browser shows notifications, also while this page is closed.").waitFor()
  await kim.page.evaluate(async () => (await source("i18n")).i18n.setLanguage("ko"))
  await dialog(kim).getByRole("heading", { name: "알림", exact: true }).waitFor()
  await until(async () => (await browsers(kim))[0]?.lang === "ko", "the language is stored")
  assert.equal((await browsers(kim)).length, 1)
  await dialog(kim).getByRole("button", { name: "이 브라우저에서 그만 받기" }).click()
  await dialog(kim).getByRole("status").getByText("이제 이 브라우저에는 알림이 오지 않습니다.").waitFor()
  assert.deepEqual(await browsers(kim), [])
  await dialog(kim).getByRole("button", { name: "이 브라우저에서 알림 받기" }).waitFor()
})

test("another browser of the user is listed and removed, and a sign-out ends the pushes of this one", async () => {
  const kim = await newUser("Kim")
  await withPushService(kim)
  await open(kim)
  await dialog(kim).getByRole("button", { name: "Notify me on this browser" }).click()
  await dialog(kim).getByRole("status").getByText("shows notifications now").waitFor()
  // A second browser: this one forgets that it is the first.
  await kim.page.evaluate(() => {
    sessionStorage.removeItem("test.subscription")
    for (const key of Object.keys(localStorage)) if (key.startsWith("galley.push.usr")) localStorage.removeItem(key)
  })
  await kim.page.keyboard.press("Escape")
  await open(kim)
  await dialog(kim).getByRole("button", { name: "Notify me on this browser" }).click()
  await dialog(kim).getByRole("heading", { name: "Your other browsers" }).waitFor()
  // The list shows the forgotten browser as another one before this browser is stored, and this sentence would replace the next.
  await dialog(kim).getByRole("status").getByText("shows notifications now").waitFor()
  assert.equal((await browsers(kim)).length, 2)
  await dialog(kim).getByRole("button", { name: /^Remove: Chrome, since/ }).click()
  await dialog(kim).getByRole("status").getByText("gets no notifications any more").waitFor()
  await hasFocus(kim, "[data-key=own]")
  assert.equal((await browsers(kim)).length, 1)

  const headers = { authorization: `Bearer ${await tokenOf(kim)}` }
  await kim.page.keyboard.press("Escape")
  await openMenu(kim, "#menu")
  await kim.page.locator("#menu-panel").getByRole("button", { name: /^(Leave this device|Sign out)$/ }).click()
  const isRemoved = (/** @type {import("playwright-core").Response} */ response) =>
    response.request().method() === "DELETE" && response.url().includes("/api/push-subscriptions/") && response.status() === 204
  const leave = kim.page.locator("#confirm .actions button").last()
  await Promise.all([kim.page.waitForEvent("load"), kim.page.waitForResponse(isRemoved), leave.click()])
  await kim.page.locator("#name").waitFor()
  const ended = await kim.page.context().request.get(`${galley.url}/api/push-subscriptions`, { headers })
  assert.equal(ended.status(), 401)
  assert.equal(await kim.page.evaluate(() => sessionStorage.getItem("test.subscription")), null)
})

test("another user who signs in on the browser gets no notifications of the one before", async () => {
  const [kim, lee] = await Promise.all([newUser("Kim"), newUser("Lee")])
  await withPushService(kim)
  await open(kim)
  await dialog(kim).getByRole("button", { name: "Notify me on this browser" }).click()
  await dialog(kim).getByRole("status").getByText("shows notifications now").waitFor()
  assert.notEqual(await kim.page.evaluate(() => sessionStorage.getItem("test.subscription")), null)
  // As a host application signs another user in.
  const context = kim.page.context()
  await context.clearCookies()
  await context.addCookies(await lee.page.context().cookies())
  await kim.page.reload()
  await until(async () => (await kim.page.evaluate(() => sessionStorage.getItem("test.subscription"))) === null, "it ends")
  await open(kim)
  await dialog(kim).getByRole("button", { name: "Notify me on this browser" }).waitFor()
  assert.deepEqual(await browsers(kim), [])
})

test("a blocked, closed or failed question says what helps", async () => {
  const [kim, lee, park] = await Promise.all([newUser("Kim"), newUser("Lee"), newUser("Park")])
  await withPushService(kim, "denied")
  await open(kim)
  await dialog(kim).getByRole("button", { name: "Notify me on this browser" }).click()
  await dialog(kim).getByRole("alert").getByText("The browser blocks notifications of this page.").waitFor()
  await dialog(kim).getByText("This browser blocks notifications of this page. Click the icon left of the address").waitFor()
  await hasFocus(kim, "#identity-title")

  await withPushService(lee, "default")
  await open(lee)
  await dialog(lee).getByRole("button", { name: "Notify me on this browser" }).click()
  await dialog(lee).getByRole("alert").getByText("The browser’s question was closed, so nothing has changed.").waitFor()

  await withPushService(park)
  await open(park)
  await park.page.evaluate(() => {
    PushManager.prototype.subscribe = async () => {
      throw new DOMException("Registration failed - push service error", "AbortError")
    }
  })
  await dialog(park).getByRole("button", { name: "Notify me on this browser" }).click()
  await dialog(park).getByRole("alert").getByText("The browser did not reach its own push service.").waitFor()
  assert.deepEqual(await browsers(park), [])
})

test("a browser without push says so, and a server without it has no entry in the menu", async () => {
  const kim = await newUser("Kim")
  await kim.page.addInitScript(() => Reflect.deleteProperty(globalThis, "PushManager"))
  await kim.page.reload()
  await open(kim)
  await dialog(kim).getByText("This browser cannot show notifications of a page.").waitFor()
  const off = kim.page.route("**/api/push-key", (route) => route.fulfill({ status: 404, json: { type: "/problems/push-off" } }))
  await off
  const answered = kim.page.waitForResponse("**/api/push-key")
  await kim.page.reload()
  await (await answered).finished()
  await openMenu(kim, "#menu")
  await kim.page.locator("#menu-panel select").first().waitFor()
  assert.equal(await kim.page.locator("#menu-panel [data-t='menu.notifications']").isVisible(), false)
})

test("a waiter of the queue is offered notifications", async () => {
  const kim = await newUser("Kim")
  await withPushService(kim)
  const { id } = await kim.page.evaluate(async () => (await source("api")).createDocument("Essay", "The text."))
  await kim.page.goto(`${galley.url}/d/${id}`)
  await kim.seated()
  const second = await kim.page.context().newPage()
  await second.goto(`${galley.url}/d/${id}`)
  await withPushService({ page: second })
  await second.getByRole("button", { name: "Wait for your turn" }).click()
  await second.locator("#toast").getByText("If you close this page, this browser can notify you").waitFor()
  await second.locator("#toast").getByRole("button", { name: /^Notify me/ }).waitFor()
})

test("g13_a refused offer is not repeated without end", async () => {
  const { kim, handles } = await two()
  await withPushService(kim)
  await kim.page.evaluate(() => localStorage.setItem("galley.push.offered", "3"))
  await write(kim, handles.lee)
  await Promise.all([says(kim, "Your request was sent to Lee."), kim.page.locator("#ask-go").click()])
  await kim.page.locator("#requests-sent li").waitFor()
  await drawn(kim)
  assert.equal(await kim.page.locator("#toast").getByRole("button").count(), 0)
})

test("the service worker shows each push in its language, and a pressed one leads to the requests", async () => {
  const { kim, lee } = await two()
  const { page } = kim
  await page.context().grantPermissions(["notifications"], { origin: galley.url })
  const registered = await page.evaluate(async () => {
    const registration = await navigator.serviceWorker.register("/service-worker.js", { scope: "/" })
    await navigator.serviceWorker.ready
    return { scope: registration.scope, script: registration.active?.scriptURL }
  })
  assert.deepEqual(registered, { scope: `${galley.url}/`, script: `${galley.url}/service-worker.js` })
  const tab = await page.context().newCDPSession(page)
  /** @type {Promise<string>} */
  const id = new Promise((done) =>
    tab.on("ServiceWorker.workerRegistrationUpdated", ({ registrations }) => registrations[0] && done(registrations[0].registrationId)))
  await tab.send("ServiceWorker.enable")
  const registrationId = await id
  const worker = page.context().serviceWorkers()[0] ?? (await page.context().waitForEvent("serviceworker"))
  // This browser has no notifications, so the worker's own call is read.
  await worker.evaluate(() => {
    const { registration } = /** @type {any} */ (globalThis)
    registration.showNotification = async (/** @type {string} */ title, /** @type {any} */ options) => void Object.assign(globalThis, { shown: { title, ...options } })
  })
  /** @param {unknown} payload @returns {Promise<any>} */
  const push = async (payload) => {
    const data = typeof payload === "string" ? payload : JSON.stringify(payload)
    await tab.send("ServiceWorker.deliverPushMessage", { origin: galley.url, registrationId, data })
    let shown = null
    await until(async () => {
      shown = await worker.evaluate(() => {
        const shown = Reflect.get(globalThis, "shown") ?? null
        Reflect.deleteProperty(globalThis, "shown")
        return shown
      })
      return shown !== null
    }, "the notification is shown")
    const { title, body, lang, tag = "", data: { url } } = /** @type {any} */ (shown)
    return { title, body, lang, tag, url }
  }
  const url = `${galley.url}/#requests`
  assert.deepEqual(await push({ kind: "request.received", url: "/#requests", params: { from: "김민수", as: "writer", title: "지원동기" }, lang: "ko", tag: "t1" }), {
    title: "새 요청", body: "김민수님이 ‘지원동기’의 첨삭을 부탁했습니다.", lang: "ko", tag: "t1", url,
  })
  assert.deepEqual(await push({ kind: "review.unanswered", url: "/d/doc_1", params: { title: "Essay", by: "Lee", count: "3" }, lang: "en" }), {
    title: "Comments wait", body: "“Essay” has comments of Lee without an answer: 3.", lang: "en", tag: "", url: `${galley.url}/d/doc_1`,
  })
  for (const unknown of [{ kind: "of.a.newer.server", url: "https://other.example/", lang: "ko" }, "{"]) {
    const { title, body, url } = await push(unknown)
    assert.deepEqual([title, body, url], ["Galley", "", `${galley.url}/`])
  }

  // The message of a pressed notification to the open tab, and the address of one without a tab.
  const { id: me } = await page.evaluate(async () => (await source("api")).me())
  await lee.page.evaluate(async (to) => (await source("partners_api")).sendRequest({ to, as: "writer" }), me)
  await worker.evaluate(async () => {
    const [tab] = await /** @type {any} */ (globalThis).clients.matchAll({ type: "window", includeUncontrolled: true })
    tab.postMessage({ opened: "#requests" })
  })
  await hasFocus(kim, "#requests-title")
  await page.goto("about:blank")
  await page.goto(url)
  await hasFocus(kim, "#requests-title")
  assert.equal(await page.evaluate(() => location.hash), "")
})

test("axe: the dialog in its states, in each look, without overflow", async () => {
  const kim = await newUser("김민수", { locale: "ko-KR" })
  await withPushService(kim)
  /** @param {string} name */
  const look = async (name) => {
    await assertAccessibleIn(kim, `push: ${name}`, ALL)
    await inEachLook(kim, ({ width, scheme }) => assertFits(kim, `push-${name}-${width}-${scheme}`, "#identity-dialog"))
  }
  await open(kim)
  await dialog(kim).locator("[data-key=own]").waitFor()
  await look("ready")
  await dialog(kim).locator("[data-key=own]").click()
  await dialog(kim).getByRole("status").getByText(/.+/).waitFor()
  await kim.page.evaluate(() => {
    sessionStorage.removeItem("test.subscription")
    for (const key of Object.keys(localStorage)) if (key.startsWith("galley.push.usr")) localStorage.removeItem(key)
  })
  await kim.page.keyboard.press("Escape")
  await open(kim)
  await dialog(kim).locator("[data-key=own]").click()
  await dialog(kim).getByRole("status").getByText(/.+/).waitFor()
  await look("on")
})

/** @param {User} user */
async function tokenOf({ page }) {
  const cookies = await page.context().cookies(galley.url)
  return cookies.find(({ name }) => name === "galley_token")?.value ?? ""
}
