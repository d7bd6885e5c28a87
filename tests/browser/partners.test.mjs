// @ts-check
/** Partners: two users find each other, ask, answer, and share a document without an invite. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { drawn, openMenu, until } from "./harness.mjs"
import { ALL, assertAccessibleIn } from "./looks.mjs"
import { askIsIdle, becomePartners, call, choose, hasFocus, holdAnswer, newUser, pairs, partner, readAgain, reading, says, two, write } from "./people.mjs"
import { assertFits, browser, galley, inEachLook, withGalley } from "./support.mjs"

/** @typedef {import("./harness.mjs").User} User */

withGalley()

test("two users who ask each other at once are partners by one press, and one names the other reviewer", async () => {
  const { kim, lee, handles } = await two()
  await write(kim, `@${handles.lee}`)
  await write(lee, handles.kim)
  await Promise.all([kim.page.locator("#ask-go").click(), lee.page.locator("#ask-go").click()])
  const waits = (/** @type {User} */ { page }) => page.locator("#ask-received [data-act=accept]").isVisible()
  await until(async () => (await waits(kim)) || (await waits(lee)), "one of them is second")
  const [first, second] = (await waits(kim)) ? [lee, kim] : [kim, lee]
  const [firstName, secondName] = first === kim ? ["Kim", "Lee"] : ["Lee", "Kim"]
  await second.page.getByText(`${firstName} has asked you already.`).waitFor()
  await hasFocus(second, "#ask-received [data-act=accept]")
  await Promise.all([
    says(second, `You and ${firstName} are partners now.`),
    // The first one reads of it without a reload of the page.
    reading(first, says(first, `${secondName} accepted your request.`)),
    second.page.keyboard.press("Enter"),
  ])
  await partner(second, firstName).waitFor()
  await second.page.locator("#ask").waitFor({ state: "hidden" })
  await hasFocus(second, "#ask-open")
  await partner(first, secondName).waitFor()
  await first.page.locator("#requests-waiting").waitFor({ state: "hidden" })

  await kim.page.locator("#way-paste").click()
  await kim.page.locator("#paste-text").fill("A text of Kim.")
  await kim.page.locator("#paste-go").click()
  await kim.seated()
  await openMenu(kim, "#menu")
  await kim.page.getByRole("button", { name: "The reviewer" }).click()
  const dialog = kim.page.locator("#identity-dialog")
  await dialog.locator("select").selectOption({ index: 0 })
  await assertAccessibleIn(kim, "partners: the choice of a reviewer", ALL)
  await kim.page.evaluate(async () => (await source("i18n")).i18n.setLanguage("en"))
  await dialog.getByRole("button", { name: "Make the reviewer" }).click()
  await dialog.getByText("Lee is the reviewer now.").waitFor()
  await dialog.locator("select").waitFor({ state: "detached" })
  await reading(lee, lee.page.locator("#waiting").getByRole("link", { name: "A text of Kim." }).waitFor())
  await lee.page.locator("#waiting").getByRole("link", { name: "A text of Kim." }).click()
  await lee.seated()
  await lee.waitForText("A text of Kim.")
  await lee.review("text", { body: "Which one?" })
  await kim.page.keyboard.press("Escape")
  await kim.card("Which one?").waitFor()
})

