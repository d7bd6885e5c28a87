// @ts-check
/**
 * Long documents: one of 200,000 pieces, and a recorded real one. They load whole, accept edits, and a
 * keystroke walks none of them (`tests/ui` counts the steps).
 */

import assert from "node:assert/strict"
import { readFileSync } from "node:fs"
import { test } from "node:test"
import { gunzipSync } from "node:zlib"

// @ts-expect-error -- it comes without types
import { WebSocket } from "ws"
import { WebsocketProvider } from "y-websocket"
import * as Y from "yjs"

import { writeLargeDocument } from "./large_document.mjs"
import { User, until } from "./harness.mjs"
import { browser, galley, withGalley } from "./support.mjs"

const OPERATIONS = 200_000

withGalley()

/** The desk of a user, by their token. @param {string} token @param {string} path @returns {Promise<User>} */
async function at(token, path) {
  const user = await browser.newUser(galley)
  await user.page.context().addCookies([{ name: "galley_token", value: token, url: galley.url }])
  await user.page.goto(galley.url + path)
  await user.page.locator("#saved[data-kind=saved]").waitFor({ timeout: 60_000 })
  return user
}

/** The counts at the foot, without separators. @param {User} user */
const counts = (user) =>
  user.page.evaluate(() => [...document.querySelectorAll("#counts .count:not(.count-words) dd")].map((dd) => Number((dd.textContent ?? "").replace(/\D/g, ""))))

/** The whole text, also the part outside the viewport, which the editor does not draw. @param {User} user */
async function whole(user) {
  const { page } = user
  await page.bringToFront()
  await page.locator(".cm-content").click()
  await page.keyboard.press("Control+a")
  return user.copied(() => page.keyboard.press("Control+c"))
}

/** @param {string} text */
function lengths(text) {
  const solid = text.replace(/\s/g, "").length
  const hangul = [...text.matchAll(/[가-힣]/g)].length
  return [text.length, solid, text.length + 2 * hangul, text.length + hangul]
}

test("a long document opens whole for both, accepts edits at the end and in the middle, and is counted right", async () => {
  const desk = await galley.desk("")
  const text = await writeLargeDocument(galley, desk, OPERATIONS)
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
  await until(async () => (await counts(writer))[0] === typed.length, "the edit is counted")
  assert.deepEqual(await counts(writer), lengths(typed))
  await writer.seated()

  const reviewer = await at(desk.reviewer, `/s/${desk.link}`)
  await until(async () => (await counts(reviewer))[0] === typed.length, "the reviewer has all of it")
  await reviewer.page.locator(".cm-line").first().getByText("The beginning: ").waitFor()
  await keyboard.type("live ")
  await reviewer.page.locator(".cm-line").first().getByText("The beginning: live ").waitFor()
  // The last letter is a space, which the line above matches without.
  await until(async () => (await counts(reviewer))[0] === typed.length + 5, "the reviewer has all that was typed")
  assert.ok((await whole(reviewer)) === typed.replace("The beginning: ", "The beginning: live "), "the reviewer's text is the same")
  await writer.seated()

  await writer.page.reload()
  await until(async () => (await counts(writer))[0] === typed.length + 5, "the long document is whole after a reload")
  const stored = await writer.page.request.get(`${galley.url}/api/documents/${desk.document}/text`)
  assert.equal(await stored.text(), typed.replace("The beginning: ", "The beginning: live "))
})

test("a real editing session that a stock client replays is the text on the page", async () => {
  const file = new URL("../data/traces/sveltecomponent.json.gz", import.meta.url)
  /** @type {{ endContent: string, txns: { patches: [number, number, string][] }[] }} */
  const { endContent, txns } = JSON.parse(gunzipSync(readFileSync(file)).toString())
  const desk = await galley.desk("")
  const doc = new Y.Doc()
  const content = doc.getText("content")
  const provider = new WebsocketProvider(`${galley.url.replace("http", "ws")}/ws/share-links`, `${desk.link}/writer`, doc, {
    params: { token: desk.writer },
    disableBc: true,
    WebSocketPolyfill: WebSocket,
  })
  await new Promise((synced) => provider.once("sync", synced))
  const reviewer = await at(desk.reviewer, `/s/${desk.link}`)
  // A hundred at a time: the server would rate-limit a loop that sends them all at once.
  for (let from = 0; from < txns.length; from += 100) {
    doc.transact(() => {
      for (const { patches } of txns.slice(from, from + 100)) {
        for (const [index, taken, put] of patches) {
          if (0 < taken) content.delete(index, taken)
          if (put !== "") content.insert(index, put)
        }
      }
    })
  }
  assert.equal(content.toString(), endContent)
  await until(async () => (await counts(reviewer))[0] === endContent.length, "all of it has come")
  assert.equal(await whole(reviewer), endContent)
  const token = { headers: { authorization: `Bearer ${desk.writer}` } }
  assert.equal(await (await fetch(`${galley.url}/api/documents/${desk.document}/text`, token)).text(), endContent)
  await reviewer.page.reload()
  await until(async () => (await counts(reviewer))[0] === endContent.length, "it is whole after a reload")
  assert.equal(await whole(reviewer), endContent)
  provider.destroy()
  doc.destroy()
})
