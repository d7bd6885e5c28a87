/**
 * The way to a sign-in and back: the host application's address, and the invite that waits meanwhile.
 *
 * The address to come back to has no fragment: an invite is a key, and the host application would find
 * it in its logs. The tab's own storage keeps it for the page that comes next.
 */

import { storeInTab, takeInTab } from "./preferences.ts"

/** The placeholder for the return address in the host application's address. */
const RETURN = "{return}"
const prefix = "galley.invite."

/**
 * Where the user signs in, with the way back to this page.
 *
 * @param template of the setting `auth.sign_in_url`
 */
export function signInAddress(template: string, { origin, pathname }: { origin: string, pathname: string }) {
  return template.replaceAll(RETURN, encodeURIComponent(origin + pathname))
}

/** Keeps an invite while its user signs in elsewhere. */
export const storeInvite = (link: string, invite: string) => storeInTab(prefix + link, invite)

/** The invite that was kept; only once. */
export const takeInvite = (link: string) => takeInTab(prefix + link)
