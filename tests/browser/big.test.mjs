// @ts-check
/**
 * A document of years: 200,000 pieces. That it is whole, that one types in it, and that a key costs
 * what it costs in a small one, counted in work and not in time.
 */

import assert from "node:assert/strict"
import { after, before, test } from "node:test"

import { writeBig } from "./big.mjs"
import { Browser, Galley, Person, until } from "./harness.mjs"

const OPERATIONS = 200_000

/** @type {Galley} */
let galley
/** @type {Browser} */
let browser

before(async () => {
  galley = await Galley.start()
  browser = await Browser.start()
})
after(async () => {
  await browser.stop()
  await galley.stop()
})

/** At somebody's desk, by their token. @param {string} token @param {string} path @returns {Promise<Person>} */
async function at(token, path) {
  const person = await browser.person(galley)
  await person.page.context().addCookies([{ name: "galley_token", value: token, url: galley.url }])
  await person.page.goto(galley.url + path)
  await person.page.locator("#saved[data-kind=saved]").waitFor({ timeout: 60_000 })
  return person
}

/** The counts at the foot, without separators. @param {Person} person */
const counts = (person) =>
  person.page.evaluate(() => [...document.querySelectorAll("#counts dd")].map((dd) => Number((dd.textContent ?? "").replace(/\D/g, ""))))

/** @param {string} text */
function lengths(text) {
  const solid = text.replace(/\s/g, "").length
  const hangul = [...text.matchAll(/[가-힣]/g)].length
  return [text.length, solid, text.length + 2 * hangul, text.length + hangul]
}

test("it opens whole for both, is typed in at the end and in the middle, and is counted right", async () => {
  const desk = await galley.desk("")
  const text = await writeBig(galley, desk, OPERATIONS)
  const writer = await at(desk.writer, `/d/${desk.document}`)
  await until(async () => (await counts(writer))[0] === text.length, "all of it is counted")
  assert.deepEqual(await counts(writer), lengths(text))

  const { keyboard } = writer.page
  await writer.page.locator(".cm-content").click()
  await keyboard.press("Control+End")
  await keyboard.type("끝입니다.")
  await keyboard.press("Control+Home")
  await keyboard.type("The beginning: ")
  const typed = `The beginning: ${text}끝입니다.`
  await until(async () => (await counts(writer))[0] === typed.length, "what was typed is counted")
  assert.deepEqual(await counts(writer), lengths(typed))
  await writer.seated()

  const reviewer = await at(desk.reviewer, `/s/${desk.link}`)
  await until(async () => (await counts(reviewer))[0] === typed.length, "the reviewer has all of it")
  await reviewer.page.locator(".cm-line").first().getByText("The beginning: ").waitFor()
  await keyboard.type("live ")
  await reviewer.page.locator(".cm-line").first().getByText("The beginning: live ").waitFor()
  await writer.seated()

  await writer.page.reload()
  await until(async () => (await counts(writer))[0] === typed.length + 5, "it is whole after a reload")
  const stored = await writer.page.request.get(`${galley.url}/api/documents/${desk.document}/text`)
  assert.equal(await stored.text(), typed.replace("The beginning: ", "The beginning: live "))
  browser.assertContent()
})
