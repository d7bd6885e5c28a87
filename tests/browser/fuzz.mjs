// @ts-check
/**
 * Two pages of one document, played by a seed: the writer's and the reviewer's.
 *
 * The acts overlap with what the pages and the server still do. At a rest the session waits until nothing is on its way, and
 * then the texts of both pages, of both Yjs documents and of the server agree (`fuzz_rest.mjs`), and a reload changes nothing.
 */

import { setTimeout } from "node:timers/promises"

import { actsOf, KINDS } from "./fuzz_acts.mjs"
import { EntryFault, Hand } from "./fuzz_hand.mjs"
import { difference, faultsOf, reloadFaults } from "./fuzz_rest.mjs"

/**
 * @typedef {import("./fuzz_acts.mjs").Act} Act
 * @typedef {import("./fuzz_acts.mjs").Role} Role
 * @typedef {import("./fuzz_rest.mjs").Found} Found
 * @typedef {import("./fuzz_rest.mjs").Fault} Fault
 * @typedef {import("./harness.mjs").Browser} Browser
 * @typedef {import("./harness.mjs").Galley} Galley
 * @typedef {{ seed: number, count: number, without: readonly string[] }} Plan
 */

/** Korean and English, twins of sentences, pairs of surrogates, a grapheme of several, and empty lines. */
const TEXT = `저는 물류를 배웠습니다. 저는 물류가 좋습니다.
Team Alpha reported that the deployment reduced latency by twelve percent.
Team Beta reported that the deployment reduced latency by twelve percent.

I will always answer 👍🏽 and 각 😀 fine.
끝 줄입니다.`

/** Acts on one document: a decision stays in its list of reviews. */
const ACTS_PER_DOCUMENT = 400
/** A longer text loses its second half. In UTF-16 units. */
const LENGTH_MAX = 1_200
/** The longest wait for a rest, in ms: the server finds a lost passage with the page's next question, seconds later. */
const REST_MAX = 45_000
/** The page looks at what is unsent with this delay, at most, after its last own step, in ms. */
const CALM = 300
/** The page looks where an edited passage is with a delay after the last edit, in ms: before a reload a rest is longer. */
const SETTLED = 2_000
/** Between two looks, in ms. */
const LOOK_EVERY = 50
/** Chromium's own deletion over several marks writes styles, which the policy of the page refuses. */
const OWN_STYLES = "policy: style-src-attr inline"
/** Acts in the report of a failure. */
const REPORTED = 30

export class FuzzFailure extends Error {}

export class Session {
  /** @type {Act[]} */
  played = []
  /** The faults that both pages report of themselves. @type {() => string[]} */
  errors

  /** @param {Galley} galley @param {Record<Role, Hand>} hands @param {string} document @param {string} link @param {string} cookie @param {() => string[]} errors */
  constructor(galley, hands, document, link, cookie, errors) {
    this.galley = galley
    this.hands = hands
    this.document = document
    this.link = link
    this.cookie = cookie
    this.errors = errors
    this.restMs = REST_MAX
    /** @type {readonly string[]} */
    this.without = []
  }

  /** @param {Browser} browser @param {Galley} galley */
  static async start(browser, galley) {
    const [writer, reviewer] = await Promise.all([Hand.start("writer", browser, galley), Hand.start("reviewer", browser, galley)])
    await writer.user.begin("김민수", TEXT)
    await reviewer.user.follow(await writer.user.invite(), "이서연")
    await Promise.all([writer.ready(), reviewer.ready()])
    const document = new URL(writer.page.url()).pathname.split("/").at(-1) ?? ""
    const link = new URL(reviewer.page.url()).pathname.split("/").at(-1) ?? ""
    const cookies = await writer.page.context().cookies()
    const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join("; ")
    return new Session(galley, { writer, reviewer }, document, link, cookie, () => browser.errors.splice(0).filter((error) => !error.startsWith(OWN_STYLES)))
  }

