/**
 * The sentences of the page, in the reader's language.
 *
 * The browser's language decides until a person chooses one; the choice is kept. Components ask
 * `t` each time they draw and draw again at `change`, so a switch needs no reload (a reload would
 * give the seat away for a moment). The page loads the sentences of one language only.
 */

import { setPreference, preference } from "./preferences.ts"
import { now } from "./server_clock.ts"

export type PageSentence = keyof typeof import("./i18n/en.ts").en
export type Sentence = PageSentence | keyof typeof import("./i18n/admin_en.ts").adminEn
export type Sentences = Record<PageSentence, string>
export type Language = keyof typeof languages
/** Loads the sentences of a language. */
type Source = Readonly<Record<Language, () => Promise<Record<string, string>>>>

/** Each language by its own name. */
export const languages = { en: "English", ko: "한국어" }

const PAGE: Source = {
  en: async () => (await import("./i18n/en.ts")).en,
  ko: async () => (await import("./i18n/ko.ts")).ko,
}

class I18n extends EventTarget {
  language: Language = choose(preference("language"), globalThis.navigator?.languages ?? [])
  sentences: Record<string, string> = {}
  #sources = [PAGE]
  /** The language that was chosen last. */
  #chosen = this.language

  /** Loads the sentences, before the first `t`. @param own those of one page alone */
  async start(...own: Source[]) {
    this.#sources.push(...own)
    await this.#load(this.language)
  }

  async setLanguage(language: Language) {
    if (language === this.#chosen) return
    this.#chosen = language
    await this.#load(language)
    if (language !== this.#chosen) return
    setPreference("language", language)
    this.dispatchEvent(new Event("change"))
  }

  async #load(language: Language) {
    try {
      const parts = await Promise.all(this.#sources.map((source) => source[language]()))
      if (language !== this.#chosen) return
      this.sentences = Object.assign({}, ...parts)
      this.language = language
    } catch (error) {
      this.#chosen = this.language
      throw error
    }
  }
}

/** The chosen language, else the browser's first supported one, else English. */
export function choose(chosen: string | null, spoken: readonly string[]): Language {
  for (const tag of [chosen ?? "", ...spoken]) {
    const language = tag.toLowerCase().split("-")[0]
    if (language === "ko" || language === "en") return language
  }
  return "en"
}

export const i18n = new I18n()

/** The sentence of that name, with `{name}`s filled in. */
export function t(name: Sentence, values: Record<string, string | number> = {}) {
  const sentence = i18n.sentences[name] ?? name
  return sentence.replace(/\{(\w+)\}/g, (whole, key) => String(values[key] ?? whole))
}

/** The name of an author, who may be deleted. */
export const authorName = ({ name }: { name: string | null }) => name ?? t("user.deleted")

/**
 * The sentence for one when there is a word for one, else for many.
 *
 * @param name one of which `name.one` exists too
 */
export function tCount(name: Sentence, count: number, values: Record<string, string> = {}) {
  const one = `${name}.one` as Sentence
  const chosen = count === 1 && one in i18n.sentences ? one : name
  return t(chosen, { ...values, count: number(count) })
}

export function number(value: number) {
  return value.toLocaleString(i18n.language)
}

/** A time of day, with seconds where two in one minute must differ. */
export function clock(date: Date, { seconds = false }: { seconds?: boolean } = {}) {
  const two = "2-digit" as const
  const parts = seconds ? { second: two } : {}
  return new Intl.DateTimeFormat(i18n.language, { hour: two, minute: two, hourCycle: "h23", ...parts }).format(date)
}

/** The IANA name of the browser's time zone. */
export const ownTimeZone = () => Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC"

/** A length of time as one would say it: whole minutes, from an hour on whole hours. */
export function duration(ms: number) {
  const minutes = Math.floor(ms / 60_000)
  const [count, unit] = minutes < 60 ? [minutes, "minute"] : [Math.floor(minutes / 60), "hour"]
  return new Intl.NumberFormat(i18n.language, { style: "unit", unit, unitDisplay: "long" }).format(count)
}

/** How long ago, as one would say it. */
export function ago(ms: number) {
  const [count, unit] = inUnits(ms)
  return new Intl.RelativeTimeFormat(i18n.language).format(-count, unit)
}

/** A length of time of any size, in one unit. */
export function length(ms: number) {
  const [count, unit] = inUnits(ms)
  return new Intl.NumberFormat(i18n.language, { style: "unit", unit, unitDisplay: "long" }).format(count)
}

function inUnits(ms: number): [number, "second" | "minute" | "hour"] {
  const seconds = Math.max(0, Math.floor(ms / 1_000))
  if (seconds < 120) return [seconds, "second"]
  return seconds < 7_200 ? [Math.floor(seconds / 60), "minute"] : [Math.floor(seconds / 3_600), "hour"]
}

/** A moment as one would say it: the time today, the day and the time before that. */
export function when(moment: string | Date) {
  const date = new Date(moment)
  if (date.toDateString() === new Date(now()).toDateString()) return clock(date)
  const day = new Intl.DateTimeFormat(i18n.language, { month: "short", day: "numeric" }).format(date)
  return `${day} ${clock(date)}`
}

/**
 * Says everything in the page's own markup: `data-t` is the text of an element, `data-t-label` its
 * accessible name, `data-t-hint` its placeholder.
 */
export function translateAll(root: ParentNode) {
  document.documentElement.lang = i18n.language
  const say = (names: string, write: (element: Element, sentence: string) => void) => {
    for (const element of root.querySelectorAll(`[${names}]`)) write(element, t(element.getAttribute(names) as Sentence))
  }
  say("data-t", (element, sentence) => (element.textContent = sentence))
  say("data-t-label", (element, sentence) => element.setAttribute("aria-label", sentence))
  say("data-t-hint", (element, sentence) => element.setAttribute("placeholder", sentence))
}
