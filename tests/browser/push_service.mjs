// @ts-check
/** The push service of a browser in a test. The browser of the tests reaches no real one. */

/**
 * The push service of the browser: subscriptions of real keys that no push reaches. The answer to the
 * question for the permission is the given one.
 *
 * @param {{ page: import("playwright-core").Page }} user
 * @param {NotificationPermission} [answer]
 */
export async function withPushService({ page }, answer = "granted") {
  await page.addInitScript(async (answer) => {
    let permission = /** @type {NotificationPermission} */ (sessionStorage.getItem("test.permission") ?? "default")
    Object.defineProperty(Notification, "permission", { get: () => permission })
    Notification.requestPermission = async () => {
      Object.assign(globalThis, { questions: Number(Reflect.get(globalThis, "questions") ?? 0) + 1, byPress: navigator.userActivation.isActive })
      permission = answer
      sessionStorage.setItem("test.permission", answer)
      return answer
    }
    const text = (/** @type {ArrayBuffer} */ bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes))).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "")
    const restored = () => {
      const stored = sessionStorage.getItem("test.subscription")
      return stored === null ? null : subscriptionOf(JSON.parse(stored))
    }
    const subscriptionOf = (/** @type {any} */ { json, key }) => ({
      toJSON: () => json,
      options: { applicationServerKey: Uint8Array.from(key).buffer },
      unsubscribe: async () => {
        sessionStorage.removeItem("test.subscription")
        return true
      },
    })
    PushManager.prototype.getSubscription = async () => /** @type {any} */ (restored())
    PushManager.prototype.subscribe = async (/** @type {PushSubscriptionOptionsInit | undefined} */ options) => {
      const pair = await crypto.subtle.generateKey({ name: "ECDH", namedCurve: "P-256" }, true, ["deriveBits"])
      const p256dh = text(await crypto.subtle.exportKey("raw", pair.publicKey))
      const auth = text(crypto.getRandomValues(new Uint8Array(16)).buffer)
      const endpoint = `https://fcm.googleapis.com/fcm/send/${crypto.randomUUID()}`
      const json = { endpoint, expirationTime: null, keys: { p256dh, auth } }
      const key = [.../** @type {Uint8Array} */ (options?.applicationServerKey)]
      sessionStorage.setItem("test.subscription", JSON.stringify({ json, key }))
      return /** @type {any} */ (restored())
    }
  }, answer)
  await page.reload()
  // The page knows its user and the key of the server.
  await page.locator("[data-t='menu.notifications']:not([hidden])").waitFor({ state: "attached" })
}
