/** Browsers, and times of reminders, as one would name them. Pure, tested with `node --test`. */

import { ownTimeZone } from "../lib/i18n.ts"

/** Push services of the well-known browsers. */
const SERVICES: readonly [RegExp, string][] = [
  [/(^|\.)mozilla\.com$/, "Firefox"],
  [/(^|\.)push\.apple\.com$/, "Safari"],
  [/(^|\.)notify\.windows\.com$/, "Edge"],
  [/(^|\.)googleapis\.com$/, "Chrome"],
]

/** The browser behind a push service, or the host of that. */
export const browserName = (service: string) => SERVICES.find(([host]) => host.test(service))?.[1] ?? service

/** All time zones of the browser, with the given one. */
export function timeZones(chosen: string) {
  const zones = Intl.supportedValuesOf?.("timeZone") ?? []
  return [...new Set([...zones, "UTC", ownTimeZone(), chosen])].sort()
}
