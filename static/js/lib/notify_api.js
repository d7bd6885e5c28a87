// @ts-check
/** The calls about notifications: the browsers that receive them, and reminders. A part of `api.js`. */

import { call, ifThere } from "./api.js"

/**
 * @typedef {{ id: string, service: string, lang: string | null, expires_at: string | null,
 *   created_at: string }} Browser a browser that receives pushes; `service`: the host of its push service
 * @typedef {{ from: string, to: string }} QuietHours times of day, `HH:MM`
 * @typedef {{ review_unanswered: boolean, seat_free: boolean, request_unanswered: boolean,
 *   quiet: QuietHours | null, time_zone: string | null }} Reminders
 */

/** The server's public key, in base64url. @returns {Promise<string | null>} `null`: the server sends no pushes */
export async function pushKey() {
  try {
    return (await call("GET", "/api/push-key")).key
  } catch {
    return null
  }
}

/** The browsers of the reader. @returns {Promise<Browser[]>} */
export const browsers = async () => (await call("GET", "/api/push-subscriptions")).subscriptions

/**
 * Registers a browser, or moves it to the reader.
 *
 * @param {PushSubscriptionJSON & { lang: string }} subscription
 * @returns {Promise<{ id: string, created_at: string }>}
 */
export const addBrowser = (subscription) => call("POST", "/api/push-subscriptions", { body: subscription })

/** Ends the pushes of a browser; also if they ended before. @param {string} id @returns {Promise<void>} */
export const removeBrowser = async (id) =>
  void (await ifThere(call("DELETE", `/api/push-subscriptions/${encodeURIComponent(id)}`)))

/** @returns {Promise<Reminders | null>} `null`: the server has no reminders */
export const reminders = () => ifThere(call("GET", "/api/me/reminders"))

/** @param {Reminders} reminders @returns {Promise<Reminders>} */
export const setReminders = (reminders) => call("PUT", "/api/me/reminders", { body: reminders })
