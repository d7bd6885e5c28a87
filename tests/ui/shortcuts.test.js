// @ts-check
/** Shortcuts by key code, on every keyboard layout. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { commandOf } from "../../static/js/desk/shortcuts.ts"

/** @param {Partial<KeyboardEvent>} given */
const press = (given) => ({ code: "", key: "", altKey: false, ctrlKey: false, metaKey: false, shiftKey: false, ...given })

test("shortcuts match the key code and not the typed character", () => {
  assert.equal(commandOf(press({ code: "KeyM", key: "ㅡ", altKey: true, ctrlKey: true }), true), "comment")
  assert.equal(commandOf(press({ code: "KeyM", key: "µ", altKey: true, metaKey: true }), true), "comment")
  assert.equal(commandOf(press({ code: "KeyS", key: "ㄴ", altKey: true, ctrlKey: true }), true), "mode")
  assert.equal(commandOf(press({ code: "KeyA", key: "å", altKey: true }), false), "accept")
  assert.equal(commandOf(press({ code: "ArrowDown", key: "ArrowDown", altKey: true }), true), "next")
})

test("shortcuts ignore keys typed into a field", () => {
  assert.equal(commandOf(press({ code: "KeyA", key: "å", altKey: true }), true), null)
  assert.equal(commandOf(press({ code: "Slash", key: "?", shiftKey: true }), true), null)
  assert.equal(commandOf(press({ code: "Slash", key: "?", shiftKey: true }), false), "help")
  assert.equal(commandOf(press({ code: "KeyA", key: "a", ctrlKey: true }), true), null)
})

test("Ctrl+/ lists the keys from anywhere, on every layout", () => {
  for (const typing of [true, false]) {
    assert.equal(commandOf(press({ code: "Slash", key: "/", ctrlKey: true }), typing), "help")
    assert.equal(commandOf(press({ code: "Digit7", key: "/", metaKey: true, shiftKey: true }), typing), "help")
  }
})

test("find and print are the page's own, also while typing", () => {
  assert.equal(commandOf(press({ code: "KeyF", key: "ㄹ", ctrlKey: true }), true), "find")
  assert.equal(commandOf(press({ code: "KeyP", key: "p", ctrlKey: true }), false), "print")
  assert.equal(commandOf(press({ code: "KeyF", key: "f", ctrlKey: true, shiftKey: true }), true), null)
})

test("Escape moves the focus to the text from anywhere", () => {
  assert.equal(commandOf(press({ key: "Escape", code: "Escape" }), true), "text")
})

test("the keys that decide in the text are read by their place, also while typing", () => {
  for (const typing of [true, false]) {
    assert.equal(commandOf(press({ code: "Enter", key: "Enter", altKey: true }), typing), "acceptNext")
    assert.equal(commandOf(press({ code: "Enter", key: "Enter", altKey: true, shiftKey: true }), typing), "rejectNext")
    assert.equal(commandOf(press({ code: "KeyI", key: "ㅑ", altKey: true }), typing), "say")
    assert.equal(commandOf(press({ code: "KeyV", key: "ㅍ", altKey: true, ctrlKey: true }), typing), "view")
    assert.equal(commandOf(press({ code: "KeyA", key: "ㅁ", altKey: true, metaKey: true }), typing), "acceptAll")
    assert.equal(commandOf(press({ code: "F6", key: "F6" }), typing), "region")
    assert.equal(commandOf(press({ code: "Enter", key: "Enter" }), typing), null)
    assert.equal(commandOf(press({ code: "KeyV", key: "v", ctrlKey: true }), typing), null)
  }
})
