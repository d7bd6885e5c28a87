/**
 * Web Push of this browser: whether it may, and its subscription. Draws nothing.
 *
 * The permission is requested by a press of the user only, never when a page loads.
 */

import { i18n } from "../lib/i18n.ts"
import * as notify from "../lib/notify_api.ts"
import { preference, setPreference } from "../lib/preferences.ts"

const WORKER = "/service-worker.js"
/** The preference with the id of the user whose notifications this browser receives. */
const OWNER = "push.owner"

/** `off`: the server sends no pushes; `insecure`: the address is not https; `ready`: the user may subscribe. */
export type PushState = "off" | "insecure" | "unsupported" | "blocked" | "ready" | "on"

/** The bytes of a key in base64url. */
export function bytesOf(text: string) {
  const characters = atob(text.replaceAll("-", "+").replaceAll("_", "/"))
  return Uint8Array.from(characters, (character) => character.charCodeAt(0))
}

/** Whether this browser can receive pushes at all. @returns `null`: it can */
function obstacle(): PushState | null {
  if (!window.isSecureContext) return "insecure"
  const isSupported = "serviceWorker" in navigator && "PushManager" in window && "Notification" in window
  return isSupported ? null : "unsupported"
}

/** The subscription of this browser. */
async function currentSubscription(): Promise<PushSubscription | null> {
  if (obstacle() !== null) return null
  const registration = await navigator.serviceWorker.getRegistration("/")
  return (await registration?.pushManager.getSubscription()) ?? null
}

/** Whether it was made for that key of the server. */
function isFor({ options }: PushSubscription, key: Uint8Array) {
  const bytes = new Uint8Array(options.applicationServerKey ?? new ArrayBuffer(0))
  return bytes.length === key.length && bytes.every((byte, at) => byte === key[at])
}

export class Push {
  declare user: string
  declare preference
  /** The server's key; `undefined`: not read yet. */
  #key: string | null | undefined
  /** All browsers of the user. */
  browsers: notify.Browser[] = []

  /** @param user the id */
  constructor(user: string) {
    this.user = user
    this.preference = `push.${user}`
  }

  /**
   * Ends the notifications of another user who used this browser before: they would show the titles of that
   * user's documents to this one. The server forgets the subscription with its next push.
   */
  async endThoseOfOthers() {
    const owner = preference(OWNER)
    if (owner === null || owner === this.user) return
    await (await currentSubscription())?.unsubscribe()
    setPreference(`push.${owner}`, null)
    setPreference(OWNER, null)
  }

  /** Whether the server sends pushes. */
  async isOffered() {
    this.#key ??= await notify.pushKey()
    return this.#key !== null
  }

  /** Reads the state of this browser, and the list of all. */
  async read(): Promise<PushState> {
    if (!(await this.isOffered())) return "off"
    this.browsers = await notify.browsers()
    const reason = obstacle()
    if (reason !== null) return reason
    if (Notification.permission === "denied") return "blocked"
    const subscription = await currentSubscription()
    const isOn = Notification.permission === "granted" && subscription !== null && this.browsers.some(({ id }) => id === this.id)
    return isOn ? "on" : "ready"
  }

  /** The id of this browser at the server. */
  get id() {
    return preference(this.preference)
  }

  /** Asks for the permission, and subscribes. Begins in the press of a button: browsers ignore other questions. */
  async subscribe(): Promise<"on" | "blocked" | "dismissed" | "off"> {
    const permission = await Notification.requestPermission()
    if (permission !== "granted") return permission === "denied" ? "blocked" : "dismissed"
    if (!(await this.isOffered())) return "off"
    const key = bytesOf(this.#key ?? "")
    const registration = await navigator.serviceWorker.register(WORKER, { scope: "/" })
    await navigator.serviceWorker.ready
    const before = await registration.pushManager.getSubscription()
    const isUsable = before !== null && isFor(before, key)
    if (!isUsable) await before?.unsubscribe()
    const subscription = isUsable ? before : await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key })
    await this.#register(subscription)
    return "on"
  }

  async #register(subscription: PushSubscription) {
    const { id } = await notify.addBrowser({ ...(subscription.toJSON() as Omit<notify.NewBrowser, "lang">), lang: i18n.language })
    setPreference(this.preference, id)
    setPreference(OWNER, this.user)
  }

  /** The notifications of this browser follow the language of its page, unless the user removed the browser elsewhere. */
  async translate() {
    const subscription = this.id === null ? null : await currentSubscription()
    if (subscription === null) return
    const browsers = await notify.browsers()
    if (browsers.some(({ id }) => id === this.id)) await this.#register(subscription)
  }

  /** Ends the pushes of this browser. */
  async unsubscribe() {
    const { id } = this
    const subscription = await currentSubscription()
    await subscription?.unsubscribe()
    if (id !== null) await notify.removeBrowser(id)
    setPreference(this.preference, null)
    setPreference(OWNER, null)
  }
}