test("a request about a document with a message is accepted, and its receiver opens the document", async () => {
  const { kim, lee, handles } = await two()
  await call(kim, "createDocument", "Essay", "The text of the essay.")
  await write(kim, handles.lee)
  await kim.page.locator("#ask-message").fill("Until Friday,\nplease.")
  await kim.page.locator("#ask-found").getByText("This is Lee.").waitFor()
  await kim.page.getByLabel("Lee should review my text").waitFor()
  await kim.page.locator("#ask-document option", { hasText: "Essay" }).waitFor({ state: "attached" })
  await kim.page.locator("#ask-document").selectOption({ label: "Essay" })
  await Promise.all([says(kim, "Your request was sent to Lee."), kim.page.locator("#ask-go").click()])
  await kim.page.locator("#requests-sent").getByText("You asked Lee to review “Essay”.").waitFor()
  await kim.page.getByText("Not answered yet (1)").waitFor()
  await hasFocus(kim, "#ask-open")

  // It comes without a reload, is counted, and is spoken.
  await reading(lee, lee.page.getByRole("heading", { name: "Requests to you (1)" }).waitFor())
  const row = lee.page.locator("#requests-received li")
  await row.getByText("Kim asks you to review “Essay”.").waitFor()
  assert.equal(await row.locator(".request-message").textContent(), "Until Friday,\nplease.")
  await until(async () => /New request\. Kim asks/.test((await lee.page.locator("#announcer").textContent()) ?? ""), "it is spoken")
  await Promise.all([
    says(lee, "You and Kim are partners now, and you are the reviewer of “Essay”."),
    // A sentence stays while its button has the focus.
    lee.page.locator("#toast").getByRole("button", { name: /^Open it/ }).focus(),
    row.getByRole("button", { name: "Accept: Kim asks you" }).click(),
  ])
  await lee.page.locator("#requests").waitFor({ state: "hidden" })
  await lee.page.locator("#waiting").getByRole("link", { name: "Essay" }).waitFor()
  await lee.page.locator("#toast").getByRole("button", { name: /^Open it/ }).click()
  await lee.seated()
  await lee.waitForText("The text of the essay.")

  // A further request is refused with what helps; then one of them ends the partnership.
  await write(kim, handles.lee)
  await kim.page.locator("#ask-go").click()
  await kim.page.locator("#ask-to-error").getByText("You are partners already.").waitFor()
  await reading(kim, partner(kim, "Lee").waitFor())
  await partner(kim, "Lee").getByRole("button", { name: "Remove: Lee" }).click()
  await kim.page.locator("#confirm").getByRole("button", { name: "Remove" }).click()
  await says(kim, "Lee is no longer your partner.")
  await kim.page.locator("#partners-none").waitFor()
  await hasFocus(kim, "#partners-title")
})

test("a request is declined, and another one withdrawn", async () => {
  const { kim, lee, handles } = await two()
  await write(kim, handles.lee)
  await kim.page.locator("#ask-as-reviewer").check()
  await kim.page.locator("#ask-document").waitFor({ state: "hidden" })
  await kim.page.locator("#ask-go").click()
  await kim.page.getByText("You offered Lee to review a text.").waitFor()
  const row = lee.page.locator("#requests-received li")
  await reading(lee, row.getByText("Kim offers to review a text of yours.").waitFor())
  await Promise.all([
    says(lee, "You declined the request of Kim."),
    reading(kim, says(kim, "Lee declined your request.")),
    row.getByRole("button", { name: /^Decline/ }).click(),
  ])
  await lee.page.locator("#requests").waitFor({ state: "hidden" })
  await hasFocus(lee, "#partners-title")
  await kim.page.locator("#requests-waiting").waitFor({ state: "hidden" })

  await write(lee, handles.kim)
  await lee.page.locator("#ask-go").click()
  await lee.page.locator("#requests-sent li").waitFor()
  await reading(kim, kim.page.locator("#requests-received li").waitFor())
  // A second one to the same user says what stands in the way.
  await write(lee, handles.kim)
  await lee.page.locator("#ask-go").click()
  await lee.page.locator("#ask-error").getByText("A request to this person is still open.").waitFor()
  await lee.page.locator("#requests-sent").getByRole("button", { name: /^Withdraw/ }).click()
  await says(lee, "Your request to Kim is withdrawn.")
  await lee.page.locator("#requests-waiting").waitFor({ state: "hidden" })
  await reading(kim, kim.page.locator("#requests").waitFor({ state: "hidden" }))
})

test("all requests are declined at once, and guests send no more", async () => {
  const { kim, lee, handles } = await two()
  const park = await newUser("Park")
  const all = lee.page.locator("#requests-decline-all")
  await call(kim, "sendRequest", { to: `@${handles.lee}`, as: "writer" })
  await readAgain(lee)
  await lee.page.locator("#requests-received li").waitFor()
  assert.equal(await all.isVisible(), false, "one request has its own button")
  await call(park, "sendRequest", { to: `@${handles.lee}`, as: "writer" })
  await readAgain(lee)
  await all.click()
  await Promise.all([says(lee, "You declined all requests."), lee.page.locator("#confirm").getByRole("button", { name: "Decline all" }).click()])
  await lee.page.locator("#requests").waitFor({ state: "hidden" })
  await hasFocus(lee, "#partners-title")

  await lee.page.locator("#address-open").click()
  await assertAccessibleIn(lee, "partners: the address with the switch of guests", ALL)
  await lee.page.evaluate(async () => (await source("i18n")).i18n.setLanguage("en"))
  await Promise.all([says(lee, "Guests can send you no new requests."), lee.page.getByLabel("Guests may send me requests").uncheck()])
  await write(kim, handles.lee)
  await kim.page.locator("#ask-go").click()
  await kim.page.getByText("This person takes no requests from guests.").waitFor()
  await lee.page.reload()
  await lee.page.locator("#address-open").click()
  // It is disabled, and off, until its state is read.
  await lee.page.locator("#address-guests:enabled").waitFor()
  assert.equal(await lee.page.locator("#address-guests").isChecked(), false, "the switch is stored")
  await Promise.all([says(lee, "Guests may send you requests."), lee.page.getByLabel("Guests may send me requests").check()])
})

