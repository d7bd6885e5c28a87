// @ts-check
/**
 * The one script that runs before the page is drawn: without it a dark page would flash white.
 * Classic, not a module, because modules wait. `theme.js` does the rest.
 */
;(() => {
  const root = document.documentElement
  try {
    const theme = localStorage.getItem("galley.theme")
    if (theme === "light" || theme === "dark") root.dataset.theme = theme
    const language = localStorage.getItem("galley.language") ?? navigator.language
    root.lang = language.startsWith("ko") ? "ko" : "en"
  } catch {
    // Storage is switched off: the system's appearance, then.
  }
})()
