// @ts-check
/**
 * How a reloaded page resumes its seat: by the resume secret of its grant.
 *
 * The secret is in the tab's storage from when a page goes until the next one comes, and no longer.
 * A tab that is duplicated takes a copy of that storage with it, and two tabs with one secret would
 * take the seat from each other without a request of the user.
 */

const prefix = "galley.resume."

/** Leaves the secret for the page that comes next in this tab. @param {string} seat @param {string} secret */
export function storeResumeSecret(seat, secret) {
  try {
    if (secret !== "") sessionStorage.setItem(prefix + seat, secret)
  } catch {
    // Without storage the next page's claim waits for a liveness probe: up to a second longer.
  }
}

/** Takes the previous page's secret out of the storage. @param {string} seat @returns {string} */
export function takeResumeSecret(seat) {
  try {
    const secret = sessionStorage.getItem(prefix + seat) ?? ""
    sessionStorage.removeItem(prefix + seat)
    return secret
  } catch {
    return ""
  }
}
