/**
 * The reviews of one link: read once, then updated by the server's events.
 *
 * The editor has the position of a passage (`highlights.ts` moves it with each edit). The page takes
 * the server's position of a new review, of a passage that the server found again, and of one that
 * has collapsed here; otherwise the editor's is newer.
 *
 * Fires `change` when a review does; `came` with a new one, or a new reply, of another user.
 */

import type { Editor } from "../desk/editor.ts"
import * as api from "../lib/api.ts"
import { authorName } from "../lib/i18n.ts"
import { now } from "../lib/server_clock.ts"
import type { Tree } from "./locate.ts"
import { isSuggestion } from "./parts.ts"
import { isWhole, mayReturn, spotsOf, stands, stateOfSpot, type Spot } from "./spots.ts"
import { isSummary } from "./summary.ts"

/** The delay of the question where the passages are, in ms. */
const SEEK_DELAY = 1_200
/** Longest time between two such questions, in ms. */
const SEEK_DELAY_MAX = 60_000
/** After an edit the places beside it are read from the shared text, in ms. */
const REST_DELAY = 200
/** A deleted passage counts as lost after this time: by then a cut is pasted, or a deletion undone. In ms. */
const LOST_DELAY = 3_000

export class Reviews extends EventTarget {
  declare editor: Editor
  declare link: string
  declare me: string
  declare writer: string
  declare watch: EventTarget & { state: { count: number } }
  #all: Map<string, api.Review> = new Map()
  /** By review the last read before its last event or answer: that read may be older. */
  #touched: Map<string, number> = new Map()
  /** The reads so far, and the one that the page shows. */
  #reads = 0
  #shownRead = 0
  #seekTimer = 0
  #seekDelay = SEEK_DELAY
  /** Whether the last answer may be older than what the page shows. */
  #isDue = false
  /** Whether the server has all edits of this page: it answers by its own text. */
  #isSaved = true
  #lostTimer = 0
  /** When each passage that collapsed here did so, in ms. */
  #collapsedAt: Map<string, number> = new Map()
  /** The passages that stood in the text after the last edit. */
  #found: Set<string> = new Set()
  /** The reviews whose letters this page lacked when they were located. */
  #unlocated: Set<string> = new Set()
  /** The base after the last edit. */
  #base: Tree | null = null
  /** The reviews at which this user or the peer edited, until their places are read from the shared text. */
  #near: Set<string> = new Set()
  #restTimer = 0
  /** That of the passages after the last edit. */
  #look: object = {}

  /** @param watch counts the unsaved edits of this page */
  constructor(editor: Editor, link: string, me: string, writer: string, watch: EventTarget & { state: { count: number } }) {
    super()
    this.editor = editor
    this.link = link
    this.me = me
    this.writer = writer
    this.watch = watch
  }

