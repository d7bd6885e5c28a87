// @ts-check
/** People at the stock clients: they type, delete and paste, in Korean and English. */
// @ts-expect-error -- it comes without types
import { WebSocket } from "ws"
import { WebsocketProvider as Provider31 } from "y-websocket"
import { WebsocketProvider as Provider30 } from "y-websocket-3-0"
import * as Y from "yjs"

const Clients = [Provider31, /** @type {typeof Provider31} */ (/** @type {unknown} */ (Provider30))]
const SENTENCES = [
  "저는 어릴 때부터 글을 쓰는 사람이 되고 싶었습니다. ",
  "I have led a team of five for two years, and we shipped on time. ",
  "성실함보다 끈기가 저를 더 잘 설명합니다 🙂. ",
  "What I learnt there: ask early, write it down, say thank you. ",
]
/** The jamo of a Hangul syllable, in the order in which an IME shows them. */
const [INITIALS, MEDIALS, FINALS] = [19, 21, 28]
const COMPATIBLE_INITIALS = "ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ"

/** Pseudo-random numbers, the same for the same seed: `mulberry32`. */
export class Random {
  /** @param {number} seed */
  constructor(seed) {
    this.state = seed >>> 0
  }

  /** @param {number} end @returns {number} below `end` */
  below(end) {
    this.state = (this.state + 0x6d2b79f5) >>> 0
    let mixed = this.state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % end
  }

  /** @template T @param {readonly T[]} list @returns {T} */
  one(list) {
    return /** @type {T} */ (list[this.below(list.length)])
  }
}

/** A user with a stock client and a document of its own. */
export class StockUser {
  /**
   * @param {{ role: string, link: string, token: string, url: string, version: number, name: string }} identity
   */
  constructor(identity) {
    this.identity = identity
    this.doc = new Y.Doc()
    this.text = this.doc.getText("content")
    /** @type {string[]} why the server ended it, where that was for good */
    this.refusals = []
    this.keys = 0
    this.at = 0
    const options = { params: { token: identity.token }, disableBc: true, WebSocketPolyfill: WebSocket, connect: false }
    const Client = /** @type {typeof Provider31} */ (Clients[identity.version % Clients.length])
    this.provider = new Client(socketsOf(identity.url), `${identity.link}/${identity.role}`, this.doc, options)
    this.provider.on("connection-close", (/** @type {{ code: number, reason: string } | null} */ close) => {
      // Expected closes: a server that dies or is full, and the requested end.
      const passes = !close || close.code < 4000 || close.code === 4503 || close.code === 4529
      if (!passes) this.refusals.push(`${close.code} ${close.reason}`)
    })
    this.provider.awareness.setLocalStateField("cursor", { at: 0 })
  }

  /** @param {string} url of the server to come to */
  connect(url) {
    this.provider.serverUrl = socketsOf(url)
    this.provider.connect()
  }

  disconnect() {
    this.provider.disconnect()
  }

  /** Closes it for good. */
  end() {
    this.provider.destroy()
    this.doc.destroy()
  }

  get isSynced() {
    return this.provider.wsconnected && this.provider.synced
  }

  read() {
    return this.text.toString()
  }

  /** The names in this client's presence, its own included. */
  presentRoles() {
    const states = [...this.provider.awareness.getStates().values()]
    return states.map((state) => state.user?.role ?? "self").sort()
  }

  /** One action of a user at a keyboard. @param {Random} random */
  act(random) {
    this.at = Math.min(this.at, this.text.length)
    const dice = random.below(100)
    if (dice < 45) this.#type(random.one(SENTENCES), random)
    else if (dice < 75) this.#compose(random)
    else if (dice < 88) this.#erase(1 + random.below(4))
    else if (dice < 92) this.#select(random)
    else if (dice < 94) this.#insert(random.one(SENTENCES).repeat(1 + random.below(20)))
    else this.#move(random.below(this.text.length + 1))
  }

  /** @param {string} sentence @param {Random} random */
  #type(sentence, random) {
    const letters = Array.from(sentence)
    const from = random.below(letters.length)
    for (const letter of letters.slice(from, from + 1 + random.below(8))) this.#insert(letter)
  }

  /** A syllable, as an IME composes it: each stage replaces the one before. */
  #compose(/** @type {Random} */ random) {
    const [initial, medial, final] = [random.below(INITIALS), random.below(MEDIALS), random.below(FINALS)]
    const open = 0xac00 + (initial * MEDIALS + medial) * FINALS
    this.#insert(COMPATIBLE_INITIALS[initial] ?? "ㄱ")
    for (const code of [open, open + final]) {
      this.#replace(1, String.fromCharCode(code))
    }
  }

  /** @param {number} count */
  #erase(count) {
    for (let done = 0; done < count && 0 < this.at; done += 1) this.#replace(this.#before(), "")
  }

  /** Selects a range and types over it. */
  #select(/** @type {Random} */ random) {
    const length = Math.min(random.below(60), this.at)
    this.#replace(length, random.one(["", "x", "다"]))
  }

  /** The length of the character before the cursor. */
  #before() {
    const low = this.read().charCodeAt(this.at - 1)
    return 0xdc00 <= low && low < 0xe000 ? 2 : 1
  }

  /** @param {string} text */
  #insert(text) {
    this.#replace(0, text)
  }

  /** @param {number} length before the cursor @param {string} text in its place */
  #replace(length, text) {
    this.keys += 1
    this.doc.transact(() => {
      this.at -= length
      if (0 < length) this.text.delete(this.at, length)
      if (text) this.text.insert(this.at, text)
      this.at += text.length
    })
  }

  /** @param {number} at */
  #move(at) {
    // Between two characters, never within one.
    this.at = at
    if (0 < at && this.#before() === 1 && isHigh(this.read().charCodeAt(at - 1))) this.at -= 1
    this.provider.awareness.setLocalStateField("cursor", { at: this.at })
  }
}

/** @param {number} code */
const isHigh = (code) => 0xd800 <= code && code < 0xdc00

/** @param {string} url */
const socketsOf = (url) => `${url.replace("http", "ws")}/ws/share-links`
