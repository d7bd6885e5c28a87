/** The calls about notifications: the browsers that receive them, and reminders. A part of `api.ts`. */

import { call, ifThere, type Schemas } from "./api.ts"

/** A browser that receives pushes; `service`: the host of its push service. */
export type Browser = Schemas["PushSubscriptions"]["subscriptions"][number]
export type NewBrowser = Schemas["NewPushSubscription"]
export type Reminders = Schemas["Reminders"]

/** The server's public key, in base64url. @returns `null`: the server sends no pushes */
export async function pushKey() {
  try {
    return (await call("GET", "/api/push-key")).key
  } catch {
    return null
  }
}

/** The browsers of the reader. */
export const browsers = async () => (await call("GET", "/api/push-subscriptions")).subscriptions

/** Registers a browser, or moves it to the reader. */
export const addBrowser = (subscription: NewBrowser) => call("POST", "/api/push-subscriptions", { body: subscription })

/** Ends the pushes of a browser; also if they ended before. */
export const removeBrowser = (id: string) => ifThere(call("DELETE", "/api/push-subscriptions/{id}", { path: { id } }))

/** @returns `null`: the server has no reminders */
export const reminders = () => ifThere(call("GET", "/api/me/reminders"))

export const setReminders = (reminders: Reminders) => call("PUT", "/api/me/reminders", { body: reminders })
