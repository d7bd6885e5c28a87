// @ts-check
/**
 * Small things a browser keeps between visits (language, appearance, a target), and a tab until it closes.
 *
 * Storage may be switched off or full; then the page works and forgets.
 */

const prefix = "galley."

/** @param {string} key @returns {string | null} */
export function preference(key) {
  try {
    return globalThis.localStorage?.getItem(prefix + key) ?? null
  } catch {
    return null
  }
}

/** @param {string} key @param {string | null} value `null` forgets it */
export function setPreference(key, value) {
  try {
    if (value === null) localStorage.removeItem(prefix + key)
    else localStorage.setItem(prefix + key, value)
  } catch {
    // Nothing that is kept here is worth an error.
  }
}

/** Stores a text in this tab. @param {string} key @param {string} text */
export function storeInTab(key, text) {
  try {
    sessionStorage.setItem(key, text)
  } catch {
    // Nothing else can keep it: an invite is opened once more.
  }
}

/** The text that the tab stores, only once. @param {string} key */
export function takeInTab(key) {
  try {
    const text = sessionStorage.getItem(key) ?? ""
    sessionStorage.removeItem(key)
    return text
  } catch {
    return ""
  }
}