test("the answer to a withdrawn request says so, and the list is read again", async () => {
  const { kim, lee, handles } = await two()
  const { id } = await call(kim, "sendRequest", { to: `@${handles.lee}`, as: "writer" })
  await reading(lee, lee.page.locator("#requests-received li").waitFor())
  // The withdrawal arrives at the server while Lee reads.
  const accept = lee.page.locator("#requests-received [data-act=accept]")
  await lee.page.route(/accept$/, async (route) => {
    await call(kim, "withdrawRequest", id)
    await route.continue()
  })
  await accept.click()
  await says(lee, "This request was withdrawn meanwhile.")
  await lee.page.locator("#requests").waitFor({ state: "hidden" })
})

test("a handle that is taken or impossible is refused at its field, and one may be changed and removed", async () => {
  const { kim, lee, handles } = await two()
  const [error, field] = [lee.page.locator("#address-error"), lee.page.locator("#address-handle")]
  await choose(lee, handles.kim)
  await error.getByText("Another person has this handle. Choose a different one.").waitFor()
  await hasFocus(lee, "#address-handle[aria-invalid=true]")
  for (const wrong of ["k", "two words", "ㅁㅅㅅ"]) {
    await field.fill(wrong)
    await error.waitFor({ state: "hidden" })
    await field.press("Enter")
    await error.getByText("This cannot be a handle.").waitFor()
  }
  await field.fill(`@Lee_${pairs}`)
  await field.press("Enter")
  await says(lee, `Others find you as @lee_${pairs} now.`)
  await lee.page.locator("#address-now").getByText(`@lee_${pairs}`).waitFor()
  await lee.page.locator("#address-remove").click()
  await lee.page.locator("#confirm").getByRole("button", { name: "Remove my handle" }).click()
  await says(lee, "You have no handle any more.")
  await hasFocus(lee, "#address-handle")

  await write(kim, `lee_${pairs}`)
  await kim.page.locator("#ask-go").click()
  await kim.page.locator("#ask-to-error").getByText("Nobody has this handle or link.").waitFor()
  await hasFocus(kim, "#ask-to[aria-invalid=true]")
  for (const [typed, sentence] of /** @type {const} */ ([
    [handles.kim, "This is your own address."],
    ["https://other.example/#ask=x", "neither a handle nor a personal link"],
    [" ", "Enter a handle or a personal link first."],
  ])) {
    // The look-up may say it before the answer to the request.
    await askIsIdle(kim)
    await kim.page.locator("#ask-to").fill(typed)
    await kim.page.locator("#ask-to").press("Enter")
    await kim.page.locator("#ask-to-error").getByText(sentence).waitFor()
  }
})

