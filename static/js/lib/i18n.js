// @ts-check
/**
 * The sentences of the page, in the reader's language.
 *
 * The browser's language decides until a person chooses one; the choice is kept. Components ask
 * `t` each time they draw and draw again at `change`, so a switch needs no reload (a reload would
 * give the seat away for a moment). The page loads the sentences of one language only.
 */

import { setPreference, preference } from "./preferences.js"
import { now } from "./server_clock.js"

/**
 * @typedef {keyof typeof import("./i18n/en.js").en} PageSentence
 * @typedef {PageSentence | keyof typeof import("./i18n/admin_en.js").adminEn} Sentence
 * @typedef {Record<PageSentence, string>} Sentences
 * @typedef {keyof typeof languages} Language
 * @typedef {Readonly<Record<Language, () => Promise<Record<string, string>>>>} Source loads the sentences of a language
 */

/** Each language by its own name. */
export const languages = { en: "English", ko: "한국어" }

/** @type {Source} */
const PAGE = {
  en: async () => (await import("./i18n/en.js")).en,
  ko: async () => (await import("./i18n/ko.js")).ko,
}

class I18n extends EventTarget {
  /** @type {Language} */
  language = choose(preference("language"), globalThis.navigator?.languages ?? [])
  /** @type {Record<string, string>} */
  sentences = {}
  #sources = [PAGE]
  /** The language that was chosen last. */
  #chosen = this.language

  /** Loads the sentences, before the first `t`. @param {Source[]} own those of one page alone */
  async start(...own) {
    this.#sources.push(...own)
    await this.#load(this.language)
  }

  /** @param {Language} language */
  async setLanguage(language) {
    if (language === this.#chosen) return
    this.#chosen = language
    await this.#load(language)
    if (language !== this.#chosen) return
    setPreference("language", language)
    this.dispatchEvent(new Event("change"))
  }

  /** @param {Language} language */
  async #load(language) {
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

/**
 * The chosen language, else the browser's first supported one, else English.
 *
 * @param {string | null} chosen
 * @param {readonly string[]} spoken
 * @returns {Language}
 */
export function choose(chosen, spoken) {
  for (const tag of [chosen ?? "", ...spoken]) {
    const language = tag.toLowerCase().split("-")[0]
    if (language === "ko" || language === "en") return language
  }
  return "en"
}

export const i18n = new I18n()

/**
 * The sentence of that name, with `{name}`s filled in.
 *
 * @param {Sentence} name
 * @param {Record<string, string | number>} [values]
 */
export function t(name, values = {}) {
  const sentence = i18n.sentences[name] ?? name
  return sentence.replace(/\{(\w+)\}/g, (whole, key) => String(values[key] ?? whole))
}

/**
 * The sentence for one when there is a word for one, else for many.
 *
 * @param {Sentence} name one of which `name.one` exists too
 * @param {number} count
 * @param {Record<string, string>} [values]
 */
export function tCount(name, count, values = {}) {
  const one = /** @type {Sentence} */ (`${name}.one`)
  const chosen = count === 1 && one in i18n.sentences ? one : name
  return t(chosen, { ...values, count: number(count) })
}

/** @param {number} value */
export function number(value) {
  return value.toLocaleString(i18n.language)
}

/**
 * A time of day, with seconds where two in one minute must differ.
 *
 * @param {Date} date
 * @param {{ seconds?: boolean }} [options]
 */
export function clock(date, { seconds = false } = {}) {
  const two = /** @type {const} */ ("2-digit")
  const parts = seconds ? { second: two } : {}
  return new Intl.DateTimeFormat(i18n.language, { hour: two, minute: two, hourCycle: "h23", ...parts }).format(date)
}

/** The IANA name of the browser's time zone. */
export const ownTimeZone = () => Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC"

/** A length of time as one would say it: whole minutes, from an hour on whole hours. @param {number} ms */
export function duration(ms) {
  const minutes = Math.floor(ms / 60_000)
  const [count, unit] = minutes < 60 ? [minutes, "minute"] : [Math.floor(minutes / 60), "hour"]
  return new Intl.NumberFormat(i18n.language, { style: "unit", unit, unitDisplay: "long" }).format(count)
}

/** How long ago, as one would say it. @param {number} ms */
export function ago(ms) {
  const [count, unit] = inUnits(ms)
  return new Intl.RelativeTimeFormat(i18n.language).format(-count, unit)
}

/** A length of time of any size, in one unit. @param {number} ms */
export function length(ms) {
  const [count, unit] = inUnits(ms)
  return new Intl.NumberFormat(i18n.language, { style: "unit", unit, unitDisplay: "long" }).format(count)
}

/** @param {number} ms @returns {[number, "second" | "minute" | "hour"]} */
function inUnits(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1_000))
  if (seconds < 120) return [seconds, "second"]
  return seconds < 7_200 ? [Math.floor(seconds / 60), "minute"] : [Math.floor(seconds / 3_600), "hour"]
}

/** A moment as one would say it: the time today, the day and the time before that. @param {string | Date} moment */
export function when(moment) {
  const date = new Date(moment)
  if (date.toDateString() === new Date(now()).toDateString()) return clock(date)
  const day = new Intl.DateTimeFormat(i18n.language, { month: "short", day: "numeric" }).format(date)
  return `${day} ${clock(date)}`
}

/**
 * Says everything in the page's own markup: `data-t` is the text of an element, `data-t-label` its
 * accessible name, `data-t-hint` its placeholder.
 *
 * @param {ParentNode} root
 */
export function translateAll(root) {
  document.documentElement.lang = i18n.language
  /** @param {string} names @param {(element: Element, sentence: string) => void} write */
  const say = (names, write) => {
    for (const element of root.querySelectorAll(`[${names}]`)) write(element, t(/** @type {Sentence} */ (element.getAttribute(names))))
  }
  say("data-t", (element, sentence) => (element.textContent = sentence))
  say("data-t-label", (element, sentence) => element.setAttribute("aria-label", sentence))
  say("data-t-hint", (element, sentence) => element.setAttribute("placeholder", sentence))
}