  start(signal: AbortSignal) {
    this.editor.addEventListener("edit", () => this.#edited(), { signal })
    this.watch.addEventListener("change", () => this.#saved(this.watch.state.count === 0), { signal })
  }

  /** Reads all of them; for the beginning, and after a time without events. */
  async read() {
    const read = ++this.#reads
    const { baseTree } = this.editor
    const isSaved = this.#isSaved
    const served = await api.reviews(this.link)
    if (read < this.#shownRead) return
    this.#shownRead = read
    const ids = new Set(served.map(({ id }) => id))
    const isTouched = (id: string) => read <= (this.#touched.get(id) ?? 0)
    // An event during the read may be newer than its answer; all else is as served, also after the database was set back.
    for (const id of this.#all.keys()) if (!ids.has(id) && !isTouched(id)) this.#all.delete(id)
    const reviews = served.filter((review) => !isTouched(review.id) || !this.#isOld(review))
    for (const review of reviews) this.#all.set(review.id, review)
    this.#locate(reviews)
    this.#announce()
    this.#isDue = !isSaved || baseTree !== this.editor.baseTree
    this.#seek()
  }

  #saved(isSaved: boolean) {
    const before = this.#isSaved
    this.#isSaved = isSaved
    if (isSaved && !before) this.#seek()
  }

  /** @param review from an answer or an event; an older one is left alone */
  apply(review: api.Review) {
    if (this.#isOld(review)) return
    const stored = this.#all.get(review.id)
    this.#all.set(review.id, review)
    this.#touched.set(review.id, this.#reads)
    this.#locate([review])
    this.#announce()
    // It may be older than the text here.
    if (this.#isUnsettled(review)) this.#seek(true)
    const came = (author: api.Review["author"], isReply: boolean) => {
      if (author.id !== this.me) this.dispatchEvent(new CustomEvent("came", { detail: { name: authorName(author), review, isReply } }))
    }
    if (!stored) return came(review.author, false)
    for (const reply of review.replies) {
      if (!stored.replies.some(({ id }) => id === reply.id)) came(reply.author, true)
    }
  }

  /** Whether the page has a newer state of the review, or heard of its deletion. */
  #isOld({ id, version, change = 0 }: api.Review) {
    const stored = this.#all.get(id)
    return stored ? version < stored.version || change < (stored.change ?? 0) : this.#touched.has(id)
  }

  drop(id: string) {
    this.#touched.set(id, this.#reads)
    if (!this.#all.delete(id)) return
    this.#locate([])
    this.#announce()
  }

  roleOf({ id }: { id: string }): api.Role {
    return id === this.writer ? "writer" : "reviewer"
  }

  /** Whether the list was read once. */
  get isRead() {
    return 0 < this.#shownRead
  }

  /** In no order. */
  get all() {
    return [...this.#all.values()]
  }

  get(id: string) {
    return this.#all.get(id)
  }

  /** Its first spot that stands, or `null` when it stands nowhere. */
  passageOf(id: string): Spot | null {
    const spot = this.#spots(id).find(stands)
    return spot ? this.editor.inView(spot) : null
  }

  /** All spots of a review: its passage, or the parts of a suggestion. */
  spotsOf(id: string): readonly Spot[] {
    return this.#spots(id).map((spot) => this.editor.inView(spot))
  }

  /** The same in the base. */
  #spots(id: string): readonly Spot[] {
    return this.editor.marked.passages.get(id)?.spots ?? []
  }

  /** The passage of a review, or the position where it stood before its text was deleted. */
  lastPassageOf(id: string) {
    const spot = this.#last(id)
    return spot && this.editor.inView(spot)
  }

  #last(id: string) {
    return this.#spots(id).find(stands) ?? this.#spots(id)[0] ?? null
  }

  #isFound(id: string) {
    return this.#spots(id).some(stands)
  }

  /** Whether all its spots stand in the text as it is now. */
  isWhole(id: string) {
    return this.#isFound(id) && isWhole(this.#spots(id))
  }

  /** The text in which a suggestion stands now, part by part; `null` if one of its parts stands nowhere. */
  textsAt(id: string) {
    const spots = this.#spots(id)
    return this.#isFound(id) && spots.every(stands) ? spots.map((spot) => this.editor.baseTextIn(spot)) : null
  }

  /** Whether a review stands nowhere, and has for so long that no paste or undo is to be expected. */
  isLost(id: string) {
    const review = this.#all.get(id)
    if ((review && isSummary(review)) || this.#isFound(id)) return false
    return (this.#collapsedAt.get(id) ?? 0) + LOST_DELAY <= now()
  }

  /** How it stands, by the text as it is now and not only as the server last saw it. */
  stateOf(review: api.Review): api.AnchorState {
    if (review.anchor === null) return "exact"
    const { state } = review.anchor
    // Until it is lost, its card stays as it is.
    if (!this.#isFound(review.id)) return this.isLost(review.id) ? "orphaned" : state === "orphaned" ? "edited" : state
    const states = this.#spots(review.id).map(stateOfSpot)
    if (states.every((state) => state === "exact")) return "exact"
    return states.every((state) => state === "exact" || state === "moved") ? "moved" : "edited"
  }

  /** Whether the server guesses where a passage is, and a person has not looked. */
  hasMoved = (review: api.Review) => this.stateOf(review) === "moved"

  /** The open ones: those on the whole text first, then those with a passage, in the order of the text. */
  get open() {
    return this.#ordered((review) => review.status === "open" && !this.isLost(review.id))
  }

  /** The open ones whose passage is gone. */
  get orphans() {
    return this.#ordered((review) => review.status === "open" && this.isLost(review.id))
  }

  /** The accepted, rejected and resolved reviews, the latest first. */
  get done() {
    const done = [...this.#all.values()].filter(({ status }) => status !== "open")
    return done.sort((a, b) => b.updated_at.localeCompare(a.updated_at))
  }

  #ordered(matches: (review: api.Review) => boolean) {
    const from = (review: api.Review) => (isSummary(review) ? -1 : (this.#last(review.id)?.from ?? 0))
    const found = [...this.#all.values()].filter(matches).map((review) => ({ review, at: from(review) }))
    found.sort((a, b) => a.at - b.at || a.review.created_at.localeCompare(b.review.created_at))
    return found.map(({ review }) => review)
  }

  /** @param served with offsets as they were when the server answered */
  #locate(served: api.Review[]) {
    const passages = new Map(this.editor.marked.passages)
    for (const id of passages.keys()) {
      if (this.#all.get(id)?.status !== "open") passages.delete(id)
    }
    const tree = this.editor.baseTree
    const positions = served.length === 0 ? null : this.editor.sharedPositions
    const text = { tree, whole: tree.toString(), positions }
    for (const review of served) {
      this.#unlocated.delete(review.id)
      if (review.status !== "open" || review.anchor === null) continue
      if (anchorsOf(review).some((anchor) => anchor.relative && !positions?.of(anchor))) this.#unlocated.add(review.id)
      const spots = spotsOf(text, review, passages.get(review.id)?.spots ?? [])
      passages.set(review.id, { spots, suggests: isSuggestion(review), by: this.roleOf(review.author), since: review.created_at })
    }
    this.editor.setPassages(passages)
    this.#watchCollapses()
  }

  /** Records the passages that collapse and those that are back, and reports a loss when it is due. */
  #watchCollapses() {
    const moment = now()
    const found = new Set<string>()
    let due = Number.POSITIVE_INFINITY
    for (const [id, { spots }] of this.editor.marked.passages) {
      if (spots.some(stands)) {
        found.add(id)
        this.#collapsedAt.delete(id)
      } else if (this.#found.has(id)) this.#collapsedAt.set(id, moment)
      const lostAt = (this.#collapsedAt.get(id) ?? 0) + LOST_DELAY
      if (moment < lostAt) due = Math.min(due, lostAt)
    }
    this.#found = found
    for (const id of this.#collapsedAt.keys()) if (!this.editor.marked.passages.has(id)) this.#collapsedAt.delete(id)
    window.clearTimeout(this.#lostTimer)
    if (due === Number.POSITIVE_INFINITY) return
    this.#lostTimer = window.setTimeout(() => {
      // The next loss is due later.
      this.#watchCollapses()
      this.#announce()
    }, due - moment)
  }

  #edited() {
    const { baseTree } = this.editor
    // The reviewer's own words change no base.
    if (baseTree === this.#base) return
    this.#base = baseTree
    this.#seekDelay = SEEK_DELAY
    if (0 < this.#unlocated.size) this.#locate([...this.#unlocated].flatMap((id) => this.#all.get(id) ?? []))
    const { look, near } = this.editor.marked
    for (const id of near) this.#near.add(id)
    window.clearTimeout(this.#seekTimer)
    window.clearTimeout(this.#restTimer)
    this.#restTimer = window.setTimeout(() => this.#finishEdit(), REST_DELAY)
    if (look === this.#look) return
    this.#look = look
    this.#watchCollapses()
    this.#announce()
  }

  /** Where a spot is after an edit at it, its letters say: the editor only guesses where text stands beside deleted letters. */
  #finishEdit() {
    const isPlaced = (review: api.Review) => anchorsOf(review).every(({ relative }) => relative)
    const near = new Set([...this.#near].flatMap((id) => this.#all.get(id) ?? []))
    this.#near.clear()
    const reviews = [...near].filter(isPlaced)
    if (0 < reviews.length && this.editor.sharedPositions !== null) {
      this.#locate(reviews)
      this.#announce()
    }
    const whole = this.editor.baseTree.toString()
    const mayDiffer = (review: api.Review) =>
      this.#isUnsettled(review) && (near.has(review) || anchorsOf(review).some((anchor) => mayReturn(anchor, whole)))
    this.#seek(this.all.some(mayDiffer))
  }

  /** Whether the server may place a review other than its letters do: one that stands unchanged stands there. */
  #isUnsettled(review: api.Review) {
    return review.status === "open" && (anchorsOf(review).some(({ state }) => state !== "exact") || !isWhole(this.#spots(review.id)))
  }

  /** Asks for the places of all. Without a reason the page asks about no review but one whose state here is not the one that the server gave. */
  #seek(isDue = false) {
    this.#isDue ||= isDue
    window.clearTimeout(this.#seekTimer)
    const isMissed = (review: api.Review) => {
      const anchors = anchorsOf(review)
      return this.#spots(review.id).some((spot, at) => stateOfSpot(spot) !== anchors[at]?.state)
    }
    const isQueried = (review: api.Review) => this.#isUnsettled(review) && (this.#isDue || isMissed(review))
    if (!this.#isSaved || !this.all.some(isQueried)) return
    this.#seekTimer = window.setTimeout(() => {
      this.#seekDelay = Math.min(this.#seekDelay * 2, SEEK_DELAY_MAX)
      // A page without a connection reads when it has one again.
      this.read().catch(({ status }) => void (429 <= status && this.#seek()))
    }, this.#seekDelay)
  }

  #announce() {
    this.dispatchEvent(new Event("change"))
  }
}

const anchorsOf = ({ anchor, parts }: api.Review): api.Anchor[] => (parts.length === 0 ? (anchor ? [anchor] : []) : parts.map((part) => part.anchor))