  async stop() {
    await Promise.all(Object.values(this.hands).map((hand) => hand.stop()))
  }

  /** @param {Act} act */
  async play(act) {
    this.played.push(act)
    const { writer, reviewer } = this.hands
    if (act.kind === "rest") {
      await this.#rest(/** @type {any} */ (act))
      writer.isAlone = reviewer.isAlone = true
      return
    }
    const kind = KINDS[act.kind]
    writer.without = reviewer.without = this.without
    // A decision, and what a page holds back during a composition, may come with any later act.
    if (kind?.group === "decisions") writer.isAlone = reviewer.isAlone = false
    if (act.by === "writer") reviewer.isAlone = false
    await kind?.play(this.hands[act.by], act)
  }

  /** @param {{ leaves: boolean, reload: Role | "", tries: boolean }} act `leaves`: the reviewer leaves the text, which sends at once */
  async #rest({ leaves, reload, tries }) {
    if (leaves) await this.hands.reviewer.leave()
    let before = await this.#calm(undefined, reload === "" ? CALM : SETTLED)
    // The offers of a page stay in its browser until the user answers.
    if (before.writer.offered + before.reviewer.offered !== "") {
      await Promise.all(Object.values(this.hands).map((hand) => hand.discard()))
      before = await this.#calm(({ writer, reviewer }) => [writer, reviewer].flatMap(({ offered }) => (offered === "" ? [] : [{ what: "an offer", seen: offered, wanted: "" }])))
    }
    if (reload !== "") {
      await this.hands[reload].reload()
      await this.#calm((after) => reloadFaults(before[reload], after[reload], this.without))
    }
    if (tries && before.served.accepted !== before.served.text) await this.#tryAll(before)
    if (LENGTH_MAX < before.served.text.length) await this.#cutDown(before.served.text.length)
  }

  /** An acceptance of all makes the text that was shown, and its undo brings back what was there. @param {Found} before */
  async #tryAll(before) {
    const { writer } = this.hands
    await writer.decideAll("accept")
    await this.#calm(({ served }) => (served.text === before.served.accepted ? [] : [{ what: "the accepted text", seen: served.text, wanted: before.served.accepted }]))
    await writer.focus()
    await writer.page.keyboard.press("Control+z")
    await this.#calm(({ served }) => {
      const { text, accepted } = before.served
      if (served.text !== text) return [{ what: "the text after the undo of a decision", seen: served.text, wanted: text }]
      return served.accepted === accepted ? [] : [{ what: "the acceptance after the undo of a decision", seen: served.accepted, wanted: accepted }]
    })
  }

  /** @param {number} length */
  async #cutDown(length) {
    const { writer } = this.hands
    await writer.select({ at: 0.3, near: 1, length, how: "dom" })
    await writer.page.keyboard.press("Delete")
    await writer.decideAll("reject")
    await this.#calm()
  }

  /**
   * Waits until nothing is on its way and all agree.
   *
   * @param {(found: Found) => Fault[]} [more] what has to hold as well @param {number} [calm] for how long, in ms
   */
  async #calm(more = () => [], calm = CALM) {
    const hands = Object.values(this.hands)
    await Promise.all(hands.filter(({ path }) => !path.isOpen).map((hand) => hand.open()))
    const deadline = Date.now() + this.restMs
    /** Since when all that is shown has been as it is. */
    let since = Date.now()
    for (let last = ""; ; ) {
      const found = await this.#look()
      const isIdle = hands.every(({ path }) => path.pending === 0)
      const now = JSON.stringify(found)
      if (now !== last || !isIdle) since = Date.now()
      last = now
      const faults = [...faultsOf(found, this.without), ...more(found)]
      this.#assertNoError()
      if (faults.length === 0 && calm <= Date.now() - since) return found
      if (deadline < Date.now()) throw new FuzzFailure(described(faults.length === 0 ? [{ what: "the pages", seen: "busy", wanted: "at rest" }] : faults, found))
      await setTimeout(LOOK_EVERY)
    }
  }

  #assertNoError() {
    const errors = this.errors()
    if (0 < errors.length) throw new FuzzFailure(errors.join("\n"))
  }

  /** @returns {Promise<Found>} */
  async #look() {
    const [writer, reviewer] = await Promise.all([this.hands.writer.read(), this.hands.reviewer.read()])
    return { writer, reviewer, served: await this.#served() }
  }

  async #served() {
    const path = `/api/documents/${this.document}/text`
    const [text, accepted, reviews] = await Promise.all([this.#get(path), this.#get(`${path}?view=accepted`), this.#get(`/api/share-links/${this.link}/reviews?status=open&limit=200`)])
    const open = (await reviews.json()).reviews.map((/** @type {any} */ review) => ({ id: review.id, state: stateOf(review), parts: review.parts.map(partOf) }))
    return { text: await text.text(), accepted: await accepted.text(), open }
  }

  /** @param {string} path */
  async #get(path) {
    const response = await fetch(this.galley.url + path, { headers: { cookie: this.cookie } })
    if (!response.ok) throw new FuzzFailure(`${path}: ${response.status} ${await response.text()}`)
    return response
  }
}

