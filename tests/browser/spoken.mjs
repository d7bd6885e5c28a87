// @ts-check
/**
 * The sentences that a page says to a screen reader. A live region speaks while the accessibility tree has it:
 * it is rendered, and inside the modal dialog if one is open.
 */

import { until } from "./harness.mjs"

/** Records what the page says from its next load on. @param {import("./harness.mjs").User} user */
export async function listen({ page }) {
  await page.addInitScript(() => {
    /** @type {string[]} */
    const spoken = []
    Object.assign(globalThis, { spoken })
    const regionOf = (/** @type {Node} */ node) =>
      (node instanceof Element ? node : node.parentElement)?.closest("[role=status], [role=alert], [aria-live=polite], [aria-live=assertive]")
    const isHeard = (/** @type {Element} */ region) => {
      const modal = [...document.querySelectorAll("dialog:modal")].at(-1)
      return region.checkVisibility() && (modal === undefined || modal.contains(region))
    }
    const record = (/** @type {MutationRecord[]} */ changes) => {
      const inserted = changes.flatMap(({ addedNodes }) => [...addedNodes])
      const alerts = inserted.flatMap((node) => (node instanceof Element ? [...node.querySelectorAll("[role=alert]")] : []))
      const regions = [...changes.map(({ target }) => regionOf(target)), ...inserted.map(regionOf), ...alerts]
      for (const region of new Set(regions)) {
        const text = region?.textContent?.trim() ?? ""
        if (region && text !== "" && isHeard(region)) spoken.push(text)
      }
    }
    new MutationObserver(record).observe(document, { childList: true, characterData: true, subtree: true })
  })
  await page.reload()
}

/** @param {import("./harness.mjs").User} user @param {string} sentence */
export async function hears({ page }, sentence) {
  const spoken = () => page.evaluate(() => /** @type {string[]} */ (Reflect.get(globalThis, "spoken")))
  await until(async () => (await spoken()).some((text) => text.includes(sentence)), `“${sentence}” is spoken`, async () => (await spoken()).join("\n"))
}
