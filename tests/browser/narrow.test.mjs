// @ts-check
/**
 * Partners, requests, offers, notifications and files in a narrow window: at 360 px and at a zoom of 200 %, in both
 * languages and both color schemes. No page scrolls sideways, and no word is cut off.
 */

import { test } from "node:test"

import { until } from "./harness.mjs"
import { call, newUser, readAgain, two } from "./people.mjs"
import { NARROW, assertWhole } from "./narrow.mjs"
import { withPushService } from "./push_service.mjs"
import { assertFits, galley, withGalley } from "./support.mjs"

/** @typedef {import("./harness.mjs").User} User */

withGalley()

/** Long names, and one that never breaks. */
const NAMES = { ko: "김수한무거북이와두루미삼천갑자동방삭", en: "Bartholomew-Alexander Featherstonehaugh" }

/** Each width in each scheme, then the other language. @param {User} user @param {string} name @param {string} [root] */
async function narrow(user, name, root = "body") {
  const { page } = user
  const before = page.viewportSize()
  const first = await page.evaluate(() => document.documentElement.lang)
  for (const language of [first === "ko" ? "en" : "ko", first]) {
    await page.evaluate(async (chosen) => (await source("i18n")).i18n.setLanguage(chosen), language)
    for (const [at, size] of NARROW.entries()) {
      await page.emulateMedia({ colorScheme: (language === "ko") === (at === 0) ? "dark" : "light", reducedMotion: "reduce" })
      await user.resize(size)
      const look = `narrow-${name}-${language}-${size.width}`
      await assertFits(user, look)
      if (root !== "body") await assertFits(user, look, root)
      await assertWhole(user, look, root)
    }
  }
  if (before) await user.resize(before)
}

/** A call of the user's page about offers. @param {User} user @param {string} name @param {...unknown} given @returns {Promise<any>} */
const offers = ({ page }, name, ...given) =>
  page.evaluate(async ([name, given]) => (await source("offers_api"))[name](...given), /** @type {[string, any[]]} */ ([name, given]))

/** Presses an element where it is, so that the width of the window does not matter. @param {User} user @param {string} selector */
const press = ({ page }, selector) => page.locator(selector).first().press("Enter")

test("the lists of partners, requests and offers are whole, and their forms with every error", async () => {
  const { kim, handles } = await two({ locale: "ko-KR" })
  const { page } = kim
  const [long, other] = await Promise.all([newUser(NAMES.ko), newUser(NAMES.en)])
  const { link } = await call(kim, "address")
  await call(kim, "createDocument", "지원동기와 입사 후 포부, 그리고 성장 과정과 직무 역량까지 모두 담은 자기소개서 최종본", "본문입니다.")
  const { id } = await call(long, "sendRequest", { to: link.token, as: "writer" })
  await call(kim, "acceptRequest", id)
  await call(other, "sendRequest", { to: link.token, as: "reviewer", message: "금요일까지 봐 드릴게요.\nI read cover letters on Fridays." })
  await call(long, "setHandle", `long_${handles.kim}_0123456789`.slice(0, 30))
  await call(kim, "removePartner", (await call(long, "me")).id)
  await call(kim, "sendRequest", { to: `@long_${handles.kim}_0123456789`.slice(0, 31), as: "writer" })
  const own = await offers(kim, "createOffer", { title: "이번 주 자기소개서 다섯 편을 꼼꼼히 봐 드립니다", capacity: 5, message: "금요일까지." })
  await offers(kim, "closeOffer", (await offers(kim, "createOffer", { title: "지난주", capacity: 1 })).id)
  await offers(long, "claimOffer", own.id, "부탁드려요.")
  await offers(other, "claimOffer", own.id, "My letter to a bank.")
  const theirs = await offers(other, "createOffer", { title: "Three letters, read with care and a red pen", capacity: 3, message: "Anything goes." })
  await page.goto(theirs.url)
  await page.locator("#opened-list form").waitFor()
  await readAgain(kim)
  for (const list of ["#requests-received", "#requests-sent", "#offers-list"]) await page.locator(`${list} li`).first().waitFor()
  // The page opens them by itself if the first list that it read has claims.
  await until(async () => {
    const folded = page.locator("#offers-list [aria-expanded=false]").first()
    if (await folded.isVisible()) await folded.press("Enter")
    return page.locator(".offer-people li").nth(1).isVisible()
  }, "the claims are shown")
  await press(kim, "#offers-closed summary")
  await narrow(kim, "lists")

  await press(kim, "#ask-open")
  await page.locator("#ask-to").fill(`@${handles.kim}`)
  await press(kim, "#ask-go")
  await page.locator("#ask-to-error").getByText(/.+/).waitFor()
  await press(kim, "#offer-open")
  await page.locator("#offer-capacity").fill("0")
  await press(kim, "#offer-go")
  await page.locator("#offer-title-error").getByText(/.+/).waitFor()
  await narrow(kim, "forms")
  await press(kim, "#address-open")
  await page.locator("#address-handle").fill("!")
  await press(kim, "#address-save")
  await page.locator("#address-error").getByText(/.+/).waitFor()
  await narrow(kim, "address")
  await press(kim, "#offers-list .actions button:last-child")
  await narrow(kim, "question", "#confirm")
})