/** How a review stands: as the worst of its parts does. @param {any} review */
function stateOf({ anchor, parts }) {
  const states = 0 < parts.length ? parts.map((/** @type {any} */ part) => part.anchor.state) : [anchor?.state ?? "exact"]
  if (states.every((/** @type {string} */ state) => state === "orphaned")) return "orphaned"
  if (states.some((/** @type {string} */ state) => state === "orphaned" || state === "edited")) return "edited"
  return states.includes("moved") ? "moved" : "exact"
}

/** @param {any} part of a served suggestion */
const partOf = ({ anchor, text }) => `${anchor.state} at ${anchor.start}: ${JSON.stringify(anchor.quote)} → ${JSON.stringify(text)}`

/** @param {readonly Fault[]} faults @param {Found} found */
function described(faults, { writer, reviewer, served }) {
  const each = faults.map(({ what, seen, wanted }) => `- ${what}:\n  ${difference(seen, wanted)}`)
  const texts = Object.entries({ "server   ": served.text, "accepted ": served.accepted, "writer   ": writer.editor, "reviewer ": reviewer.editor })
  return [...each, ...texts.map(([name, text]) => `${name} ${JSON.stringify(text)}`), ...served.open.map(({ id, state, parts }) => `open ${id} ${state} ${parts.join("; ")}`)].join("\n")
}

/** @param {Browser} browser @param {Galley} galley @param {readonly Act[]} acts @param {Partial<Pick<Session, "restMs" | "without">>} [options] */
export async function playAll(browser, galley, acts, options = {}) {
  /** @type {Session | null} */
  let session = null
  let count = 0
  try {
    for (const act of acts) {
      session ??= await Session.start(browser, galley)
      Object.assign(session, options)
      await session.play(act)
      if (act.kind !== "rest") count += 1
      else if (ACTS_PER_DOCUMENT <= session.played.length) {
        await session.stop()
        session = null
        console.log(`${count} acts`)
      }
    }
  } catch (error) {
    const last = session?.played.slice(-REPORTED) ?? []
    const batches = session?.hands.reviewer.batches.map((batch) => `batch ${batch}`) ?? []
    throw new FuzzFailure([`after ${count} acts: ${error instanceof FuzzFailure || error instanceof EntryFault ? error.message : /** @type {Error} */ (error).stack}`, ...batches, ...last.map((act) => JSON.stringify(act))].join("\n"))
  } finally {
    await session?.stop()
  }
}

/** @param {Browser} browser @param {Galley} galley @param {Plan} plan */
export const playSeed = (browser, galley, { seed, count, without }) => playAll(browser, galley, actsOf(seed, count, without), { without })
