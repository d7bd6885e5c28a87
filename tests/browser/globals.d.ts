/** A module of `static/js/lib` in a page of the tests (harness.mjs). */
declare function source(name: "announce" | "api" | "i18n" | "notify_api" | "offers_api" | "partners_api"): Promise<any>

/** The editor of a page without a server (editor_alone.page.mjs). */
declare var alone: any
/** The part of the fuzz in its pages (fuzz_page.mjs). */
declare const fuzz: import("./fuzz_page.mjs").Fuzz
