// @ts-check
/** An input method, as the browser sees one, and the node in which it composes. */

import assert from "node:assert/strict"

import { drawn, timersRun } from "./harness.mjs"

/** @typedef {import("./harness.mjs").User} User */

/** Longer than each timer with which the page draws or sends what changed, in ms. */
const LONGER_THAN_DRAWING = 700

/** @param {User} user */
export async function inputMethod({ page }) {
  const session = await page.context().newCDPSession(page)
  return {
    /** The texts of the composition, one after the other. @param {string[]} texts */
    async compose(...texts) {
      for (const text of texts) await session.send("Input.imeSetComposition", { text, selectionStart: text.length, selectionEnd: text.length })
    },
    /** The composition ends with this. @param {string} text */
    commit: (text) => session.send("Input.insertText", { text }),
  }
}

/** Watches the node in which the input method composes. @param {User} user */
export const watchComposed = ({ page }) =>
  page.evaluate(() => {
    const node = getSelection()?.focusNode
    const composed = { node, parent: node?.parentNode, moved: false }
    Object.assign(globalThis, { composed })
    new MutationObserver(() => (composed.moved = true)).observe(/** @type {Node} */ (composed.parent), { childList: true })
  })

/** Holds that the node stays, also when the page has drawn all that it knows. @param {User} user */
export async function assertUntouched(user) {
  await timersRun(user, LONGER_THAN_DRAWING)
  await drawn(user)
  const isUntouched = await user.page.evaluate(() => {
    const { node, parent, moved } = Reflect.get(globalThis, "composed")
    return !moved && node.parentNode === parent && node === getSelection()?.focusNode
  })
  assert.ok(isUntouched, "the node of the composition stayed where it was")
}
