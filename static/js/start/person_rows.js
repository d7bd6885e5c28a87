// @ts-check
/** Lists of rows with a key each (`data-key`), whose buttons name what they do (`data-act`). */

/**
 * Draws a list anew. The focus stays in its row, or goes on to the next one or, from an empty list, elsewhere.
 *
 * @param {HTMLElement} list
 * @param {HTMLElement[]} rows
 * @param {HTMLElement} elsewhere
 */
export function fillRows(list, rows, elsewhere) {
  const focused = document.activeElement
  const had = focused instanceof HTMLElement && list.contains(focused)
  const [key, act] = had ? [focused.closest("li")?.dataset.key, focused.dataset.act] : []
  const at = [...list.children].findIndex((row) => row.contains(focused))
  list.replaceChildren(...rows)
  if (!had) return
  const row = rows.find((row) => row.dataset.key === key) ?? rows[Math.min(at, rows.length - 1)]
  const next = row?.querySelector(`[data-act=${act}]`) ?? elsewhere
  if (next instanceof HTMLElement) next.focus()
}
