// @ts-check
/**
 * The manual for host products (`config/EMBEDDING.md`): its blocks run in their order in an empty folder, under other
 * ports, and two users work in the page that they make.
 */
import assert from "node:assert/strict"
import { execFileSync, spawn } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { after, afterEach, before, test } from "node:test"
import { fileURLToPath } from "node:url"

import { binary } from "../stock/galley.mjs"
import { read } from "../stock/papers.mjs"
import { Browser, Galley, freePort, until } from "./harness.mjs"

const PACKAGES = fileURLToPath(new URL("../node_modules", import.meta.url))
/** The first line of a file in the manual. */
const NAME = /^(?:\/\/|#|<!--) ([\w.]+)(?: -->)?\n/

const folder = mkdtempSync(join(tmpdir(), "galley-embedding-"))
/** @type {import("node:child_process").ChildProcess[]} */
const programs = []
/** @type {Browser} */
let browser
let [desk, product, paper, cwd] = ["", "", read("config/EMBEDDING.md"), folder]

/** Starts a program of the manual, and waits for its address. @param {string} line */
async function start(line) {
  const isOurs = (/** @type {[string, unknown]} */ [name]) => name.startsWith("GALLEY_")
  const env = Object.fromEntries(Object.entries(process.env).filter((each) => !isOurs(each)))
  const path = `${join(folder, "bin")}:${process.env.PATH}`
  const program = spawn("bash", ["-c", `exec ${line}`], { cwd, env: { ...env, PATH: path }, stdio: ["ignore", "pipe", "ignore"] })
  programs.push(program)
  await new Promise((resolve, reject) => {
    program.stdout?.on("data", (text) => String(text).includes("http://") && resolve(undefined))
    program.once("exit", () => reject(new Error(`${line} ended`)))
  })
}

/** The packages of the tests stand for those that npm installs: the same versions. @param {string} line */
function install(line) {
  const { devDependencies } = JSON.parse(read("tests/package.json"))
  for (const [, name = "", version] of line.matchAll(/ (@?[\w/.-]+)@([\d.]+)/g)) assert.equal(version, devDependencies[name], name)
}

/** @param {string} line of a shell block */
async function run(line) {
  if (line.startsWith("npm install ")) install(line)
  else if (/^galley serve|^node /.test(line)) await start(line)
  else execFileSync("bash", ["-ec", line], { cwd, stdio: ["ignore", "ignore", "pipe"] })
  if (line !== "mkdir product && cd product") return
  cwd = join(folder, "product")
  symlinkSync(PACKAGES, join(cwd, "node_modules"))
}

before(async () => {
  const ports = [await freePort(), await freePort()]
  ;[desk = "", product = ""] = ports.map((port) => `http://127.0.0.1:${port}`)
  paper = paper.replaceAll("http://127.0.0.1:8080", desk).replaceAll("http://127.0.0.1:3000", product)
  paper = paper.replace('"127.0.0.1:8080"', `"127.0.0.1:${ports[0]}"`).replace("listen(3000,", `listen(${ports[1]},`)
  mkdirSync(join(folder, "bin"))
  symlinkSync(binary, join(folder, "bin/galley"))
  for (const [, kind, code = ""] of paper.matchAll(/^```(\w+)\n(.*?)^```$/gms)) {
    const name = NAME.exec(code)?.[1]
    assert.ok(name || kind === "sh", `a block is a file or runs: ${code}`)
    if (name) writeFileSync(join(cwd, name), code)
    else for (const line of code.trimEnd().split("\n")) await run(line)
  }
  browser = await Browser.start()
})
afterEach(async () => {
  await browser.clear()
})
after(async () => {
  await browser.stop()
  for (const program of programs) program.kill("SIGKILL")
  rmSync(folder, { recursive: true, force: true })
})

/** A page of the product. @param {string} path */
async function open(path) {
  const { page } = await browser.newUser(new Galley(folder, {}))
  await page.goto(product + path)
  return page
}

test("two users of an own page see each other's text, cursor and comment", async () => {
  const [kim, lee] = await Promise.all([open("/?user=kim"), open("/?user=lee")])
  for (const page of [kim, lee]) await page.locator(".cm-content", { hasText: "저는 물류가 좋습니다." }).click()
  await kim.keyboard.press("Control+End")
  await kim.keyboard.type(" 그리고")
  await lee.locator(".cm-content", { hasText: "좋습니다. 그리고" }).waitFor()
  await kim.locator("#status", { hasText: /^saved$/ }).waitFor()
  await lee.locator(".cm-ySelectionInfo", { hasText: "김민수" }).waitFor({ state: "attached" })
  await kim.locator(".cm-ySelectionInfo", { hasText: "이서연" }).waitFor({ state: "attached" })

  await lee.keyboard.type("x")
  const [comment = "", list = ""] = [...paper.matchAll(/`await (session[^`]+)`/g)].map(([, code]) => code)
  await lee.evaluate(comment)
  const [review] = /** @type {any[]} */ (await kim.evaluate(list))
  assert.deepEqual([review.kind, review.body, review.author.name], ["summary", "무엇이 좋은가요?", "이서연"])
  assert.equal(await lee.evaluate("session.state"), "open")
  browser.assertContent()
})

test("the page of an allowed origin imports the package from the server", async () => {
  const page = await open("/seat?user=kim")
  const names = await page.evaluate(async (address) => Object.keys(await import(address)), `${desk}/client/galley.js`)
  assert.deepEqual(names.sort(), ["GalleyError", "Reviews", "Session"])
})

test("the desk works in the frame of the manual", async () => {
  const page = await open("/frame?user=kim")
  const frame = page.frameLocator("#desk")
  await frame.locator("#saved[data-kind=saved]").waitFor()
  await frame.locator(".cm-content").click()
  await page.keyboard.press("Control+End")
  await page.keyboard.type("!")
  await until(async () => (await frame.locator(".cm-content").innerText()).includes("!"), "the text of the frame")
  await frame.locator("#saved[data-kind=saved]").waitFor()
  browser.assertContent()
})
