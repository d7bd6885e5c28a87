// @ts-check
/** A reviewer who types suggestions beside a writer, and what the server has of them: for the browser tests. */

import assert from "node:assert/strict"

import { until } from "./harness.mjs"
import { bothSeated, galley } from "./support.mjs"

/** @typedef {import("./harness.mjs").User} User */

/** A desk with both seated. @param {string} text @param {import("./harness.mjs").UserOptions} [options] of the reviewer */
export async function desk(text, options) {
  const { writer, reviewer } = await bothSeated(text, {}, options)
  await mayType(reviewer)
  return { writer, reviewer }
}

/** Waits until the reviewer's text takes keys. @param {User} reviewer */
export const mayType = ({ page }) => page.locator(".cm-content:not([aria-readonly=true])").waitFor()

/** The struck words, in the order of the text. @param {User} user */
export const struck = ({ page }) => page.locator(".cm-content .passage-old").allTextContents()

/** The caret stands behind the first occurrence. @param {User} user @param {string} quote */
export async function caretBehind(user, quote) {
  await user.select(quote)
  await user.page.keyboard.press("ArrowRight")
}

/** The open suggestions as the server has them, in the order of the text. @param {User} user @returns {Promise<{ id: string, parts: [string, string][] }[]>} */
export async function suggestions({ page }) {
  const link = new URL(page.url()).pathname.split("/").pop()
  const answer = await page.request.get(`${galley.url}/api/share-links/${await linkOf(page, link ?? "")}/reviews?limit=100`)
  const { reviews } = await answer.json()
  return reviews
    .filter((/** @type {any} */ { status, parts }) => status === "open" && 0 < parts.length)
    .sort((/** @type {any} */ a, /** @type {any} */ b) => a.parts[0].anchor.start - b.parts[0].anchor.start)
    .map((/** @type {any} */ { id, parts }) => ({ id, parts: parts.map((/** @type {any} */ { anchor, text }) => [anchor.quote, text]) }))
}

/** The share link of a page: a writer's address has the document. @param {import("playwright-core").Page} page @param {string} id */
export async function linkOf(page, id) {
  if (new URL(page.url()).pathname.startsWith("/s/")) return id
  const { share_links: links } = await (await page.request.get(`${galley.url}/api/share-links`)).json()
  return links.find((/** @type {any} */ link) => link.document_id === id)?.id
}

/** Waits until the server has exactly these parts of open suggestions. @param {User} user @param {[string, string][]} wanted */
export async function serverHas(user, wanted) {
  const parts = async () => (await suggestions(user)).flatMap((one) => one.parts)
  await until(async () => JSON.stringify(await parts()) === JSON.stringify(wanted), `the server has ${JSON.stringify(wanted)}`, async () => JSON.stringify(await parts()))
}

/** Decides the first open suggestion by the API, as the writer. @param {User} writer @param {"accept" | "reject"} decision */
export async function decideFirst({ page }, decision) {
  const link = await linkOf(page, new URL(page.url()).pathname.split("/").pop() ?? "")
  const reviews = `${galley.url}/api/share-links/${link}/reviews`
  const open = (await (await page.request.get(reviews)).json()).reviews.find((/** @type {any} */ { status }) => status === "open")
  const headers = { origin: galley.url, "if-match": `"${open.version}"` }
  const answer = await page.request.post(`${reviews}/${open.id}/${decision}`, { headers, data: {} })
  assert.ok(answer.ok(), await answer.text())
}

/** The writer's text with all that stands accepted. @param {User} writer */
export const accepted = (writer) => writer.stored("?view=accepted")
