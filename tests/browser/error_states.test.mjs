// @ts-check
/** The notices of each failure, and that no failure loses an edit. */

import assert from "node:assert/strict"
import { execFileSync } from "node:child_process"
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { test } from "node:test"
import { fileURLToPath } from "node:url"

import { Galley, Redis } from "./harness.mjs"
import { bothSeated, browser, galley, replaceGalley, withGalley } from "./support.mjs"

/** A tick every second, so that no test waits for one. */
const QUICK = { GALLEY_SEATS__LEASE: "3s", GALLEY_SEATS__RENEW_EVERY: "1s" }
/** A pasted page: three of them exceed the pending edits of a room, and each fits one message. */
const PASTE = "물류 and words,\n".repeat(80_000)

withGalley({ per: "test" })

/** A server whose disk is full while its folder has a file `full`. */
async function onDisk() {
  const disk = realpathSync(mkdtempSync(join(tmpdir(), "galley-")))
  const library = join(disk, "full_disk.so")
  const source = fileURLToPath(new URL("../suite/server/full_disk.c", import.meta.url))
  execFileSync("cc", ["-shared", "-fPIC", "-o", library, source])
  const server = new Galley(disk, { FULL_DISK: disk, LD_PRELOAD: library })
  await server.run()
  return { server, fill: () => writeFileSync(join(disk, "full"), ""), free: () => rmSync(join(disk, "full")) }
}

/** The saving state in the bar. @param {import("./harness.mjs").User} user @param {RegExp} words */
async function savingState({ page }, words) {
  await page.locator("#saved").getByText(words).waitFor()
}

test("a killed server is reported, typing continues, and its edits are saved after the reconnect", async () => {
  const { writer, reviewer } = await bothSeated("Before.", {}, {}, ["Kim", "Lee"])
  await galley.end("SIGKILL")
  await writer.notice.getByText("Connection lost.").waitFor()
  await writer.typeAtEnd(" Meanwhile.")
  await writer.notice.getByText("11 characters are not saved yet.").waitFor()
  assert.doesNotMatch((await writer.page.locator("#saved").textContent()) ?? "", /^Saved/)
  await writer.shot("states-offline")
  await galley.run()
  await writer.seated()
  await writer.notice.waitFor({ state: "hidden" })
  await reviewer.waitForText("Before. Meanwhile.")
  assert.equal(await writer.stored(), "Before. Meanwhile.")
})

test("a full disk is called by its name, and what was typed meanwhile is saved when there is space", async () => {
  const late = /^\d\d:\d\d 이후 저장되지 않음: 9자$/
  const saved = /^\d\d:\d\d:\d\d 저장됨$/
  const { server, fill, free } = await onDisk()
  await replaceGalley(server)
  const writer = await browser.newUser(galley, { locale: "ko-KR" })
  await writer.begin("김민수", "Before.")
  await savingState(writer, saved)
  fill()
  await writer.typeAtEnd(" Full.")
  await writer.notice.getByText(/^\d\d:\d\d 이후로 저장되지 않았습니다\. 서버의 디스크가 가득 찼습니다\. 쓰신 내용은 이 브라우저에 남아 있고/).waitFor()
  await writer.notice.getByText("서버 관리자에게 알려 주시고").waitFor()
  await writer.typeAtEnd(" 더.")
  await writer.notice.getByText("아직 저장되지 않은 글자 9자.").waitFor()
  await savingState(writer, late)
  await writer.shot("states-full-disk")
  await writer.resize({ width: 360, height: 740 })
  await writer.shot("states-full-disk-360")
  free()
  await writer.notice.waitFor({ state: "hidden" })
  await savingState(writer, saved)
  // Nothing of the state in its memory is left after that.
  await galley.end("SIGKILL")
  await galley.run()
  assert.equal(await writer.stored(), "Before. Full. 더.")
  await writer.page.reload()
  await writer.seated()
  await writer.waitForText("Before. Full. 더.")
})

test("edits above the bound of pending edits are rejected and reported, and stored once when there is space", async () => {
  const { server, fill, free } = await onDisk()
  await replaceGalley(server)
  const writer = await browser.newUser(galley)
  // A browser without storage: the page may not report the edits as retained.
  await writer.page.addInitScript(() => Object.defineProperty(window, "indexedDB", { value: undefined }))
  await writer.begin("Kim", "Before.\n")
  fill()
  await writer.page.evaluate((text) => navigator.clipboard.writeText(text), PASTE)
  await writer.toEnd()
  for (let page = 0; page < 3; page++) await writer.page.keyboard.press("Control+v")
  await writer.notice.getByText("more waits to be stored than the server can keep. What you type now is on this page only").waitFor()
  await writer.shot("states-unsaved-full")
  free()
  await writer.seated()
  await writer.notice.waitFor({ state: "hidden" })
  const text = await writer.stored()
  assert.ok(text === `Before.\n${PASTE.repeat(3)}`, `${text.length} characters`)
})

