// @ts-check
/** The rules of suggesting one by one: which of two edits wins, which id stays, and when the server is asked. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { ChangeSet } from "../../static/js/lib/vendor.ts"
import { Page, part, replaced, said, stored } from "./suggesting_page.js"

/** @typedef {import("../../static/js/suggest/model/entries.ts").Suggestion} Suggestion */

test("a key sends the words of its paragraph, and nothing is sent twice", () => {
  const page = new Page("the big dog\nthe cat", stored("cat", part(16, "cat", "cats")))
  assert.equal(page.view, "the big dog\nthe cats")
  assert.deepEqual(page.type("big", "huge").send(), ["new-1/null: big→huge"])
  assert.deepEqual(page.send(), [])
  assert.equal(page.suggesting.isDirty, false)
  assert.deepEqual(page.type("huge|", "st").send(), ["new-1/1: big→hugest"])
})

test("a paragraph with two changes that become one keeps the older id, and a split gives the first one the id", () => {
  const page = new Page("one two three")
  assert.deepEqual(page.type("three", "drei").send(), ["new-1/null: three→drei"])
  assert.deepEqual(page.type("one", "eins").send(), ["new-2/null: one→eins"])
  assert.deepEqual(page.type("two", "zwei").send(), ["new-1/1: one two three→eins zwei drei", "without new-2"])
  assert.deepEqual(page.type("zwei", "two").send(), ["new-1/2: one→eins", "new-3/null: three→drei"])
})

test("an undone change is withdrawn, and one that was not sent is forgotten", () => {
  const page = new Page("one two")
  page.type("one", "eins").send()
  assert.deepEqual(page.type("eins", "one").send(), ["without new-1"])
  page.type("two", "zwei")
  assert.deepEqual(page.type("zwei", "two").send(), [])
  assert.deepEqual(page.ids, [])
})

test("a sentence that moves to another paragraph finds the suggestion that took it out", () => {
  const sentence = "저는 팀을 이끌어 매출을 두 배로 늘렸습니다."
  const page = new Page(`${sentence} 그 뒤.\n둘째.`)
  page.type(`${sentence} `, "").send()
  assert.deepEqual(page.ids, [`new-1: ${sentence} →`])
  assert.deepEqual(page.type("둘째.|", ` ${sentence}`).send(), [`new-1/1: ${sentence} → + → ${sentence}`])
})

test("the writer accepts: the view stays, and the words that were typed since are a new suggestion", () => {
  const page = new Page("the big dog")
  page.type("big", "huge").send()
  page.write("big", "huge")
  assert.equal(page.view, "the huge dog")
  page.dispatch(page.suggesting.decided("new-1", "accepted"))
  assert.deepEqual([page.ids, page.send()], [[], []])

  const other = new Page("the big dog", stored("one", part(4, "big", "huge")))
  other.type("huge|", " old").write("big", "huge")
  other.dispatch(other.suggesting.decided("one", "accepted"))
  assert.equal(other.view, "the huge old dog")
  assert.deepEqual(other.send(), ["new-1/null: → old"])
})

for (const [written, ends] of /** @type {const} */ ([["so huge and calm", false], ["huge or calm", true]])) {
  test(`the writer accepts and changes it to "${written}" at once: the words that were typed since are a new suggestion`, () => {
    const page = new Page("the big dog", stored("one", part(4, "big", "huge and calm")))
    page.type("calm|", " old").write("big", written)
    page.dispatch(page.suggesting.decided("one", "accepted"))
    assert.equal(page.suggesting.isWaiting, ends)
    page.dispatch(page.suggesting.endWaiting())
    assert.equal(page.view, `the ${written} old dog`)
    assert.deepEqual(page.send(), ["new-1/null: → old"])
    assert.deepEqual(page.suggesting.unsaved(), { put: [], withdraw: [] })
  })
}

