// @ts-check
/** The IME composes Hangul syllable by syllable, and no update may interrupt a composition. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { assertUntouched, inputMethod, watchComposed } from "./composing.mjs"
import { until } from "./harness.mjs"
import { bothSeated, withGalley } from "./support.mjs"
import { suggest } from "./typed.mjs"

withGalley()

/** The text as the server has it, once it has all. @param {import("./harness.mjs").User} user */
async function stored(user) {
  await user.seated()
  return user.stored()
}

test("a comment on the line of an IME composition leaves the composition whole", async () => {
  const { writer, reviewer } = await bothSeated("저는 물류를 좋아합니다.\n다음 줄.")
  await writer.page.locator(".cm-content").click()
  await writer.page.keyboard.press("Control+Home")
  await writer.page.keyboard.press("End")
  const ime = await inputMethod(writer)
  await writer.page.keyboard.insertText(" ")
  await ime.compose("ㅎ", "하", "한")
  await watchComposed(writer)

  // The reviewer comments on this line and syllable, and has the caret in it.
  await reviewer.waitForText("저는 물류를 좋아합니다. 한\n다음 줄.")
  await reviewer.review("물류를", { body: "여기요" })
  await reviewer.review("좋아합니다. 한", { body: "더 세게" })
  await reviewer.select("한")
  await writer.card("여기요").waitFor()
  await writer.card("더 세게").waitFor()
  await assertUntouched(writer)

  await ime.compose("한ㄱ", "한구", "한국")
  await ime.commit("한국")
  await writer.page.locator(".passage").first().waitFor()
  await ime.compose("ㅇ", "이", "인")
  await ime.commit("인")

  const wanted = "저는 물류를 좋아합니다. 한국인\n다음 줄."
  await writer.waitForText(wanted)
  await reviewer.waitForText(wanted)
  assert.equal(await stored(writer), wanted)
  const passages = await writer.page.locator(".passage").allTextContents()
  assert.equal(passages.join(""), "물류를좋아합니다. 한", "the deferred update is drawn now")
})

test("a suggestion accepted elsewhere does not shift a later IME composition", async () => {
  const { writer, reviewer } = await bothSeated("앞 문장입니다.\n뒤 문장")
  await reviewer.review("앞 문장", { suggestion: "아주 긴 앞 문장", body: "길게" })
  await writer.card("길게").click()
  await writer.page.keyboard.press("Alt+a")
  await writer.waitForText("아주 긴 앞 문장입니다.\n뒤 문장")
  await writer.toEnd()
  const ime = await inputMethod(writer)
  await ime.compose("ㅇ", "이", "잉")
  await ime.compose("이야")
  await ime.commit("이야")
  await writer.waitForText("아주 긴 앞 문장입니다.\n뒤 문장이야")
  await reviewer.waitForText("아주 긴 앞 문장입니다.\n뒤 문장이야")
})

test("a cancelled IME composition leaves no text", async () => {
  const { writer, reviewer } = await bothSeated("가나다")
  await writer.toEnd()
  const ime = await inputMethod(writer)
  await ime.compose("ㄹ", "라")
  await ime.compose("")
  await writer.waitForText("가나다")
  await reviewer.waitForText("가나다")
  assert.equal(await stored(writer), "가나다")
})

/** Selections inside the quote of a suggestion of three lines, and the text without them. */
const INSIDE = { q: "하나 n\np\n|\nred 둘", "q\n": "하나 n\np\n|red 둘", "\nq": "하나 n\np|\nred 둘", "p\nq": "하나 n\n|\nred 둘" }
for (const [selected, left] of Object.entries(INSIDE)) {
  test(`a syllable that replaces ${JSON.stringify(selected)} inside a suggestion's quote is composed whole`, async () => {
    const text = "하나 n\np\nq\nred 둘"
    const { writer, reviewer } = await bothSeated(text)
    await suggest(reviewer, text, { changes: [{ quote: "n\np\nq\nred", text: "사 tred" }] }, { changes: [{ quote: "하나", text: "하나하나" }] })
    await writer.page.locator("ins.passage-new", { hasText: "하나" }).waitFor()
    await writer.page.locator("#cards .card").nth(1).waitFor()
    const from = text.indexOf(selected)
    await writer.page.locator(".cm-content").click()
    await writer.page.evaluate(([from, to]) => {
      const { view } = /** @type {any} */ (document.querySelector(".cm-content")).cmTile.root
      const [start, end] = [view.domAtPos(from), view.domAtPos(to)]
      getSelection()?.setBaseAndExtent(start.node, start.offset, end.node, end.offset)
    }, [from, from + selected.length])
    // The editor hears of a selection by an event, and no user composes before it.
    const hasSelection = () => writer.page.evaluate(([from, to]) => {
      const { main } = /** @type {any} */ (document.querySelector(".cm-content")).cmTile.root.view.state.selection
      return main.from === from && main.to === to
    }, [from, from + selected.length])
    await until(hasSelection, "the editor has the selection")
    const ime = await inputMethod(writer)
    for (const syllable of [["ㅇ", "유"], ["ㅌ", "토", "통"]]) {
      await ime.compose(...syllable)
      await ime.commit(syllable.at(-1) ?? "")
    }
    await writer.waitForText(left.replace("|", "유통"))
    assert.equal(await stored(writer), left.replace("|", "유통"))
  })
}

test("a noun is composed over, and then its particle behind the struck words", async () => {
  const { writer, reviewer } = await bothSeated("저는 물류가 좋습니다.")
  await reviewer.page.locator(".cm-content:not([aria-readonly=true])").waitFor()
  const ime = await inputMethod(reviewer)
  await reviewer.select("물류")
  await ime.compose("ㅇ", "유")
  await ime.commit("유")
  await ime.compose("ㅌ", "토", "통")
  await ime.commit("통")
  await reviewer.page.locator(".passage-old", { hasText: "물류" }).waitFor()
  await reviewer.page.keyboard.press("Shift+ArrowRight")
  await ime.compose("ㅇ", "이")
  await ime.commit("이")
  await reviewer.waitForText("저는 유통이 좋습니다.")
  await writer.page.locator("ins.passage-new", { hasText: /^유통이$/ }).waitFor()
  const accepted = () => writer.stored("?view=accepted")
  await until(async () => (await accepted()) === "저는 유통이 좋습니다.", "the whole syllable is stored", accepted)
  await reviewer.page.reload()
  await reviewer.waitForText("저는 유통이 좋습니다.")
})

test("a comment is composed while the text above it changes", async () => {
  const { writer, reviewer } = await bothSeated("첫 줄.\n둘째 줄입니다.")
  await reviewer.select("둘째")
  await reviewer.page.keyboard.press("Control+Alt+m")
  const ime = await inputMethod(reviewer)
  await ime.compose("ㅈ", "조", "좋")
  await writer.page.locator(".cm-content").click()
  await writer.page.keyboard.press("Control+Home")
  await writer.page.keyboard.type("새 ")
  await reviewer.waitForText("새 첫 줄.\n둘째 줄입니다.")
  await ime.commit("좋아요")
  assert.equal(await reviewer.page.locator(".review-form textarea:not(.prose)").inputValue(), "좋아요")
  await reviewer.page.keyboard.press("Control+Enter")
  await writer.card("좋아요").waitFor()
  await writer.page.locator(".passage", { hasText: "둘째" }).waitFor()
})
