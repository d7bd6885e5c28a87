// @ts-check
/** Light, dark, or as the system has it. The choice is kept; `pre_paint.js` applies it on load. */

import { setPreference, preference } from "./preferences.js"

/** @typedef {"auto" | "light" | "dark"} Theme */

/** @returns {Theme} */
export function theme() {
  const chosen = preference("theme")
  return chosen === "light" || chosen === "dark" ? chosen : "auto"
}

/** @param {Theme} chosen */
export function useTheme(chosen) {
  setPreference("theme", chosen === "auto" ? null : chosen)
  if (chosen === "auto") delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = chosen
}
