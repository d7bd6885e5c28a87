// @ts-check
/**
 * The pages in both schemes and three widths: axe reports nothing, and no element overflows. The states of them: `axe.test.mjs`.
 */

import { test } from "node:test"

import { openMenu } from "./harness.mjs"
import { assertAccessible, assertFits, bothSeated, browser, galley, inEachLook, withGalley } from "./support.mjs"

const TEXT = "지원동기와 입사 후 포부\n\n저는 대학에서 산업공학을 전공하며 데이터로 문제를 푸는 일에 매력을 느꼈습니다. 귀사에 꼭 기여하고싶습니다.\n\nI believe that a good process is one that nobody notices."

withGalley()

/** @param {import("./harness.mjs").User} user @param {string} name */
async function look(user, name) {
  await inEachLook(user, async ({ width, scheme }) => {
    await assertFits(user, `${name}-${width}-${scheme}`)
    await assertAccessible(user, `${name}-${width}-${scheme}`)
  })
}

/** @param {string} [locale] */
const desk = (locale = "en-GB") => bothSeated(TEXT, { locale })

test("the start page, empty and with documents", async () => {
  const user = await browser.newUser(galley, { locale: "ko-KR" })
  await user.page.goto(galley.url)
  await user.page.locator("#name").waitFor()
  await look(user, "start-ko")
  await user.page.locator("#name").fill("김민수")
  await user.page.locator("#way-paste").click()
  await user.page.locator("#paste-text").fill(TEXT)
  await look(user, "start-paste-ko")
  await user.page.locator("#paste-go").click()
  await user.seated()
  await user.page.goto(galley.url)
  await user.page.locator(".row").waitFor()
  await openMenu(user, "#menu")
  await user.page.locator("#menu select").first().selectOption("en")
  await user.page.locator("html[lang=en]").waitFor()
  await look(user, "start-mine-en")
})

test("the gate, when it asks and when it refuses", async () => {
  const { writer } = await desk()
  const invite = await writer.invite()
  const [other, third] = [await browser.newUser(galley), await browser.newUser(galley)]
  await other.begin("Han", TEXT)
  await third.page.goto(await other.invite())
  await third.page.locator("#entry-name").waitFor()
  await look(third, "gate-name")
  await third.page.goto(invite)
  await third.page.getByRole("heading").waitFor()
  await look(third, "gate-refused")
})

test("the desk of both with reviews", async () => {
  const { writer, reviewer } = await desk("ko-KR")
  /** @param {string} quote @param {string} body @param {string} [suggestion] */
  const review = async (quote, body, suggestion) => {
    await reviewer.select(quote)
    await reviewer.page.keyboard.press("Control+Alt+m")
    if (suggestion !== undefined) {
      await reviewer.page.locator(".review-form .button-quiet").click()
      await reviewer.page.locator(".review-form .prose").fill(suggestion)
    }
    await reviewer.page.locator(".review-form textarea:not(.prose)").fill(body)
    await reviewer.page.keyboard.press("Control+Enter")
    await reviewer.card(body).waitFor()
    // The message may draw the card before the answer closes the form.
    await reviewer.page.locator(".card-draft").waitFor({ state: "detached" })
  }
  await review("산업공학을 전공하며", "어떤 과목이 특히 도움이 되었는지 한 마디 있으면 좋겠어요.")
  await review("기여하고싶습니다", "띄어쓰기", "기여하고 싶습니다")
  await review("nobody notices", "Less of a slogan?", "goes unnoticed")
  await review("데이터로 문제를", "지금은 괜찮아요.")
  await writer.card("지금은 괜찮아요").click()
  await writer.page.keyboard.press("Alt+r")
  await writer.page.locator("#tab-done .hidden").getByText(/1/).waitFor()
  await writer.card("띄어쓰기").click()
  await writer.card("띄어쓰기").locator(".reply-field").fill("고맙습니다.")
  await writer.page.keyboard.press("Control+Enter")
  await writer.card("고맙습니다.").waitFor()
  // Its button is faint until the request has ended.
  await writer.page.locator(".button[aria-busy=true]").first().waitFor({ state: "detached" })
  await reviewer.select("매력을")
  await look(writer, "writer")
  await look(reviewer, "reviewer")
  await writer.page.locator("#tab-done").click()
  await openMenu(writer, "#target")
  await writer.page.locator("#target-number").fill("100")
  await look(writer, "writer-done")
  await reviewer.select("매력을")
  await reviewer.page.keyboard.press("Control+Alt+m")
  await reviewer.page.locator(".review-form .button-quiet").click()
  await reviewer.page.locator(".review-form .prose").fill("큰 매력을")
  await look(reviewer, "draft")
})

test("the sheet of a narrow window opens on a tap and closes again", async () => {
  const { writer, reviewer } = await desk()
  await reviewer.review("nobody notices", { body: "Less of a slogan?" })
  await writer.card("slogan").waitFor()
  await writer.resize({ width: 360, height: 740 })
  await writer.page.locator(".passage").click()
  await writer.page.locator("[data-sheet=open]").waitFor()
  await writer.card("slogan").getByRole("button", { name: "Resolve" }).waitFor()
  await writer.shot("sheet-360")
  await assertAccessible(writer, "the sheet")
  await writer.page.getByRole("button", { name: "Close" }).click()
  await writer.page.locator("#margin").waitFor({ state: "hidden" })
  await writer.page.locator("#sheet-open").click()
  await writer.card("slogan").waitFor()
})

test("the admin page, and an ended seat", async () => {
  const { writer } = await desk()
  const admin = await browser.newUser(galley)
  await admin.page.goto(`${galley.url}/admin`)
  await admin.page.locator("#token").waitFor()
  await look(admin, "admin-token")
  await admin.page.locator("#token").fill("wrong")
  await admin.page.keyboard.press("Enter")
  await admin.page.getByText("Wrong token.").waitFor()
  await admin.page.locator("#token").fill(galley.adminToken)
  await admin.page.keyboard.press("Enter")
  await admin.page.locator("#rows tr").first().waitFor()
  await look(admin, "admin-seats")
  const link = new URL(await writer.invite()).pathname.split("/").pop() ?? ""
  await admin.page.locator("#search").fill(`writer ${link}`)
  await admin.page.locator("#rows tr").first().waitFor()
  await admin.page.locator("#rows tr").getByRole("button", { name: "Why does" }).click()
  await admin.page.getByRole("button", { name: "Show what is held of Seats" }).click()
  await admin.page.locator("#classes th.id").first().waitFor()
  await look(admin, "admin-why")
  await admin.page.locator("#rows tr").getByRole("button", { name: "End: " }).click()
  await admin.page.getByRole("dialog").getByRole("button", { name: "End the seat" }).click()
  await writer.notice.getByText("The administrator of this server ended your session.").waitFor()
  await look(writer, "writer-evicted")
  await writer.notice.getByRole("button", { name: "Open again" }).click()
  await writer.seated()
})