test("the settings of notifications and reminders, the name and the other device are whole", async () => {
  const kim = await newUser(NAMES.ko, { locale: "ko-KR", timezoneId: "America/Argentina/ComodRivadavia" })
  const { page } = kim
  await withPushService(kim)
  const open = async (/** @type {string} */ entry) => {
    await press(kim, "#menu summary")
    await press(kim, `#menu-panel [data-t='${entry}']`)
    await page.locator("#identity-dialog[open]").waitFor()
  }
  await open("menu.notifications")
  await press(kim, "[data-key=own]")
  await page.locator("#identity-dialog [role=status]").getByText(/.+/).waitFor()
  // The settings come with an answer of their own. Until then the key would go to the button that has the focus.
  await page.locator("#reminders-quiet").waitFor()
  await page.locator("#reminders-quiet").press("Space")
  await narrow(kim, "notifications", "#identity-dialog")
  await page.locator("#reminders-to").fill("22:00")
  await press(kim, "#reminders-save")
  await page.locator("#reminders-error").getByText(/.+/).waitFor()
  await narrow(kim, "reminders-refused", "#identity-dialog")
  await page.keyboard.press("Escape")
  await open("identity.move")
  await page.locator("#identity-code").waitFor()
  await narrow(kim, "move", "#identity-dialog")
  await page.keyboard.press("Escape")
  await open("identity.name")
  await narrow(kim, "name", "#identity-dialog")
})

test("the import, the export, the print and the choice of a partner are whole", async () => {
  const { kim, lee } = await two({ locale: "ko-KR" })
  const { page } = kim
  const { link } = await call(kim, "address")
  const { id } = await call(lee, "sendRequest", { to: link.token, as: "reviewer" })
  await call(kim, "acceptRequest", id)
  await press(kim, "#way-file")
  await page.locator("#file-field").setInputFiles({ name: `${"아주 긴 이름의 자기소개서 ".repeat(5)}.hwp`, mimeType: "", buffer: Buffer.from("x") })
  await page.locator("#file-error").getByText(/.+/).waitFor()
  await narrow(kim, "import-refused")
  await page.route("**/api/documents/import?*", () => undefined)
  await page.locator("#file-field").setInputFiles({ name: `${"아주 긴 이름의 자기소개서 ".repeat(5)}.txt`, mimeType: "text/plain", buffer: Buffer.from("x") })
  await page.locator("#file-progress").waitFor()
  await narrow(kim, "import-progress")

  const { id: document } = await call(kim, "createDocument", "지원동기와 입사 후 포부", "The text.")
  await page.goto(`${galley.url}/d/${document}`)
  await kim.seated()
  const open = async (/** @type {string} */ entry) => {
    await press(kim, "#menu summary")
    await press(kim, `#menu-panel [data-t='${entry}']`)
  }
  await open("menu.export")
  await page.locator("#export-format").selectOption("docx")
  await narrow(kim, "export", "#export-dialog")
  await page.route("**/api/share-links/*/export?*", (route) => route.fulfill({ status: 202, headers: { "retry-after": "1" }, json: { status: "building", progress: 40 } }))
  await press(kim, "#export-dialog [type=submit]")
  await page.locator("#export-dialog progress[value='40']").waitFor()
  await narrow(kim, "export-progress", "#export-dialog")
  // The last route counts. Without the first one the page would ask the server in between, and get a file.
  await page.route("**/api/share-links/*/export?*", (route) => route.fulfill({ status: 409, json: { type: "/problems/export-too-large" } }))
  await page.locator("#export-dialog .form-error").getByText(/.+/).waitFor()
  await narrow(kim, "export-refused", "#export-dialog")
  await page.keyboard.press("Escape")
  await open("identity.reviewer")
  await page.locator("#identity-dialog select").waitFor()
  await narrow(kim, "reviewer", "#identity-dialog")
})
