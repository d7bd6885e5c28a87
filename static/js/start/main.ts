/** Where `index.html` begins: a name, two ways on, and what one has already. */

import { Menu } from "../desk/menu.ts"
import { CodeForm } from "../identity/code_form.ts"
import { SelfMenu } from "../identity/self_menu.ts"
import { isGuest } from "../identity/sign_out.ts"
import * as api from "../lib/api.ts"
import { button, byId, el, onSubmit, say } from "../lib/dom.ts"
import { errorText } from "../lib/error_text.ts"
import { showFailures } from "../lib/failures.ts"
import { graphemesOf } from "../lib/graphemes.ts"
import { i18n, t } from "../lib/i18n.ts"
import { cleanFields } from "../lib/incoming.ts"
import { leadToSignIn, opensWindow, takeFault } from "../lib/sign_in.ts"
import { candidatesIn } from "../sections/headings.ts"
import { DocumentList } from "./document_list.ts"
import { ImportFile } from "./import_file.ts"
import { Offers } from "./offers.ts"
import { PasteDraft } from "./paste_draft.ts"
import { Partners } from "./partners.ts"
import { offerIn } from "./offer_text.ts"
import { tokenIn } from "./person_address.ts"

/** The ways to a document. */
const PANELS = ["paste", "file", "link"]
/** The first element of each, which receives the focus. */
const FIRST: Readonly<Record<string, string>> = { paste: "paste-text", file: "file-choose", link: "link-field" }
/** Longest title that is made from a first line, in characters. */
const TITLE_MAX = 60