test("the event of an acceptance may arrive before its text", () => {
  const page = new Page("the big dog", stored("one", part(4, "big", "huge")))
  page.dispatch(page.suggesting.decided("one", "accepted")).write("big", "huge")
  assert.equal(page.view, "the huge dog")
  assert.ok(page.suggesting.overlay.changes.empty)
})

test("a batch between the event of an acceptance and its text cuts no other suggestion, and the undo brings each back", () => {
  const open = [["한", "1"], ["둘", "2"], ["넷", "4"]].map(([quote = "", text = ""], at) => stored(`s${at}`, part("한 둘 셋 넷".indexOf(quote), quote, text)))
  const page = new Page("한 둘 셋 넷", ...open)
  page.write("넷", "사")
  page.dispatch(page.suggesting.decided("s0", "accepted")).dispatch(page.suggesting.decided("s1", "accepted"))
  assert.deepEqual(page.collect().found, [])
  page.write("한 둘", "1 2")
  assert.equal(page.view, "1 2 셋 사")
  page.write("1 2", "한 둘")
  for (const suggestion of open.slice(0, 2)) page.dispatch(page.suggesting.opened({ ...suggestion, version: 3 }))
  assert.equal(page.view, "1 2 셋 사")
  assert.deepEqual(page.collect().found, [])
})

test("the event of an acceptance leaves the view while the text still has the quote", () => {
  const page = new Page("many cats", stored("one", part(5, "cats", "cat")))
  page.dispatch(page.suggesting.decided("one", "accepted"))
  assert.equal(page.view, "many cat")
  page.write("cats", "cat")
  assert.equal(page.view, "many cat")
  assert.ok(page.suggesting.overlay.changes.empty)
})

test("the text of an acceptance that the writer's keys surround ends the suggestion, too", () => {
  const page = new Page("the dog ran", stored("gap", part(4, "", "big ")))
  page.dispatch(page.suggesting.decided("gap", "accepted")).write("the |", "so big and ")
  assert.equal(page.view, "the so big and dog ran")
  assert.ok(page.suggesting.overlay.changes.empty)
})

test("an acceptance takes a version that is older than the words on their way", () => {
  const page = new Page("the big dog", stored("one", part(4, "big", "huge")))
  page.type("huge", "hugest").collect()
  page.write("big", "huge")
  page.dispatch(page.suggesting.decided("one", "accepted"))
  page.suggesting.answered([{ id: "one", state: "refused", reason: "decided" }])
  assert.equal(page.view, "the hugest dog")
  assert.deepEqual(page.send(), ["new-1/null: huge→hugest"])
})

test("a rejection brings the quote back, and leaves the words that were typed since", () => {
  const page = new Page("the big dog", stored("one", part(4, "big", "huge")))
  page.type("huge|", " old")
  page.dispatch(page.suggesting.decided("one", "rejected"))
  assert.equal(page.view, "the big old dog")
  assert.deepEqual(page.send(), ["new-1/null: → old"])
})

test("the undo of an acceptance brings the suggestion back", () => {
  const page = new Page("the big dog", stored("one", part(4, "big", "huge")))
  page.write("big", "huge")
  page.dispatch(page.suggesting.decided("one", "accepted")).write("huge", "big")
  assert.equal(page.view, "the big dog")
  page.dispatch(page.suggesting.opened({ ...stored("one", part(4, "big", "huge")), version: 3 }))
  assert.equal(page.view, "the huge dog")
  assert.deepEqual(page.type("huge", "tiny").send(), ["one/3: big→tiny"])
})

test("the writer changes another letter of the word: the page renews the suggestion at rest", () => {
  const page = new Page("저는 학교는 갑니다", stored("one", part(3, "학교는", "학교에")))
  page.write("학교|", "들")
  assert.equal(page.view, "저는 학교들에 갑니다")
  assert.equal(page.suggesting.stateOf("one"), "open")
  assert.deepEqual(page.send(), ["one/1: 학교들는→학교들에"])
})

