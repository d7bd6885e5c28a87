// @ts-check
/** The tests with stock clients in a run without `--all`, as in `tests/browser/roads.mjs`: the older client and the generators run with `--all`. */

/** @type {Readonly<Record<string, readonly string[]>>} */
export const ROADS = { client: [""], clients: ["3.1.0: ", "quiet clients stay"], deployment: [""], host_backend: [""], papers: [""], positions: [""], proxies: [""], readme: [""], session: [""] }
