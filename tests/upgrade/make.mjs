// @ts-check
/**
 * Writes the fixtures of `tests/suite/server/upgrade.rs` with the server of an older revision:
 *
 *     GALLEY_BIN=BINARY node tests/upgrade/make.mjs REV
 *
 * For SQLite, it packs the data folder of a server that was killed: its journal has rows, and its
 * write-ahead log is not merged. For PostgreSQL, it packs a dump. The JSON beside them has the users and the
 * responses of the older server.
 */
import { execFileSync } from "node:child_process"
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { gzipSync } from "node:zlib"

import { Galley } from "../stock/galley.mjs"
import { Peer, until } from "./peer.mjs"
import { Postgres } from "./postgres.mjs"

const KOREAN = "나는 대학 3학년 겨울, 택배 허브에서 석 달 동안 분류 일을 했습니다. 그 일을 하면서 배운 것은 많습니다."
const ENGLISH = "I have led a team of five for two years, and we shipped on time."
// An old server has no linger.
const SETTINGS = { GALLEY_HISTORY__PAUSE: "300ms", GALLEY_HISTORY__LONGEST: "10m", GALLEY_SERVER__LINGER: undefined }
const rev = process.argv[2] ?? "unnamed"
const folder = join(dirname(fileURLToPath(import.meta.url)), "../data/upgrade", rev)

/** A user: the JSON of the entry as a guest. @param {Galley} galley @param {string} name */
const guest = (galley, name) => galley.call("POST", "/api/auth/guest", { name })

/** @param {Galley} galley @param {string} path @param {string} token @param {boolean} [isText] */
async function get(galley, path, token, isText = false) {
  const response = await fetch(galley.url + path, { headers: { authorization: `Bearer ${token}` } })
  if (!response.ok) throw new Error(`${path}: ${response.status}`)
  return isText ? response.text() : response.json()
}

/** @param {Galley} galley @param {any} owner @param {any} reviewer @param {string} title @param {string} text */
async function desk(galley, owner, reviewer, title, text) {
  const document = await galley.call("POST", "/api/documents", { title, text }, owner.token)
  const link = await share(galley, owner, reviewer, document.id)
  return { document: document.id, link, owner, reviewer }
}

/** @param {Galley} galley @param {any} owner @param {any} reviewer @param {string} document */
async function share(galley, owner, reviewer, document) {
  const link = await galley.call("POST", `/api/documents/${document}/share-link`, {}, owner.token)
  const body = { invite: link.invite.token }
  await galley.call("POST", `/api/share-links/${link.id}/join`, body, reviewer.token)
  return link.id
}

/** Reviews in all states, with replies. @param {Galley} galley @param {any} at @param {Peer} writer */
async function review(galley, at, writer) {
  const path = `/api/share-links/${at.link}/reviews`
  /** @param {string} quote @param {string} body @param {string} [suggestion] */
  const create = (quote, body, suggestion) => {
    const start = writer.text.indexOf(quote)
    const anchor = { start, end: start + quote.length, quote }
    return galley.call("POST", path, { anchor, body, ...(suggestion ? { suggestion } : {}) }, at.reviewer.token)
  }
  /** @param {any} it @param {string} act @param {any} [body] @param {any} [by] */
  const act = (it, act, body = {}, by = at.owner) => galley.call("POST", `${path}/${it.id}/${act}`, body, by.token)
  const open = await create("석 달 동안", "기간을 더 적어 주세요 🙂")
  await act(open, "replies", { body: "네, 적겠습니다." })
  await act(open, "replies", { body: "감사합니다." }, at.reviewer)
  await act(await create("많습니다", "동어 반복입니다", "적지 않습니다"), "reject")
  await act(await create("택배 허브", "어디인가요?"), "resolve")
  const again = await create("3학년", "Which year?")
  await act(again, "resolve")
  await act(again, "reopen")
  await act(await create("분류 일을", "더 좋은 말", "분류 업무를"), "accept")
  // PostgreSQL stores no U+0000: the server escapes it.
  writer.append(" 널\u0000문자 e\u0301")
  await writer.saved()
  await create("널\u0000문자", "a quote with U+0000 inside")
  const gone = await create("나는", "이것은 지웁니다")
  const deleted = await fetch(`${galley.url}${path}/${gone.id}`,
    { method: "DELETE", headers: { authorization: `Bearer ${at.reviewer.token}` } })
  if (!deleted.ok) throw new Error(`${deleted.status} ${await deleted.text()}`)
}

