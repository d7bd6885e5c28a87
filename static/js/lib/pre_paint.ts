/**
 * The one script that runs before the page is drawn: without it a dark page would flash white.
 * Classic, not a module, because modules wait. `theme.ts` does the rest.
 */
;(() => {
  const root = document.documentElement
  try {
    const theme = localStorage.getItem("galley.theme")
    if (theme === "light" || theme === "dark") root.dataset.theme = theme
    // As `choose` in `i18n.ts`.
    const spoken = [localStorage.getItem("galley.language") ?? "", ...navigator.languages]
    root.lang = spoken.map((tag) => tag.toLowerCase().split("-")[0]).find((tag) => tag === "en" || tag === "ko") ?? "en"
  } catch {
    // Storage is switched off: the system's appearance, then.
  }
  // The bundle's file of the language: `i18n.ts` imports it only after several modules arrived.
  const sentences = (document.currentScript as HTMLElement | null)?.dataset[root.lang]
  if (sentences) document.head.append(Object.assign(document.createElement("link"), { rel: "modulepreload", href: sentences }))
})()