test("the writer changes one of several suggestions of a form: the others stay as the reviewer made them", () => {
  const form = ["한", "둘", "넷", "다섯"].map((word, at) => stored(word, part("한 둘 셋 넷들 다섯".indexOf(word), word, String(at))))
  const page = new Page("한 둘 셋 넷들 다섯", ...form)
  assert.equal(page.view, "0 1 셋 2들 3")
  assert.deepEqual(page.write("넷", "사사").send(), [])
  assert.equal(page.suggesting.stateOf("넷"), "hidden")
  assert.deepEqual(page.write("다|섯", " ").send(), [])
  assert.deepEqual([page.view, page.ids], ["0 1 셋 사사들 다 ", ["한: 한→0", "둘: 둘→1"]])

  const other = new Page("한 학교는 둘", stored("a", part(0, "한", "1")), stored("b", part(2, "학교는", "학교에")), stored("c", part(6, "둘", "2")))
  assert.deepEqual(other.write("학교|", "들").send(), ["b/1: 학교들는→학교들에"])
})

test("the writer changes the very letters: the suggestion leaves the view, and a key there suggests on the new text", () => {
  const page = new Page("the big dog ran", stored("one", part(4, "big", "huge")))
  page.write("b|i", "a")
  assert.deepEqual([page.view, page.suggesting.stateOf("one")], ["the bag dog ran", "hidden"])
  page.type("ran", "sat")
  assert.deepEqual(page.send(), ["new-1/null: ran→sat"], "a key elsewhere in the paragraph leaves it")
  assert.equal(page.suggesting.stateOf("one"), "hidden")
  assert.deepEqual(page.type("bag", "sack").send(), ["one/1: bag→sack"])
})

test("the writer deletes a letter of a quote and types it again: the page reads what will be accepted", () => {
  const page = new Page("저는 물류를 배웠습니다.").type("물류를", "유통을")
  assert.deepEqual(page.send(), ["new-1/null: 물류를→유통을"])
  assert.equal(page.write("류", "").view, "저는 물를 배웠습니다.")
  assert.equal(page.write("물|", "류").view, "저는 유통을 배웠습니다.")
  assert.deepEqual(page.send(), ["new-1/1: 물류를→유통을"], "the server anchors it at the new letter")
  page.write("물류를", "화물을").write("화물을", "")
  assert.deepEqual([page.view, page.send()], ["저는  배웠습니다.", []])
})

test("the writer types the first letter of a quote again, the last, or all: the page suggests on the letters of now", () => {
  const cases = [["물", "저는 |"], ["를", "물류|"], ["물류를", "저는 |"]]
  for (const [words = "", before = ""] of cases) {
    const page = new Page("저는 물류를 배웠습니다.", stored("one", part(3, "물류를", "유통을")))
    assert.equal(page.write(words, "").view, `저는 ${"물류를".replace(words, "")} 배웠습니다.`)
    assert.equal(page.write(before, words).view, "저는 유통을 배웠습니다.", words)
    assert.deepEqual([page.send(), page.suggesting.unsaved().put], [["one/1: 물류를→유통을"], []])
  }
  const other = new Page("저는 물류를 배웠습니다.", stored("one", part(3, "물류를", "유통을")))
  other.write("물류를", "").write("저는", "물류를")
  assert.equal(other.view, "물류를  배웠습니다.", "the same words elsewhere are other letters")
})