test("a damaged document is reported, shown up to the damage, and read-only", async () => {
  const writer = await browser.newUser(galley)
  await writer.begin("Kim", "Readable.")
  await writer.toEnd()
  await writer.page.keyboard.insertText(" Unreadable.")
  await writer.seated()
  const desk = writer.page.url()
  await writer.page.goto(galley.url)
  // After the stop, one file holds all data.
  await galley.end("SIGTERM")
  const file = join(galley.folder, "data/galley.db")
  const bytes = readFileSync(file)
  // The byte before the text is its length: with another value the edit does not parse.
  for (let at = bytes.indexOf(" Unreadable."); at !== -1; at = bytes.indexOf(" Unreadable.", at + 1)) bytes[at - 1] = 0x7f
  writeFileSync(file, bytes)
  await galley.run()
  await writer.page.goto(desk)
  await writer.notice.getByText("This document is damaged in the database.").waitFor()
  await writer.seated()
  await writer.waitForText("Readable.")
  await writer.shot("states-damaged")
  await writer.typeAtEnd(" Not this.")
  await writer.waitForText("Readable.")
})

test("a deletion made while the server is away is saved when it is back", async () => {
  const writer = await browser.newUser(galley)
  await writer.begin("Kim", "Too long.")
  await galley.end("SIGKILL")
  await writer.notice.getByText("Connection lost.").waitFor()
  await writer.toEnd()
  for (let step = 0; step < 6; step++) await writer.page.keyboard.press("Backspace")
  await writer.notice.getByText("Deletions are not saved yet.").waitFor()
  await galley.run()
  await writer.seated()
  await writer.page.reload()
  await writer.seated()
  await writer.waitForText("Too")
})

test("a deletion is saved by a later invisible edit that no undo restores", async () => {
  const writer = await browser.newUser(galley, { hasClock: true })
  const [socket] = await Promise.all([writer.page.waitForEvent("websocket"), writer.begin("Kim", "Too long.")])
  await writer.toEnd()
  // No timer of the page runs: the server stores the deletion, and the page cannot know it.
  await writer.stopClock()
  const saved = socket.waitForEvent("framereceived", ({ payload }) => String(payload).includes("document.saved"))
  await writer.page.keyboard.press("Backspace")
  await saved
  await savingState(writer, /^Saving…$/)
  await writer.page.clock.resume()
  await writer.seated()
  await writer.waitForText("Too long")
  await writer.page.keyboard.press("Control+z")
  await writer.waitForText("Too long.")
  await writer.seated()
  assert.equal(await writer.stored(), "Too long.")
})

test("clients of a drained server reconnect by themselves", async () => {
  const writer = await browser.newUser(galley)
  await writer.begin("Kim", "Steady.")
  await galley.end("SIGTERM")
  await galley.run()
  await writer.seated()
  await writer.typeAtEnd(" On.")
  await writer.page.locator("#saved[data-kind=saved]").waitFor()
  await writer.page.reload()
  await writer.waitForText("Steady. On.")
})

test("the idle timeout is announced, and any key keeps the seat", async () => {
  await replaceGalley(await Galley.start({ ...QUICK, GALLEY_SEATS__IDLE_RELEASE: "8s" }))
  const writer = await browser.newUser(galley)
  await writer.begin("Kim", "Thinking.")
  await writer.notice.getByText(/Still there\? Others can start in 0:0\d/).waitFor()
  await writer.shot("states-idle")
  // A screen reader receives it once, and any key is an answer.
  await writer.page.locator("#announcer", { hasText: "Still there? Others can start in" }).waitFor()
  await writer.page.keyboard.press("Shift")
  await writer.notice.waitFor({ state: "hidden" })
  await writer.notice.getByText("Still there?").waitFor()
  await writer.notice.getByRole("button", { name: "Keep working" }).click()
  await writer.notice.waitFor({ state: "hidden" })
  await writer.notice.getByText("Still there?").waitFor()
  await writer.notice.getByText("Nothing happened here for a long time").waitFor()
  await writer.notice.getByRole("button", { name: "Open again" }).click()
  await writer.seated()
})

test("while the seat cannot be confirmed typing is paused, and goes on when it is", async () => {
  const redis = await Redis.start()
  try {
    const settings = { ...QUICK, GALLEY_LOCKS__URL: redis.url, GALLEY_DATABASE__SHARED_SQLITE: "true" }
    await replaceGalley(await Galley.start(settings))
    const writer = await browser.newUser(galley)
    await writer.begin("Kim", "Sure.")
    const readOnly = writer.page.locator(".cm-content[aria-readonly=true]")
    assert.equal(await readOnly.count(), 0)
    redis.signal("SIGSTOP")
    await writer.notice.getByText("Checking that it is still your turn").waitFor()
    await writer.shot("states-uncertain")
    await readOnly.waitFor()
    await writer.typeAtEnd(" Nothing of this?")
    assert.equal(await writer.page.locator("#keys[open]").count(), 0, "the question mark is text, and no shortcut")
    await writer.waitForText("Sure.")
    redis.signal("SIGCONT")
    await writer.notice.waitFor({ state: "hidden" })
    await readOnly.waitFor({ state: "detached" })
    await writer.typeAtEnd(" Again.")
    await writer.waitForText("Sure. Again.")
    await writer.seated()
  } finally {
    await redis.stop()
  }
})
