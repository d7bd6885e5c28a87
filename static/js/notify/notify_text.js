// @ts-check
/** Browsers, and times of reminders, as one would name them. Pure, tested with `node --test`. */

import { ownTimeZone } from "../lib/i18n.js"

/** Push services of the well-known browsers. @type {readonly [RegExp, string][]} */
const SERVICES = [
  [/(^|\.)mozilla\.com$/, "Firefox"],
  [/(^|\.)push\.apple\.com$/, "Safari"],
  [/(^|\.)notify\.windows\.com$/, "Edge"],
  [/(^|\.)googleapis\.com$/, "Chrome"],
]

/** The browser behind a push service, or the host of that. @param {string} service */
export const browserName = (service) => SERVICES.find(([host]) => host.test(service))?.[1] ?? service

/** All time zones of the browser, with the given one. @param {string} chosen */
export function timeZones(chosen) {
  const zones = Intl.supportedValuesOf?.("timeZone") ?? []
  return [...new Set([...zones, "UTC", ownTimeZone(), chosen])].sort()
}
