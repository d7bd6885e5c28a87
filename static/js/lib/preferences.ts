/**
 * Small things a browser keeps between visits (language, appearance, a target), and a tab until it closes.
 *
 * Storage may be switched off or full; then the page works and forgets.
 */

const prefix = "galley."

export function preference(key: string): string | null {
  try {
    return globalThis.localStorage?.getItem(prefix + key) ?? null
  } catch {
    return null
  }
}

/** @param value `null` forgets it */
export function setPreference(key: string, value: string | null) {
  try {
    if (value === null) localStorage.removeItem(prefix + key)
    else localStorage.setItem(prefix + key, value)
  } catch {
    // Nothing that is kept here is worth an error.
  }
}

/** Stores a text in this tab. */
export function storeInTab(key: string, text: string) {
  try {
    sessionStorage.setItem(key, text)
  } catch {
    // Nothing else can keep it: an invite is opened once more.
  }
}

/** The text that the tab stores, only once. */
export function takeInTab(key: string) {
  try {
    const text = sessionStorage.getItem(key) ?? ""
    sessionStorage.removeItem(key)
    return text
  } catch {
    return ""
  }
}