/** The writer's edit of the very letters of `물류를→유통을`, and the reviewer's text without it. @type {[string, (page: Page) => void, string][]} */
const edits = [
  ["deletes a letter and types another", (page) => page.write("류", "").write("물|", "품"), "저는 물품를 배웠습니다."],
  ["puts a letter into the word", (page) => page.write("물|", "품"), "저는 물품류를 배웠습니다."],
  ["replaces the word", (page) => page.write("물류를", "화물을"), "저는 화물을 배웠습니다."],
  ["deletes the word", (page) => page.write("물류를 ", ""), "저는 배웠습니다."],
]
for (const [what, edit, text] of edits) {
  test(`the writer ${what}: what the reviewer types beside it is a suggestion of its own`, () => {
    /** @param {boolean} isSent */
    const begun = (isSent) => {
      const page = new Page("저는 물류를 배웠습니다.\n둘째 문단입니다.").type("물류를", "유통을")
      if (isSent) page.send()
      edit(page)
      if (isSent) assert.equal(page.view, `${text}\n둘째 문단입니다.`)
      return page
    }
    const cases = [["배웠습니다|", "만"], ["저는", "나는"], ["문단입니다", "문단이다"]]
    for (const [old = "", fresh = ""] of cases) {
      const page = begun(true).type(old, fresh)
      const [retained] = page.suggesting.unsaved().put
      assert.match(said(retained?.parts ?? []), new RegExp(`→.*${fresh}`), "the browser keeps it")
      assert.match(page.send().join(), new RegExp(`new-\\d+/null: .*→.*${fresh}`), "it is sent")
      assert.deepEqual([page.suggesting.isDirty, page.suggesting.unsaved()], [false, { put: [], withdraw: [] }])
    }
    const all = begun(true)
    for (const [old = "", fresh = ""] of cases) all.type(old, fresh)
    assert.match(all.send().join(), /→나는.*배웠습니다만.*→문단이다/s)
    const unsent = begun(false)
    assert.match(unsent.suggesting.unsaved().put.map(({ parts }) => said(parts)).join(), /→.*유통을/, "words that the server does not have stay")
    assert.match(unsent.send().join(), /→.*유통을/)
  })
}

test("words that the reviewer typed in a suggestion before the writer's edit of it arrived are sent", () => {
  const page = new Page("저는 물류를 배웠습니다.").type("물류를", "유통을")
  page.send()
  page.type("유통|", "업").write("류", "품")
  assert.match(page.view, /유통업을/)
  assert.match(page.send().join(), /^new-1\/1: 물품를→.*유통업을/)
})

test("new words right beside an edited suggestion leave it, and words in it take it over", () => {
  const page = new Page("저는 물류를 배웠습니다.", stored("one", part(3, "물류를", "유통을"))).write("류", "품")
  page.type("저는 |", "아주 ")
  assert.deepEqual(page.send(), ["new-1/null: →아주 "])
  assert.equal(page.suggesting.stateOf("one"), "hidden")
  page.write("품", "류")
  assert.equal(page.view, "저는 아주 유통을 배웠습니다.")
  assert.deepEqual(page.send(), ["one/1: 물류를→유통을"])
  page.write("류", "품").type("물품를", "상품을")
  assert.match(page.send().join(), /^new-1\/1: .*→.*상품을|^one\/2: .*→.*상품을/)
})

test("one of two edited suggestions beside new words is taken over, and a move with an edited half leaves the view", () => {
  const page = new Page("the big dog ran", stored("one", part(4, "big", "huge")), stored("two", part(8, "dog", "cow")))
  page.write("b|i", "a").write("d|og", "x")
  assert.equal(page.view, "the bag dx ran")
  assert.deepEqual(page.type("bag dx", "cat").send(), ["one/1: bag dx→cat", "without two"])

  const sentence = "저는 팀을 이끌어 매출을 두 배로 늘렸습니다."
  const moved = new Page(`${sentence} 그 뒤.\n둘째.`, stored("move", part(0, `${sentence} `, ""), part(sentence.length + 9, "", ` ${sentence}`)))
  assert.equal(moved.view, `그 뒤.\n둘째. ${sentence}`)
  moved.write("매출", "수익")
  assert.equal(moved.view, `${sentence.replace("매출", "수익")} 그 뒤.\n둘째.`)
  assert.deepEqual(moved.type("그 뒤", "그 후").send(), ["new-1/null: 뒤→후"])
})