class StartPage {
  #me: api.User | null = null
  /** How a user without a sign-in gets one. */
  #entry: api.Entry = { guests: true, sign_in_url: null, sign_out_url: null, user: null, expires_at: null }
  #self = new SelfMenu((me) => this.#renamed(me))
  #code = new CodeForm(() => this.#me, (me) => this.#changeUser(me))
  #documentList = new DocumentList()
  #partners = new Partners(() => this.#documentList.refresh(), () => void this.#self.notifications.offer("push.offer.request"))
  #offers = new Offers(() => this.#partners.refresh())
  /** The sign-in that has failed. */
  #failedSignIn = takeFault()
  /** Whether the page is drawn. It waits until it knows whether the user is signed in. */
  #isDrawn = false
  #name = byId("name", HTMLInputElement)
  #error = byId("start-error")
  #pasteDraft = new PasteDraft()
  #importFile = new ImportFile({
    mayGoOn: () => this.#mayGoOn(),
    enter: () => this.#enter(),
    open: () => this.#open("file"),
    stayed: () => this.#stayed(),
  })

  async start() {
    new Menu([["menu.me", ...this.#self.elements, this.#code.entry]]).start()
    this.#code.start()
    this.#importFile.start()
    for (const panel of PANELS) {
      byId(`way-${panel}`).addEventListener("click", () => this.#choose(panel))
    }
    const submits: [string, () => Promise<void>][] = [["paste", () => this.#create()], ["link", () => this.#follow()], ["asked", () => this.#visit()]]
    const failed = (error: unknown) => this.#fail(() => errorText(error))
    for (const [id, submit] of submits) {
      onSubmit(byId(id, HTMLFormElement), byId(`${id}-go`, HTMLButtonElement), submit, failed)
    }
    for (const list of [this.#partners, this.#offers]) list.link.watch(() => this.#linkOpened(list))
    i18n.addEventListener("change", () => this.#isDrawn && this.#draw())
    try {
      this.#entry = await api.entry()
      this.#showUser(this.#entry.user)
    } catch (error) {
      this.#showUser(null)
      this.#fail(() => errorText(error))
    }
    if (this.#failedSignIn !== null && (this.#me === null || isGuest(this.#me))) {
      const { fault } = this.#failedSignIn
      this.#fail(() => t(`signin.fault.${fault}`))
    }
    if (this.#pasteDraft.start()) this.#open("paste")
    this.#code.takeAddress()
  }

  #showUser(me: api.User | null) {
    this.#me = me
    // A returning user comes for a document: the slogan is small, and the lists stand right below it.
    document.body.dataset.returning = String(me !== null)
    this.#self.setUser(me)
    this.#draw()
    if (me) {
      this.#documentList.start(me)
      this.#partners.start(me)
      this.#offers.start(me)
    } else if (this.#entry.guests) this.#name.focus()
  }

  /** The user opened a personal link, or that of an offer. */
  #linkOpened(list: Partners | Offers) {
    if (this.#me === null) list.link.store()
    list.openLink()
    if (this.#isDrawn) this.#draw()
  }

  #draw() {
    this.#isDrawn = true
    document.title = t("start.title")
    byId("sentence").classList.toggle("hidden", this.#me !== null)
    byId("sentence").replaceChildren(...corrected(t("start.sentence")))
    const mayEnter = this.#me !== null || this.#entry.guests
    byId("name-part").hidden = this.#me !== null || !mayEnter
    const hasOffer = this.#offers.link.isPresent
    const hasLink = this.#me === null && mayEnter && (hasOffer || this.#partners.link.isPresent)
    byId("asked").hidden = !hasLink
    byId("asked-text").textContent = t(hasOffer ? "opened.visit" : "ask.visit")
    byId("ways").hidden = !mayEnter || hasLink
    this.#drawSignIn(mayEnter)
    byId("hello").hidden = this.#me === null
    byId("hello").replaceChildren(...(this.#me ? this.#hello(this.#me) : []))
    // The way stays open to a guest, in the menu: a code may belong to the documents of another device.
    byId("code-part").hidden = !mayEnter || this.#me !== null
    this.#code.entry.hidden = this.#me === null || !isGuest(this.#me)
    byId("lists").hidden = this.#me === null
  }

  /** The same sentence again is spoken again. */
  #fail(why: () => string) {
    say(this.#error)
    say(this.#error, why)
  }

  /** The name of the user, and the entries that change it. */
  #hello(me: api.User) {
    const sentence = el("p", { text: t("start.hello", { name: me.name }) })
    if (!isGuest(me)) return [sentence]
    const correct = button(t("identity.name"), { class: "button button-quiet" }, () => this.#self.correct())
    const leave = button(t("identity.not-me"), { class: "button button-quiet" }, () => this.#self.signOut.confirm())
    return [sentence, correct, leave]
  }

  #renamed(me: api.User) {
    this.#me = me
    this.#draw()
  }

  /** Another user is here now: the lists are theirs. */
  #changeUser(me: api.User) {
    if (this.#me === null) return this.#showUser(me)
    location.assign("/")
  }

  /** Where guests are off there is one way on: to sign in. */
  #drawSignIn(mayEnter: boolean) {
    const { guests, sign_in_url: url } = this.#entry
    byId("sign-in").hidden = url === null ? mayEnter : this.#me !== null
    const withUrl = url !== null && opensWindow(url) ? "signin.frame" : guests ? "start.signin.or" : "start.signin.back"
    byId("sign-in-text").textContent = t(url === null ? "start.signin" : withUrl)
    const go = byId("sign-in-go", HTMLAnchorElement)
    go.hidden = url === null
    go.classList.toggle("button-strong", !guests)
    if (url !== null) leadToSignIn(go, url, this.#failedSignIn?.back)
  }

  #choose(panel: string) {
    // A link says first what it opens, and asks for a name itself.
    if (panel === "link" || this.#mayGoOn()) this.#open(panel)
  }

  #open(panel: string) {
    for (const other of PANELS) {
      const open = other === panel && byId(other).hidden
      byId(other).hidden = !open
      byId(`way-${other}`).setAttribute("aria-expanded", String(open))
    }
    if (byId(panel).hidden) return
    byId(FIRST[panel] ?? panel).focus()
    // A form higher than the window shows its first field, any other one its button, too.
    if (byId(panel).offsetHeight < window.innerHeight) byId(panel).scrollIntoView({ block: "nearest" })
  }

  #mayGoOn() {
    const named = this.#me !== null || this.#name.value.trim() !== ""
    this.#fail(() => (named ? "" : t("start.name.missing")))
    this.#name.setAttribute("aria-invalid", String(!named))
    if (!named) this.#name.focus()
    return named
  }

  async #enter() {
    this.#me ??= await api.signInAsGuest(this.#name.value.trim())
    this.#self.setUser(this.#me)
  }

  /** A new user whose file was refused is here now, as after a reload. */
  #stayed() {
    if (this.#me !== null && document.body.dataset.returning !== "true") this.#showUser(this.#me)
  }

  async #create() {
    if (!this.#mayGoOn()) return
    // The line breaks of the editor; a file from Windows has others.
    const text = byId("paste-text", HTMLTextAreaElement).value.replace(/\r\n?/g, "\n")
    const field = byId("paste-title", HTMLInputElement)
    if (field.value.trim() === "" && candidatesIn([firstLine(text)]).length === 1) {
      this.#fail(() => t("start.paste.title.ask"))
      return field.focus()
    }
    await this.#enter()
    const title = field.value.trim() || titleOf(text)
    const { id } = await api.createDocument(title, text)
    this.#pasteDraft.end()
    location.assign(`/d/${encodeURIComponent(id)}`)
  }

  async #visit() {
    // The Enter key in the field of the name submits this form also while it is hidden.
    if (byId("asked").hidden || !this.#mayGoOn()) return
    await this.#enter()
    this.#showUser(this.#me)
  }

  async #follow() {
    const path = linkPath(byId("link-field", HTMLInputElement).value, location.origin)
    if (path === null) return this.#fail(() => t("start.link.wrong", { example: `${location.origin}/s/…#…` }))
    if (this.#name.value.trim() !== "") await this.#enter()
    location.assign(path)
  }
}

/** A sentence with a correction in it, `[struck|put in]`, drawn as a reviewer would. */
function corrected(sentence: string) {
  const [before, struck, put, after] = sentence.split(/[[|\]]/)
  // The struck word is a picture of what Galley does; read aloud it would be nonsense.
  return [before ?? "", el("del", { "aria-hidden": "true", text: struck }), el("ins", { text: put }), after ?? ""]
}

const firstLine = (text: string) => text.split("\n").find((line) => line.trim() !== "")?.trim() ?? ""

/** A title from the first line with text. */
function titleOf(text: string) {
  const line = firstLine(text)
  const characters: string[] = []
  for (const grapheme of graphemesOf(line)) if (TITLE_MAX < characters.push(grapheme)) break
  if (characters.length === 0) return t("start.untitled")
  return characters.length <= TITLE_MAX ? line : `${characters.slice(0, TITLE_MAX - 1).join("")}…`
}

/** The way to a share link, a personal link or an offer, when it is one of ours. */
function linkPath(text: string, origin: string) {
  try {
    const { pathname, hash, origin: of } = new URL(text.trim(), origin)
    const isOurs = /^\/[sd]\/[\w-]+\/?$/.test(pathname) || (pathname === "/" && (tokenIn(hash) ?? offerIn(hash)) !== null)
    return of === origin && isOurs ? `${pathname}${hash}` : null
  } catch {
    return null
  }
}

await i18n.start()
cleanFields()
showFailures()
await new StartPage().start()
