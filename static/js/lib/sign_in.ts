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

/** Whether the page stands in a frame of another page. */
const isFramed = () => window.top !== window.self

/** Whether the address is the server's own way to a provider, which shows itself in no frame. */
const isOfProvider = (template: string) => template.includes("/api/auth/oidc/start?")

/** Whether the sign-in opens a window of its own. */
export const opensWindow = (template: string) => isFramed() && isOfProvider(template)

/** Lets a link lead to the sign-in and back to this page, or to another path of it. */
export function leadToSignIn(go: HTMLAnchorElement, template: string, pathname = location.pathname) {
  go.href = signInAddress(template, { origin: location.origin, pathname })
  if (opensWindow(template)) Object.assign(go, { target: "_blank", rel: "noopener" })
}

/** Where a user goes who has signed out here: to the provider, which ends its own session. No frame shows it. */
export const afterSignOut = (address: string | null) => (address === null || isFramed() ? "/" : address)

/** Why a sign-in has failed, as the server names it in the address of the start page. */
const FAULTS = ["cookie", "guest", "denied", "refused", "away", "invalid", "nameless"] as const

/** Takes the fault of the last sign-in out of the address, with the path that it should have led to. */
export function takeFault() {
  const query = new URLSearchParams(location.search)
  const fault = FAULTS.find((name) => name === query.get("sign_in"))
  if (fault === undefined) return null
  history.replaceState(null, "", location.pathname + location.hash)
  const back = query.get("return") ?? "/"
  return { fault, back: back.startsWith("/") ? back : "/" }
}

/** Keeps an invite while its user signs in elsewhere. */
export const storeInvite = (link: string, invite: string) => storeInTab(prefix + link, invite)

/** The invite that was kept; only once. */
export const takeInvite = (link: string) => takeInTab(prefix + link)