test("a suggestion that the server refused counts as unsaved, and is cut on the text of now", () => {
  const page = new Page("저는 물류를 배웠습니다.").type("물류를", "유통을")
  page.collect()
  page.write("류", "품")
  page.suggesting.answered([{ id: "new-1", state: "refused", reason: "quote-changed" }])
  assert.match(said(page.suggesting.unsaved().put[0]?.parts ?? []), /유통을/)
  assert.match(page.send().join(), /물품를→.*유통을/)
})

test("words of an acceptance whose text never arrives as it was are kept as unsaved, and a key sends them", () => {
  const page = new Page("the big dog", stored("one", part(4, "big", "huge")))
  page.dispatch(page.suggesting.decided("one", "accepted"))
  assert.deepEqual(page.suggesting.unsaved().put.map(({ parts }) => said(parts)), ["big→huge"])
  assert.deepEqual(page.collect().found, [])
  assert.match(page.type("dog", "cow").send().join(), /big dog→huge cow/)
})

test("the writer deletes the quote or the letters around a gap: the words leave the view", () => {
  const page = new Page("one big dog\ntwo", stored("one", part(4, "big", "huge")), stored("gap", part(11, "", "!")))
  page.write("one big dog\n", "")
  assert.equal(page.view, "two")
  assert.deepEqual([...page.suggesting.orphans].sort(), ["gap", "one"])
  assert.deepEqual([page.ids, page.send()], [[], []])
})

test("words that the server does not have stay, whatever the writer deletes", () => {
  const page = new Page("one big dog\ntwo").type("big", "huge")
  page.write("one big dog\n", "")
  assert.equal(page.view, "hugetwo")
  assert.deepEqual(page.send(), ["new-1/null: two→hugetwo"])
})

test("the writer types the suggested words letter by letter: the text says so already", () => {
  const page = new Page("a good day", stored("gap", part(2, "", "very ")))
  let last = "a |"
  for (const letter of "very ") {
    page.write(last, letter)
    last = `${last.slice(0, -1)}${letter}|`
  }
  assert.equal(page.view, "a very good day")
  assert.deepEqual(page.send(), ["without gap"])
})

test("the writer replaces the letter behind a gap: the page anchors the same words anew", () => {
  const page = new Page("the cat", stored("gap", part(4, "", "big ")))
  page.write("cat", "dog")
  assert.equal(page.view, "the big dog")
  assert.deepEqual(page.send(), ["gap/1: →big "])
  assert.deepEqual(page.send(), [])
})

test("a suggestion that overlaps an older one is hidden, and new words there take it over", () => {
  const page = new Page("the big dog", stored("old", part(4, "big", "huge")), stored("form", part(4, "big dog", "cat")))
  assert.equal(page.view, "the huge dog")
  assert.deepEqual(page.suggesting.hidden.map(({ id }) => id), ["form"])
  assert.deepEqual(page.type("dog", "cow").send(), ["old/1: big dog→huge cow", "without form"])
})

test("words that the server refused beside a suggestion that opens again replace it", () => {
  const page = new Page("the big dog").type("big", "huge")
  page.collect()
  page.suggesting.answered([{ id: "new-1", state: "refused", reason: "overlaps" }])
  page.dispatch(page.suggesting.opened(stored("again", part(4, "big dog", "cat"))))
  assert.equal(page.suggesting.stateOf("again"), "hidden")
  page.type("dog", "dogs").type("dogs", "dog")
  assert.deepEqual(page.send(), ["new-1/null: big→huge", "without again"])
})

test("an older suggestion whose quote came back takes the place of a younger one, as the server accepts them", () => {
  const since = (/** @type {Suggestion} */ suggestion, /** @type {string} */ at) => ({ ...suggestion, since: at })
  const younger = since(stored("younger", part(4, "big", "huge")), "2026-11-27T09:00:01.5Z")
  const older = since(stored("older", part(4, "big dog", "cat")), "2026-11-27T09:00:01Z")
  const page = new Page("the big dog", younger)
  page.dispatch(page.suggesting.opened(older))
  assert.deepEqual([page.view, page.suggesting.stateOf("younger"), page.send()], ["the cat", "hidden", []])
  assert.equal(new Page("the big dog", older, younger).view, "the cat")
  page.dispatch(page.suggesting.decided("older", "rejected"))
  page.dispatch(page.suggesting.opened(younger))
  assert.equal(page.view, "the huge dog")
})