/** Fills a server and returns what it has. @param {Galley} galley */
async function fill(galley) {
  const [kim, lee, park] = await Promise.all(["김하늘", "Lee", "박 🙂"].map((name) => guest(galley, name)))
  const desks = [
    await desk(galley, kim, lee, "자기소개서", KOREAN),
    await desk(galley, park, kim, "Cover letter", ENGLISH),
    await desk(galley, kim, park, "빈 글", ""),
  ]
  const [korean, english] = /** @type {[any, any]} */ (/** @type {unknown} */ (desks))
  const writer = new Peer(galley.url, korean.link, "writer", kim.token)
  const reviewer = new Peer(galley.url, korean.link, "reviewer", lee.token)
  await Promise.all([writer.synced(), reviewer.synced()])
  await review(galley, korean, writer)
  const versions = `/api/documents/${korean.document}/versions`
  const named = await galley.call("POST", versions, { label: "첫 제출본" }, kim.token)
  writer.append(" 그리고 더 배웠습니다 👩‍👩‍👧.")
  await writer.saved()
  await until("a version of a pause", async () => {
    const list = await get(galley, versions, kim.token)
    return list.versions.some((/** @type {any} */ each) => each.kind === "pause")
  })
  await galley.call("POST", `${versions}/${named.id}/restore`, {}, kim.token)
  reviewer.leave()

  // The first link is revoked; the second has another reviewer.
  const old = await fetch(`${galley.url}/api/share-links/${english.link}`,
    { method: "DELETE", headers: { authorization: `Bearer ${park.token}` } })
  if (!old.ok) throw new Error(`${old.status}`)
  english.link = await share(galley, park, lee, english.document)
  english.reviewer = lee
  const author = new Peer(galley.url, english.link, "writer", park.token)
  await author.synced()
  // Enough updates for a snapshot, which the server merges when the document closes.
  for (let count = 0; count < 300; count += 1) {
    author.append(count % 10 === 9 ? `${count}. ` : "w")
    await new Promise((done) => setTimeout(done, 3))
  }
  author.content.delete(0, 7)
  await author.saved()
  author.leave()
  await new Promise((done) => setTimeout(done, 3_000))

  // The last edits stay in the journal; the writer is seated when the server is killed.
  for (let count = 0; count < 12; count += 1) {
    writer.append(`끝${count} `)
    await new Promise((done) => setTimeout(done, 20))
  }
  await writer.saved()
  await until("the last version", async () =>
    (await get(galley, versions, kim.token)).versions[0].kind === "pause")
  const facts = []
  for (const { document, link, owner, reviewer } of desks) {
    const list = (await get(galley, `/api/documents/${document}/versions`, owner.token)).versions
    facts.push({
      owner: owner.user,
      reviewer: reviewer.user,
      link,
      document: await get(galley, `/api/documents/${document}`, owner.token),
      text: await get(galley, `/api/documents/${document}/text`, owner.token, true),
      reviews: (await get(galley, `/api/share-links/${link}/reviews`, owner.token)).reviews,
      versions: await Promise.all(list.map((/** @type {any} */ { id }) =>
        get(galley, `/api/documents/${document}/versions/${id}`, owner.token))),
    })
  }
  await galley.end("SIGKILL")
  writer.leave()
  return { rev, desks: facts }
}

/** @param {string} engine @param {any} facts */
function write(engine, facts) {
  writeFileSync(join(folder, `${engine}.json.gz`), gzipSync(JSON.stringify(facts, null, 1), { level: 9 }))
}

rmSync(folder, { recursive: true, force: true })
mkdirSync(folder, { recursive: true })

const sqlite = await Galley.start(SETTINGS)
try {
  write("sqlite", await fill(sqlite))
  rmSync(join(sqlite.folder, "data/admin-token"), { force: true })
  rmSync(join(sqlite.folder, "data/galley.db-shm"), { force: true })
  const archive = execFileSync("tar",
    ["--owner=0", "--group=0", "--numeric-owner", "--mtime=2026-01-01", "-C", sqlite.folder, "-c", "data"],
    { maxBuffer: 1 << 28 })
  writeFileSync(join(folder, "sqlite.tar.gz"), gzipSync(archive, { level: 9 }))
} finally {
  await sqlite.stop()
}

const server = Postgres.start()
try {
  const galley = await Galley.start({ ...SETTINGS, GALLEY_DATABASE__URL: server.url })
  write("postgres", await fill(galley))
  const secret = execFileSync("cat", [join(galley.folder, "data/secret")])
  writeFileSync(join(folder, "postgres.secret"), secret)
  writeFileSync(join(folder, "postgres.sql.gz"), gzipSync(server.dump(), { level: 9 }))
  await galley.stop()
} finally {
  server.stop()
}
process.exit(0)
