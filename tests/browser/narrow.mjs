// @ts-check
/** Whether words are cut off: outside the window, outside a box that hides its overflow, or inside a field that is too narrow. */

import { until } from "./harness.mjs"

/** A phone, and a window of 1280×720 at a zoom of 200 %. */
export const NARROW = [{ width: 360, height: 740 }, { width: 640, height: 360 }]

/** Holds that no word below `root` is cut off. @param {import("./harness.mjs").User} user @param {string} name @param {string} root */
export async function assertWhole({ page }, name, root) {
  /** @type {string[]} */
  let found = []
  await until(async () => (found = await page.locator(root).evaluate(cut)).length === 0, `${name}: no word is cut off`, async () => found.join("\n"))
}

/** Runs in the page. @param {Element} root @returns {string[]} */
function cut(root) {
  const clips = (/** @type {Element} */ element) => getComputedStyle(element).overflowX !== "visible"
  /** @type {string[]} */
  const found = []
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT)
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement
    // A class for screen readers hides its words on purpose, and a label of an address is shortened on purpose.
    if (!parent?.checkVisibility() || parent.closest(".hidden, #address-now, option") || node.nodeValue?.trim() === "") continue
    const range = document.createRange()
    range.selectNodeContents(node)
    const boxes = [...range.getClientRects()]
    const left = Math.min(...boxes.map((box) => box.left))
    const right = Math.max(...boxes.map((box) => box.right))
    const edges = [{ left: 0, right: document.documentElement.clientWidth, of: "the window" }]
    for (let box = /** @type {Element | null} */ (parent); box && box !== document.body; box = box.parentElement) {
      const isButton = box.matches("button, a.button")
      if (!isButton && !clips(box)) continue
      const { left: from, right: to } = box.getBoundingClientRect()
      edges.push({ left: from, right: to, of: box.outerHTML.slice(0, 80) })
    }
    for (const edge of edges) if (left < edge.left - 1 || edge.right + 1 < right) found.push(`“${node.nodeValue}” is outside of ${edge.of}`)
  }
  const pen = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"))
  for (const field of root.querySelectorAll("select, input[placeholder]")) {
    if (!field.checkVisibility()) continue
    const style = getComputedStyle(field)
    pen.font = style.font
    const words = field instanceof HTMLSelectElement ? (field.selectedOptions[0]?.text ?? "") : (field.getAttribute("placeholder") ?? "")
    const arrow = field instanceof HTMLSelectElement ? 20 : 0
    const room = field.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight) - arrow
    if (room < pen.measureText(words).width) found.push(`“${words}” is wider than its field of ${room} px`)
  }
  return found
}