test("a suggestion that opens with the words that the reviewer typed meanwhile is theirs", () => {
  const page = new Page("the big dog").type("big", "huge")
  page.dispatch(page.suggesting.opened(stored("one", part(4, "big", "huge"))))
  assert.deepEqual([page.view, page.send(), page.ids], ["the huge dog", [], ["one: big→huge"]])
  assert.deepEqual(page.type("huge", "tiny").send(), ["one/1: big→tiny"])
})

test("the undo of an acceptance brings the older of two overlapping suggestions back, also when the younger one is there first", () => {
  const one = { ...stored("one", part(3, "cyan", "blue")), since: "2026-11-26T10:00:00Z" }
  const two = { ...stored("two", part(3, "cyan.", "red")), since: "2026-11-26T11:00:00Z" }
  const page = new Page("by cyan.", one, two)
  assert.equal(page.view, "by blue.")
  page.write("cyan", "blue")
  page.dispatch(page.suggesting.decided("one", "accepted"))
  page.write("blue", "cyan")
  page.dispatch(page.suggesting.opened({ ...one, version: 3 }))
  assert.equal(page.view, "by blue.")
  assert.ok(page.send().every((sent) => !sent.startsWith("without")))
})

test("the suggestion of a form enters the view, and the reviewer amends it like any other", () => {
  const page = new Page("the big dog")
  page.dispatch(page.suggesting.opened(stored("form", part(4, "big dog", "huge dog"))))
  assert.equal(page.view, "the huge dog")
  assert.deepEqual(page.suggesting.overlay.pieces().map(({ kind }) => kind), ["inserted", "deleted"], "trimmed to the difference")
  assert.deepEqual(page.type("huge", "old").send(), ["form/1: big→old"])
  assert.equal(page.suggesting.at(5)?.id, "form")
  assert.equal(page.suggesting.at(0), null)
  page.dispatch(page.suggesting.remove("form"))
  assert.deepEqual([page.view, page.send()], ["the big dog", ["without form"]])
})

test("a lost answer repeats the batch, and an event may bring the version before", () => {
  const page = new Page("the big dog")
  page.type("big", "huge").collect()
  assert.deepEqual(page.collect().found, [], "one batch is on its way")
  page.suggesting.failed()
  assert.deepEqual(page.collect().found, ["new-1/null: big→huge"])
  page.suggesting.failed()
  page.dispatch(page.suggesting.opened(stored("new-1", part(4, "big", "huge"))))
  assert.deepEqual(page.send(), [])
  page.type("huge", "big").collect()
  page.suggesting.failed()
  assert.deepEqual(page.send(), ["without new-1"])
})

test("the writer accepts one of two suggestions that the page merges meanwhile: the other is cut on the text of now", () => {
  const page = new Page("the big dog ran", stored("one", part(4, "big", "huge")), stored("two", part(8, "dog", "cow")))
  page.type("cow", "cows").collect()
  page.write("dog", "cow").dispatch(page.suggesting.decided("two", "accepted"))
  page.suggesting.answered([{ id: "one", state: "refused", reason: "quote-changed" }, { id: "two", state: "refused", reason: "decided" }])
  assert.equal(page.view, "the huge cows ran")
  assert.deepEqual(page.send(), ["one/1: big cow→huge cows"])
})

test("an undone suggestion whose batch had no answer is withdrawn, whether the server has it or not", () => {
  const page = new Page("the big dog").type("big", "huge")
  page.collect()
  page.suggesting.failed()
  assert.deepEqual(page.type("huge", "big").send(), ["without new-1"])
  assert.deepEqual([page.suggesting.isDirty, page.suggesting.unsaved()], [false, { put: [], withdraw: [] }])
})

