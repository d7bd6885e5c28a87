// @ts-check
/**
 * The service worker: shows pushes as notifications, and opens their pages. It caches nothing and has no
 * `fetch` handler, so a page is never older than its server.
 *
 * A push carries no sentence: `{ kind, url, params, lang, tag }`. This file has the texts of each kind. It
 * imports nothing, because a browser may start it without a page and without a connection.
 */
;(() => {
  const worker = /** @type {any} */ (globalThis)

  /** The name of the service: the title of a notification that this file does not know. */
  const NAME = "Galley"
  const ICON = "/icon.svg"

  /**
   * Of each kind the title, and its sentences: the first one whose blanks the push fills.
   *
   * @type {Record<string, Record<string, [string, ...string[]]>>}
   */
  const TEXTS = {
    en: {
      "request.received.writer": ["New request", "{from} asks you to review “{title}”.", "{from} asks you to review a text.", "Somebody asks you to review a text."],
      "request.received.reviewer": ["New request", "{from} offers to review a text of yours.", "Somebody offers to review a text of yours."],
      "request.accepted": ["Request accepted", "{by} accepted your request about “{title}”. You are partners now.", "{by} accepted your request. You are partners now.", "Your request was accepted."],
      "request.unanswered": ["A request waits", "{from} waits for your answer.", "Somebody waits for your answer."],
      "review.unanswered": ["Comments wait", "“{title}” has comments of {by} without an answer: {count}.", "“{title}” has comments without an answer: {count}.", "“{title}” has comments without an answer.", "A text of yours has comments without an answer."],
      "seat.free.writer": ["The text is free", "You can write in “{title}” now.", "You can write in your text now."],
      "seat.free.reviewer": ["The text is free", "You can review “{title}” now.", "You can review the text now."],
    },
    ko: {
      "request.received.writer": ["새 요청", "{from}님이 ‘{title}’의 첨삭을 부탁했습니다.", "{from}님이 글의 첨삭을 부탁했습니다.", "글의 첨삭을 부탁받았습니다."],
      "request.received.reviewer": ["새 요청", "{from}님이 내 글을 첨삭해 주겠다고 합니다.", "내 글을 첨삭해 주겠다는 요청이 왔습니다."],
      "request.accepted": ["요청 수락", "{by}님이 ‘{title}’ 요청을 수락했습니다. 이제 함께합니다.", "{by}님이 요청을 수락했습니다. 이제 함께합니다.", "보낸 요청이 수락되었습니다."],
      "request.unanswered": ["답을 기다리는 요청", "{from}님이 답을 기다리고 있습니다.", "답을 기다리는 요청이 있습니다."],
      "review.unanswered": ["답하지 않은 첨삭", "‘{title}’에 아직 답하지 않은 {by}님의 첨삭이 {count}건 있습니다.", "‘{title}’에 아직 답하지 않은 첨삭이 {count}건 있습니다.", "‘{title}’에 아직 답하지 않은 첨삭이 있습니다.", "내 글에 아직 답하지 않은 첨삭이 있습니다."],
      "seat.free.writer": ["글을 열 수 있습니다", "이제 ‘{title}’ 글을 쓸 수 있습니다.", "이제 글을 쓸 수 있습니다."],
      "seat.free.reviewer": ["글을 열 수 있습니다", "이제 ‘{title}’ 글을 첨삭할 수 있습니다.", "이제 글을 첨삭할 수 있습니다."],
    },
  }

  /** @param {unknown} lang of the page that registered the browser */
  const languageOf = (lang) => (lang === "ko" || lang === "en" ? lang : browserLanguage())
  const browserLanguage = () => (String(worker.navigator.language ?? "").toLowerCase().startsWith("ko") ? "ko" : "en")

  /** @param {{ data: { json(): any } | null }} push @returns {any} */
  function payloadOf({ data }) {
    try {
      return data?.json() ?? {}
    } catch {
      return {}
    }
  }

  /** The title and the text of a push. @param {any} payload */
  function textOf({ kind, params, lang }) {
    const texts = TEXTS[languageOf(lang)] ?? {}
    const found = texts[kind] ?? texts[`${kind}.${params?.as ?? params?.role}`]
    if (found === undefined) return { title: NAME, body: "" }
    const [title, ...sentences] = found
    const isFilled = (/** @type {string} */ sentence) => [...sentence.matchAll(/\{(\w+)\}/g)].every(([, name]) => params?.[name ?? ""])
    const sentence = sentences.find(isFilled) ?? ""
    return { title, body: sentence.replace(/\{(\w+)\}/g, (_, name) => String(params[name])) }
  }

  /** The page of a push, on this origin only. @param {unknown} url */
  function pageOf(url) {
    const { origin } = worker.location
    const page = typeof url === "string" && URL.canParse(url, origin) ? new URL(url, origin) : new URL("/", origin)
    return page.origin === origin ? page : new URL("/", origin)
  }

  /** @param {any} event */
  function show(event) {
    const payload = payloadOf(event)
    const { title, body } = textOf(payload)
    const lang = languageOf(payload.lang)
    const tag = typeof payload.tag === "string" ? { tag: payload.tag, renotify: true } : {}
    return worker.registration.showNotification(title, { body, lang, icon: ICON, data: { url: pageOf(payload.url).href }, ...tag })
  }

  /** Focuses an open tab of that page, or opens the page. @param {any} notification */
  async function open(notification) {
    notification.close()
    const page = pageOf(notification.data?.url)
    const tabs = await worker.clients.matchAll({ type: "window", includeUncontrolled: true })
    const tab = tabs.find((/** @type {any} */ tab) => new URL(tab.url).pathname === page.pathname)
    if (tab === undefined) return worker.clients.openWindow(page.href)
    // The tab stays as it is: another address would reload it, and take it out of its text.
    tab.postMessage({ opened: page.hash })
    return tab.focus()
  }

  /** The browser replaced its subscription: the server receives the new one. @param {any} event */
  async function renew(event) {
    const manager = worker.registration.pushManager
    const subscription = event.newSubscription ?? (await manager.subscribe(event.oldSubscription?.options ?? (await optionsOf())))
    const body = JSON.stringify({ ...subscription.toJSON(), lang: browserLanguage() })
    const headers = { "content-type": "application/json" }
    await fetch("/api/push-subscriptions", { method: "POST", headers, body, credentials: "same-origin" })
  }

  async function optionsOf() {
    const response = await fetch("/api/push-key", { credentials: "same-origin" })
    return { userVisibleOnly: true, applicationServerKey: (await response.json()).key }
  }

  worker.addEventListener("push", (/** @type {any} */ event) => event.waitUntil(show(event)))
  worker.addEventListener("notificationclick", (/** @type {any} */ event) => event.waitUntil(open(event.notification)))
  worker.addEventListener("pushsubscriptionchange", (/** @type {any} */ event) => event.waitUntil(renew(event)))
  // A new version serves the next push; it has no page to wait for.
  worker.addEventListener("install", () => worker.skipWaiting())
})()
