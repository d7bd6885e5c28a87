// @ts-check
/**
 * The acts of the fuzz. One is drawn from the seed alone, without a look at the pages, so that each subset of a sequence can
 * be played; where it goes is a fraction of what the page shows then.
 */

/**
 * @typedef {import("./fuzz_page.mjs").Place} Place
 * @typedef {import("./fuzz_hand.mjs").Hand} Hand
 * @typedef {"writer" | "reviewer"} Role
 * @typedef {Place & { how: "dom" | "mouse" | "keys" }} Target
 * @typedef {{ kind: string, by: Role, [given: string]: any }} Act
 * @typedef {object} Kind
 * @property {string} group which `GALLEY_FUZZ_WITHOUT` leaves out
 * @property {number} weight
 * @property {Role} [by] a kind of one role
 * @property {(random: Random) => object} draw
 * @property {(hand: Hand, act: any) => Promise<unknown>} play
 */

/** The same numbers for the same seed: mulberry32. */
export class Random {
  /** @param {number} seed */
  constructor(seed) {
    this.state = seed | 0
  }

  /** From 0 to below 1, with three digits: a report shows all of it. */
  fraction() {
    this.state = (this.state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return Math.floor(((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967.296) / 1_000
  }

  /** @param {number} from @param {number} to the last one */
  whole(from, to) {
    return from + Math.floor(this.fraction() * (to - from + 1))
  }

  /** @template T @param {readonly T[]} list @returns {T} */
  of(list) {
    return /** @type {T} */ (list[Math.floor(this.fraction() * list.length)])
  }

  /** @template T @param {number} from @param {number} to @param {readonly T[]} list */
  several(from, to, list) {
    return Array.from({ length: this.whole(from, to) }, () => this.of(list))
  }
}

/** Syllables as a Korean input method composes them. */
const SYLLABLES = [["ㅎ", "하", "한"], ["ㄱ", "구", "국"], ["ㅇ", "이"], ["ㅇ", "유"], ["ㅌ", "토", "통"], ["ㅁ", "마", "만"], ["ㅅ", "사", "산", "사"], ["ㄱ", "가", "각"]]
const LETTERS = ["a", "e", "n", " ", " ", ".", "1", "품", "을", "가 ", "each ", "\n"]
const KEYS = ["Enter", "Backspace", "Backspace", "Delete", "Control+Backspace", "Control+Delete", "Home", "End", "ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Shift+ArrowLeft", "Shift+ArrowRight", "Control+Shift+ArrowRight"]
const EMOJI = [["😀", "😁"], ["👍", "👍🏽"], ["👩", "👩‍👩", "👩‍👩‍👧"], ["😁", "", "😀"]]
/** A paragraph that a paste brings several times. */
const TWIN = "Team Alpha reported that the deployment reduced latency by twelve percent."
const PASTED = ["하나\n둘", "👍🏽👩‍👩‍👧", "긴 글 ".repeat(60), `\n${TWIN}\n${TWIN}`, "\t\u00a0tab", "and must ", "물류를"]
const ODD = ["a\u000bb", "하나\r\n둘\r셋", "\u1112\u1161\u11ab\u1100\u1173\u11af", "e\u0301", "x\u0000y\u0007z", "\u2028p\u2029q\u0085r", "\ud83d", "\ude00 r", "\ufeff각\u200b"]

/** @param {Random} random @param {number} [longest] @returns {Target} */
const target = (random, longest = 6) => ({ at: random.fraction(), near: random.fraction(), length: random.of([0, 0, 1, 1, 2, 3, longest]), how: random.of(["dom", "dom", "mouse", "keys"]) })

/** @param {Random} random */
const inside = (random) => ({ at: random.fraction(), near: random.fraction() / 2, length: random.whole(0, 1), isInside: true, how: "dom" })

/** Types letters, of which a keyboard has some. @param {Hand} hand @param {readonly string[]} letters */
function type(hand, letters) {
  const { keyboard } = hand.page
  const typed = async () => {
    for (const letter of letters) {
      if (letter === "\n") await keyboard.press("Enter")
      else if (/^[\x20-\x7f]$/.test(letter)) await keyboard.press(letter === " " ? "Space" : letter)
      else await keyboard.insertText(letter)
    }
  }
  return letters.includes("\n") && hand.without.includes("breaks") ? typed() : hand.enter(letters.join(""), typed)
}

/** @param {Hand} hand @param {readonly string[]} keys */
async function pressAll(hand, keys) {
  // The writer's keys take decisions back, too: the text changes with the server's answer, in a later act.
  if (hand.role === "writer" && keys.includes("Control+z")) hand.isAlone = false
  for (const key of keys) await hand.page.keyboard.press(key)
}

/** @type {Record<string, Kind>} */
export const KINDS = {
  type: {
    group: "keys",
    weight: 14,
    draw: (random) => ({ target: target(random), letters: random.several(1, 4, LETTERS) }),
    play: async (hand, { target, letters }) => {
      await hand.select(target)
      await type(hand, letters)
    },
  },
  goOn: {
    group: "keys",
    weight: 8,
    draw: (random) => ({ letters: random.several(1, 3, LETTERS) }),
    play: async (hand, { letters }) => {
      await hand.focus()
      await type(hand, letters)
    },
  },
  keys: {
    group: "keys",
    weight: 10,
    draw: (random) => ({ target: target(random), keys: random.several(1, 4, KEYS) }),
    play: async (hand, { target, keys }) => {
      await hand.select(target)
      await pressAll(hand, keys)
    },
  },
  compose: {
    group: "hangul",
    weight: 16,
    draw: (random) => ({ target: target(random, 3), syllables: random.several(1, 2, SYLLABLES), ends: random.of(["commit", "commit", "commit", "cancel", "key"]) }),
    play: async (hand, { target, syllables, ends }) => {
      await hand.select(target)
      await hand.compose(syllables, ends)
    },
  },
  composeOn: {
    group: "hangul",
    weight: 6,
    draw: (random) => ({ syllables: random.several(1, 2, SYLLABLES), ends: random.of(["commit", "cancel", "key"]) }),
    play: async (hand, { syllables, ends }) => {
      await hand.focus()
      await hand.compose(syllables, ends)
    },
  },
  emoji: {
    group: "emoji",
    weight: 5,
    draw: (random) => ({ target: target(random, 2), emoji: random.of(EMOJI) }),
    play: async (hand, { target, emoji }) => {
      await hand.select(target)
      await hand.compose([emoji], "commit")
    },
  },
  paste: {
    group: "paste",
    weight: 5,
    draw: (random) => ({ target: target(random), text: random.of(PASTED) }),
    play: async (hand, { target, text }) => {
      await hand.select(target)
      await hand.enter(text, () => hand.paste(text))
    },
  },
  pasteOdd: {
    group: "odd",
    weight: 3,
    draw: (random) => ({ target: target(random), text: random.of(ODD) }),
    play: async (hand, { target, text }) => {
      await hand.select(target)
      await hand.paste(text)
    },
  },
  halves: {
    group: "emoji",
    weight: 1,
    draw: (random) => ({ target: { ...target(random), isAnywhere: true }, keys: random.several(1, 2, ["Backspace", "Delete", "x"]) }),
    play: async (hand, { target, keys }) => {
      await hand.select(target)
      await pressAll(hand, keys)
    },
  },
  move: {
    group: "move",
    weight: 4,
    draw: (random) => ({ from: { ...target(random, 12), length: random.whole(1, 12) }, to: { ...target(random), length: 0 } }),
    play: async (hand, { from, to }) => {
      await hand.select(from)
      const { selected } = await hand.selection()
      if (selected === "") return
      await hand.keep(async () => {
        await hand.page.keyboard.press("Control+x")
        await hand.select(to)
        await hand.paste(selected)
      })
    },
  },
  drag: {
    group: "drag",
    weight: 4,
    draw: (random) => ({ from: { ...target(random, 12), length: random.whole(1, 12), how: "dom" }, to: { ...target(random), length: 0 } }),
    play: (hand, { from, to }) => hand.keep(() => hand.drag(from, to)),
  },
  undo: {
    group: "undo",
    weight: 7,
    draw: (random) => ({ keys: [...random.several(1, 3, ["Control+z"]), ...random.several(0, 2, ["Control+Shift+z", "Control+y"])] }),
    play: async (hand, { keys }) => {
      await hand.focus()
      await pressAll(hand, keys)
    },
  },
  retype: {
    group: "quotes",
    weight: 5,
    by: "writer",
    draw: (random) => ({ target: { ...inside(random), length: 1 } }),
    play: async (hand, { target }) => {
      await hand.select(target)
      const { selected } = await hand.selection()
      if (selected === "") return
      await hand.enter(selected, async () => {
        await hand.page.keyboard.press("Backspace")
        if (selected === "\n") await hand.page.keyboard.press("Enter")
        else await hand.page.keyboard.insertText(selected)
      })
    },
  },
  inside: {
    group: "quotes",
    weight: 6,
    by: "writer",
    draw: (random) => ({ target: inside(random), letters: random.several(0, 2, ["x", "품", " "]) }),
    play: async (hand, { target, letters }) => {
      await hand.select(target)
      if (letters.length === 0) await hand.page.keyboard.press("Backspace")
      await type(hand, letters)
    },
  },
  lines: {
    group: "quotes",
    weight: 2,
    by: "writer",
    draw: (random) => ({ target: { ...target(random), length: 0, how: "dom" }, comesBack: random.of([true, false]) }),
    play: async (hand, { target, comesBack }) => {
      await hand.select(target)
      await pressAll(hand, ["Home", "Shift+End", "Delete", "Backspace", ...(comesBack ? ["Control+z", "Control+z"] : [])])
    },
  },
  decide: {
    group: "decisions",
    weight: 6,
    by: "writer",
    draw: (random) => ({ at: random.fraction(), verdict: random.of(["accept", "accept", "reject"]) }),
    play: async (hand, { at, verdict }) => {
      await hand.onCard("#cards", at, `[data-decision=${verdict}]`)
      // The page asks about the passage that it guessed.
      await hand.press("#confirm[open] .button-strong")
    },
  },
  decideAll: {
    group: "decisions",
    weight: 1,
    by: "writer",
    draw: (random) => ({ verdict: random.of(["accept", "reject"]) }),
    play: (hand, { verdict }) => hand.decideAll(verdict),
  },
  undoDecision: {
    group: "decisions",
    weight: 4,
    by: "writer",
    draw: (random) => ({ way: random.of(["toast", "card", "key"]), at: random.fraction() }),
    play: async (hand, { way, at }) => {
      if (way === "card") await hand.onCard("#done-cards", at, "[data-decision=take-back]")
      else if (way === "toast") await hand.press("#toast button")
      else await hand.focus().then(() => hand.page.keyboard.press("Control+z"))
    },
  },
  withdraw: {
    group: "decisions",
    weight: 3,
    by: "reviewer",
    draw: (random) => ({ at: random.fraction() }),
    play: (hand, { at }) => hand.onCard(":is(#cards, #lost-cards)", at, ".actions > button:last-child", 2),
  },
  comment: {
    group: "comments",
    weight: 2,
    by: "reviewer",
    draw: (random) => ({ place: { ...target(random), near: 1, length: random.whole(1, 12) } }),
    play: (hand, { place }) => hand.comment(place),
  },
  cut: { group: "network", weight: 2, draw: () => ({}), play: async ({ path }) => path.cut() },
  hold: { group: "network", weight: 3, draw: () => ({}), play: async ({ path }) => path.hold() },
  open: { group: "network", weight: 3, draw: () => ({}), play: (hand) => hand.open() },
  reload: { group: "reload", weight: 1, draw: () => ({}), play: (hand) => hand.reload() },
}

/** Acts between two rests, at most. */
const BURST = 30

/**
 * A sequence of acts, with rests between them. The same seed without a group has other acts.
 *
 * @param {number} seed @param {number} count without the rests @param {readonly string[]} without groups @returns {Act[]}
 */
export function actsOf(seed, count, without) {
  const random = new Random(seed)
  const kinds = Object.entries(KINDS).flatMap(([kind, { group, weight }]) => (without.includes(group) ? [] : Array.from({ length: weight }, () => kind)))
  const acts = []
  let next = random.whole(1, BURST)
  for (let made = 1; made <= count; made += 1) {
    const kind = random.of(kinds)
    const { by = random.of(/** @type {const} */ (["writer", "reviewer"])), draw } = /** @type {Kind} */ (KINDS[kind])
    acts.push({ kind, by, ...draw(random) })
    if (made < next && made < count) continue
    next = made + random.whole(1, BURST)
    acts.push(restOf(random, without))
  }
  return acts
}

/** @param {Random} random @param {readonly string[]} without @returns {Act} */
function restOf(random, without) {
  const reload = random.of(["", "", "writer", "reviewer"])
  const tries = random.fraction() < 0.1
  return { kind: "rest", by: "writer", leaves: random.of([true, true, false]), reload: without.includes("reload") ? "" : reload, tries: tries && !without.includes("decisions") }
}
