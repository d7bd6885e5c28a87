/** Lists of rows with a key each (`data-key`), whose buttons name what they do (`data-act`). */

/** Draws a list anew. The focus stays in its row, or goes on to the next one or, from an empty list, elsewhere. */
export function fillRows(list: HTMLElement, rows: HTMLElement[], elsewhere: HTMLElement) {
  const focused = document.activeElement
  const had = focused instanceof HTMLElement && list.contains(focused)
  const [key, act] = had ? [focused.closest("[data-key]")?.getAttribute("data-key"), focused.dataset.act] : []
  const at = [...list.children].findIndex((row) => row.contains(focused))
  list.replaceChildren(...rows)
  if (!had) return
  const row = rows.find((row) => row.dataset.key === key) ?? rows[Math.min(at, rows.length - 1)]
  const next = row?.querySelector(`[data-act=${act}]`) ?? elsewhere
  if (next instanceof HTMLElement) next.focus()
}

/** Moves a lost focus to that button of a list, or elsewhere. */
export function restoreFocus(list: HTMLElement, { key, act }: { key: string, act: string }, elsewhere: HTMLElement) {
  const focused = document.activeElement
  // The browser moves the focus out of a closed dialog at its next frame only.
  if (focused !== document.body && !focused?.closest("dialog:not([open])")) return
  const buttons = list.querySelectorAll(`[data-act=${act}]`) as NodeListOf<HTMLElement>
  const found = [...buttons].find((button) => button.closest("li")?.dataset.key === key)
  const next = found ?? elsewhere
  next.focus()
}
