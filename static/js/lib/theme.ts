/** Light, dark, or as the system has it. The choice is kept; `pre_paint.ts` applies it on load. */

import { setPreference, preference } from "./preferences.ts"

export type Theme = "auto" | "light" | "dark"

export function theme(): Theme {
  const chosen = preference("theme")
  return chosen === "light" || chosen === "dark" ? chosen : "auto"
}

export function useTheme(chosen: Theme) {
  setPreference("theme", chosen === "auto" ? null : chosen)
  if (chosen === "auto") delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = chosen
}
