// @ts-check
/**
 * Random acts of a writer and a reviewer: nothing that was typed is lost or changed.
 *
 *     GALLEY_FUZZ_ACTS=20000 GALLEY_SEED=7 GALLEY_FUZZ_WITHOUT=network,drag node --test tests/browser/fuzz.test.mjs
 */

import { test } from "node:test"

import { playSeed } from "./fuzz.mjs"
import { browser, galley, withGalley } from "./support.mjs"

/** Acts and seed of a run of this file alone. The seed is that of `tests/run` too, which plays the same acts on each machine. */
const ACTS = 200
const SEED = 3

// A held or cut connection lasts for a number of acts, however long a busy machine takes for them.
withGalley({ settings: { GALLEY_SEATS__CLIENT_TIMEOUT: "10m", GALLEY_SEATS__RESUME_GRACE: "10m" } })

test("at each rest of a random writer and a random reviewer, both pages and the server have one text and one acceptance", async () => {
  const seed = Number(process.env.GALLEY_SEED ?? SEED)
  const count = Number(process.env.GALLEY_FUZZ_ACTS ?? ACTS)
  const without = (process.env.GALLEY_FUZZ_WITHOUT ?? "").split(",")
  console.log(`GALLEY_SEED=${seed} GALLEY_FUZZ_ACTS=${count}`)
  await playSeed(browser, galley, { seed, count, without })
})
