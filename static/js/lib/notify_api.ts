/** The calls about notifications: the browsers that receive them, and reminders. A part of `api.ts`. */

import { call, ifThere } from "./api.ts"

/** A browser that receives pushes; `service`: the host of its push service. */
export type Browser = { id: string, service: string, lang: string | null, expires_at: string | null,
  created_at: string }
/** Times of day, `HH:MM`. */
type QuietHours = { from: string, to: string }
export type Reminders = { review_unanswered: boolean, seat_free: boolean, request_unanswered: boolean,
  quiet: QuietHours | null, time_zone: string | null }

/** The server's public key, in base64url. @returns `null`: the server sends no pushes */
export async function pushKey(): Promise<string | null> {
  try {
    return (await call("GET", "/api/push-key")).key
  } catch {
    return null
  }
}

/** The browsers of the reader. */
export const browsers = async (): Promise<Browser[]> => (await call("GET", "/api/push-subscriptions")).subscriptions

/** Registers a browser, or moves it to the reader. */
export const addBrowser = (subscription: PushSubscriptionJSON & { lang: string }): Promise<{ id: string, created_at: string }> =>
  call("POST", "/api/push-subscriptions", { body: subscription })

/** Ends the pushes of a browser; also if they ended before. */
export const removeBrowser = async (id: string): Promise<void> =>
  void (await ifThere(call("DELETE", `/api/push-subscriptions/${encodeURIComponent(id)}`)))

/** @returns `null`: the server has no reminders */
export const reminders = (): Promise<Reminders | null> => ifThere(call("GET", "/api/me/reminders"))

export const setReminders = (reminders: Reminders): Promise<Reminders> => call("PUT", "/api/me/reminders", { body: reminders })
