// @ts-check
/**
 * How a page that is loaded again comes back to its seat: by the secret that it was granted with.
 *
 * The secret is in the tab's storage from when a page goes until the next one comes, and no longer.
 * A tab that is duplicated takes a copy of that storage with it, and two tabs with one secret would
 * take the seat from each other without anybody having asked for it.
 */

const prefix = "galley.resume."

/** Leaves the secret for the page that comes next in this tab. @param {string} seat @param {string} secret */
export function leaveBehind(seat, secret) {
  try {
    if (secret !== "") sessionStorage.setItem(prefix + seat, secret)
  } catch {
    // Without storage the next page knocks, which takes a second longer.
  }
}

/** What the page before left, which nobody finds again. @param {string} seat @returns {string} */
export function pickUp(seat) {
  try {
    const secret = sessionStorage.getItem(prefix + seat) ?? ""
    sessionStorage.removeItem(prefix + seat)
    return secret
  } catch {
    return ""
  }
}
