/**
 * How a reloaded page resumes its seat: by the resume secret of its grant.
 *
 * The secret is in the tab's storage from when a page goes until the next one comes, and no longer.
 * A tab that is duplicated takes a copy of that storage with it, and two tabs with one secret would
 * take the seat from each other without a request of the user.
 */

import { storeInTab, takeInTab } from "../lib/preferences.ts"

const prefix = "galley.resume."

/** Leaves the secret for the page that comes next in this tab. */
export const storeResumeSecret = (seat: string, secret: string) => storeInTab(prefix + seat, secret)

/**
 * Takes the previous page's secret out of the storage. Without it the claim waits for a liveness probe: up to a second longer.
 */
export const takeResumeSecret = (seat: string) => takeInTab(prefix + seat)