test("a personal link shows whose it is, also to a user without a name, until it is renewed", async () => {
  const { kim, lee } = await two()
  await kim.page.locator("#address-open").click()
  const url = await kim.copied(() => kim.page.locator("#address-copy").click())
  assert.match(url, /#ask=[\w-]{43}$/)
  await says(kim, "The link is copied.")

  await lee.page.goto(url)
  await lee.page.locator("#ask-found").getByText("This is Kim.").waitFor()
  assert.equal(new URL(lee.page.url()).hash, "", "the address is clean")
  const visitor = await browser.newUser(galley, { viewport: { width: 360, height: 740 } })
  await visitor.page.goto(url)
  await visitor.page.locator("#asked").getByText("Somebody gave you a personal link.").waitFor()
  await assertFits(visitor, "partners-asked-360")
  await visitor.page.locator("#asked-go").click()
  await visitor.page.locator("#start-error").getByText("Enter your name first.").waitFor()
  assert.equal(await visitor.page.locator("#ways").isVisible(), false, "there is one way on")
  // It outlives a reload, and so a sign-in elsewhere.
  await visitor.page.reload()
  await visitor.page.locator("#asked").waitFor()
  await visitor.page.locator("#name").fill("Park")
  await visitor.page.locator("#name").press("Enter")
  await visitor.page.locator("#ask-found").getByText("This is Kim.").waitFor()
  await hasFocus(visitor, "#ask-to")
  await visitor.page.locator("#ask-go").click()
  await reading(kim, kim.page.locator("#requests-received").getByText("Park asks you to review a text.").waitFor())

  await kim.page.locator("#address-renew").click()
  await kim.page.locator("#confirm").getByRole("button", { name: "New link" }).click()
  await says(kim, "This is your new personal link")
  assert.notEqual(await kim.page.locator("#address-link").inputValue(), url)
  await lee.page.goto(url)
  await lee.page.locator("#ask-to-error").getByText("Nobody has this handle or link.").waitFor()
  await kim.page.goto(await kim.page.locator("#address-link").inputValue())
  await kim.page.locator("#ask-to-error").getByText("This is your own address.").waitFor()
})

test("a partner who is too late, or no partner any more, is not named reviewer, and the dialog says why", async () => {
  const { kim, lee } = await two()
  const park = await newUser("Park")
  const { link } = await call(kim, "address")
  for (const user of [lee, park]) {
    const { id } = await call(user, "sendRequest", { to: link.token, as: "reviewer" })
    await call(kim, "acceptRequest", id)
  }
  const { id: document } = await call(kim, "createDocument", "Essay", "The text.")
  const { id: share } = await call(kim, "shareLink", document)
  await kim.page.goto(`${galley.url}/d/${document}`)
  await kim.seated()
  await openMenu(kim, "#menu")
  await kim.page.getByRole("button", { name: "The reviewer" }).click()
  const dialog = kim.page.locator("#identity-dialog")
  const [choice, go] = [dialog.locator("select"), dialog.getByRole("button", { name: "Make the reviewer" })]
  const lees = choice.locator("option", { hasText: "Lee" })
  await lees.waitFor({ state: "attached" })
  await choice.selectOption(String(await lees.getAttribute("value")))
  const { id: me } = await call(kim, "me")
  await call(lee, "removePartner", me)
  await go.click()
  await dialog.getByText("This person is not your partner any more.").waitFor()
  await lees.waitFor({ state: "detached" })

  await call(kim, "letIn", share, (await call(park, "me")).id)
  await go.click()
  // The same user again: the reviewer stays, and the dialog shows them.
  await dialog.getByText("Park is the reviewer now.").waitFor()
  await dialog.getByText(/^Park, since \d\d:\d\d$/).waitFor()
  assert.equal(await choice.count(), 0)
  await hasFocus(kim, "#identity-title")
})

test("a press that leaves the field reaches its button, however soon the name arrives", async () => {
  const { kim, handles } = await two()
  await write(kim, handles.lee)
  const go = await kim.page.locator("#ask-go").boundingBox()
  assert.ok(go)
  const found = kim.page.waitForResponse(/people\/find$/)
  // At its upper edge: a line more above it would move it away.
  await kim.page.mouse.move(go.x + go.width / 2, go.y + 2)
  await kim.page.mouse.down()
  await (await found).finished()
  await drawn(kim)
  await Promise.all([says(kim, "Your request was sent to Lee."), kim.page.mouse.up()])
})

test("a form keeps its words while a request that came first is declined, also if an older list arrives late", async () => {
  const { kim, lee, handles } = await two()
  await call(lee, "createDocument", "Essay", "The text.")
  await write(lee, handles.kim)
  await lee.page.locator("#ask-message").fill("Until Friday.")
  await lee.page.locator("#ask-document option", { hasText: "Essay" }).waitFor({ state: "attached" })
  await lee.page.locator("#ask-document").selectOption({ label: "Essay" })
  const release = await holdAnswer(lee, /review-requests\?/, () => readAgain(lee))
  await call(kim, "sendRequest", { to: `@${handles.lee}`, as: "writer" })
  await lee.page.locator("#ask-go").click()
  await hasFocus(lee, "#ask-received [data-act=accept]")
  await release()
  await readAgain(lee)
  await lee.page.locator("#requests-received li").waitFor()
  await lee.page.locator("#ask-received [data-act=decline]").click()
  await lee.page.locator("#ask-received").waitFor({ state: "hidden" })
  await hasFocus(lee, "#ask-go")
  assert.equal(await lee.page.locator("#ask-to").inputValue(), handles.kim)

  // The answer leaves the focus in the other form.
  const answer = await holdAnswer(lee, /review-requests$/, () => lee.page.locator("#ask-go").click())
  await lee.page.locator("#address-open").click()
  await answer()
  await lee.page.locator("#requests-sent").getByText("You asked Kim to review “Essay”.").waitFor()
  await lee.page.locator("#requests-sent").getByText("Until Friday.").waitFor()
  await hasFocus(lee, "#address-handle")
})

test("a poll reads what a failed read left out, and discards nothing of a slow one", async () => {
  const { kim, lee, handles } = await two()
  const park = await newUser("Park")
  await becomePartners(kim, lee, handles.lee)
  await kim.page.clock.install()
  const paths = /\/api\/(partners|me\/address)/
  await kim.page.route(paths, (route) => route.abort())
  await kim.page.reload()
  await kim.page.locator("#partners-error").getByText("Your partners and requests could not be loaded.").waitFor()
  await kim.page.locator("#address-open").click()
  const error = kim.page.locator("#address-error")
  await error.getByText("cannot be reached").waitFor()
  // Without a link there is nothing to copy.
  await kim.page.evaluate(() => navigator.clipboard.writeText("before"))
  const failed = kim.page.waitForEvent("requestfailed")
  await kim.page.locator("#address-copy").click()
  await failed
  await kim.page.locator("#address-copy:not([aria-busy])").waitFor()
  assert.equal(await kim.page.evaluate(() => navigator.clipboard.readText()), "before")
  assert.equal(await kim.page.locator("#partners-none").isVisible(), false)

  await kim.page.unroute(paths)
  await kim.page.clock.fastForward(10_000)
  await partner(kim, "Lee").waitFor()
  await kim.page.locator("#partners-error").waitFor({ state: "hidden" })
  await error.waitFor({ state: "hidden" })
  assert.match(await kim.copied(() => kim.page.locator("#address-copy").click()), /#ask=/)
  assert.equal(await kim.page.locator("#address-handle").inputValue(), handles.kim)

  await becomePartners(park, kim, handles.kim)
  const release = await holdAnswer(kim, /\/api\/partners/, () => readAgain(kim))
  await Promise.all([kim.page.waitForResponse(/review-requests\?/), kim.page.clock.fastForward(10_000)])
  await release()
  await partner(kim, "Park").waitFor()

  // The list is drawn anew below the question whether to remove a partner.
  await partner(kim, "Lee").getByRole("button", { name: "Remove: Lee" }).click()
  const choi = await newUser("Choi")
  await call(choi, "sendRequest", { to: `@${handles.kim}`, as: "writer" })
  await readAgain(kim)
  await kim.page.locator("#requests-received li").waitFor()
  await kim.page.locator("#confirm").getByRole("button", { name: "Cancel" }).click()
  await hasFocus(kim, "#partners-list [data-act=remove][aria-label='Remove: Lee']")
})

test("axe: the partners, their requests and both forms, in each look, without overflow", async () => {
  const { kim, lee, handles } = await two({ locale: "ko-KR" })
  const [park, choi] = await Promise.all([newUser("박제삼"), newUser("Choi With-A-Very-Long-Name-That-Never-Breaks-Anywhere")])
  const { link } = await call(kim, "address")
  await call(kim, "createDocument", "지원동기와 입사 후 포부", "저는 데이터로 문제를 푸는 일에 매력을 느꼈습니다.")
  const { id } = await call(park, "sendRequest", { to: link.token, as: "writer" })
  await call(kim, "acceptRequest", id)
  await call(choi, "sendRequest", { to: link.token, as: "reviewer", message: `금요일까지 봐 드릴게요.\n${"longword".repeat(20)}` })
  await call(kim, "sendRequest", { to: `@${handles.lee}`, as: "writer" })
  await kim.page.reload()
  for (const list of ["#partners-list", "#requests-received", "#requests-sent"]) await kim.page.locator(`${list} li`).waitFor()

  /** @param {string} name */
  const look = async (name) => {
    await assertAccessibleIn(kim, `partners: ${name}`, ALL)
    await inEachLook(kim, ({ width, scheme }) => assertFits(kim, `partners-${name}-${width}-${scheme}`))
  }
  await look("lists")
  await kim.page.locator("#address-open").click()
  await look("address")
  await kim.page.locator("#address-handle").fill("!")
  await kim.page.locator("#address-save").click()
  await kim.page.locator("#address-error").getByText(/.+/).waitFor()
  await look("address-refused")
  await write(kim, `@${handles.kim}`)
  await kim.page.locator("#ask-go").click()
  await kim.page.locator("#ask-to-error").getByText(/.+/).waitFor()
  await look("ask-refused")
  // Lee asked meanwhile.
  const sent = await call(kim, "pendingRequests")
  await call(kim, "withdrawRequest", sent.find((/** @type {any} */ { to }) => to.name === "Lee").id)
  const own = await call(kim, "setHandle", handles.kim)
  await call(lee, "sendRequest", { to: own.link.token, as: "writer", message: "부탁드려요." })
  await kim.page.locator("#ask-to").fill(handles.lee)
  await kim.page.locator("#ask-go").click()
  await kim.page.locator("#ask-received li").waitFor()
  await look("ask-received")
})