test("an event about a suggestion that was withdrawn since changes nothing", () => {
  const page = new Page("the big dog", stored("one", part(4, "big", "huge")))
  assert.deepEqual(page.type("huge", "big").send(), ["without one"])
  page.dispatch(page.suggesting.opened(stored("one", part(4, "big", "huge"))))
  assert.deepEqual([page.view, page.ids, page.suggesting.hidden], ["the big dog", [], []])
})

test("a corrected text pasted over the old one shows and sends only the words that differ", () => {
  const page = new Page("저는 팀을 이끌었고 결과를 냈습니다.\n둘째 문단은 그대로다.\n끝.")
  page.type(page.view, "저는 팀을 이끌어 성과를 냈습니다.\n둘째 문단은 그대로다.\n마침.")
  assert.deepEqual(page.send(), ["new-1/null: 이끌었고 결과를→이끌어 성과를", "new-2/null: 끝→마침"])
  const shown = page.suggesting.overlay.pieces().map((piece) => (piece.kind === "deleted" ? piece.text : ""))
  assert.deepEqual(shown.filter((text) => text !== ""), ["었고", "결", "끝"])
})

test("words that the server refused for a newer version are sent again once that version came, before the answer or after it", () => {
  const newer = { ...stored("one", part(4, "big", "huge")), version: 4 }
  const refused = { id: "one", state: /** @type {const} */ ("refused"), reason: "version", version: 4 }
  for (const isEventFirst of [true, false]) {
    const page = new Page("the big dog", stored("one", part(4, "big", "huge"))).type("huge", "tiny")
    page.collect()
    if (isEventFirst) page.dispatch(page.suggesting.opened(newer))
    page.suggesting.answered([refused])
    if (!isEventFirst) page.dispatch(page.suggesting.opened(newer))
    assert.deepEqual([page.view, page.send(), page.send()], ["the tiny dog", ["one/4: big→tiny"], []])
  }
})

test("a refused suggestion waits for a change of its paragraph", () => {
  const page = new Page("the big dog\nthe cat")
  page.type("big", "huge").collect()
  page.suggesting.answered([{ id: "new-1", state: "refused", reason: "full" }])
  assert.equal(page.suggesting.isDirty, false)
  assert.deepEqual(page.collect().found, [])
  assert.deepEqual(page.suggesting.unsaved().put.map(({ id }) => id), ["new-1"])
  page.type("dog", "cow")
  assert.deepEqual(page.send(), ["new-1/null: big dog→huge cow"])
  assert.deepEqual(page.suggesting.unsaved(), { put: [], withdraw: [] })
})

test("an id that was withdrawn is spent: the words get a new one", () => {
  const page = new Page("the big dog").type("big", "huge")
  page.collect()
  page.suggesting.answered([{ id: "new-1", state: "refused", reason: "decided" }])
  assert.deepEqual(page.send(), ["new-2/null: big→huge"])
  assert.equal(page.suggesting.isDirty, false)
})

test("a batch has at most 200 items, and the rest follows", () => {
  const page = new Page("a b\n".repeat(250))
  for (let line = 0; line < 250; line++) {
    const edit = ChangeSet.of({ from: 4 * line, to: 4 * line + 1, insert: "x" }, page.editor.length)
    page.dispatch(edit)
    page.suggesting.own(edit)
  }
  assert.equal(page.suggesting.unsaved().put.length, 250)
  assert.equal(page.send().length, 200)
  assert.equal(page.send().length, 50)
})

test("an edit of the writer can be seen before it is applied", () => {
  const page = new Page("the big dog", stored("one", part(4, "big", "huge")))
  const edit = replaced("the big dog", "dog", "cat")
  assert.equal(page.suggesting.viewEdit(edit).apply(page.editor).toString(), "the huge cat")
  assert.ok(page.suggesting.viewEdit(replaced("the big dog", "big", "huge")).empty)
  assert.equal(page.view, "the huge dog")
})
