// @ts-check
/** The deletion of a document as a sentence: the user, the time, and how long the bin keeps it; and the way back. */

import * as api from "./api.js"
import { button, once } from "./dom.js"
import { toastError } from "./error_text.js"
import { t, tCount, when } from "./i18n.js"
import { now } from "./server_clock.js"

/** @typedef {import("./api.js").Deletion} Deletion */

const DAY = 86_400_000

/** @param {Deletion | null} deletion `null`: not known @param {boolean} isOwn whether the reader is the owner */
export function deletedSentence(deletion, isOwn) {
  if (deletion === null) return t("deleted.unknown")
  const [time, name] = [when(deletion.at), deletion.by.name]
  const first = isOwn ? t("deleted.own", { time }) : t("deleted.by", { name, time })
  // The server's clock is known to a second, so a deletion of this moment is purged after 30 days and up to a second.
  const days = Math.round((Date.parse(deletion.purge_at) - now()) / DAY)
  const until = when(deletion.purge_at)
  if (days < 1) return `${first} ${isOwn ? t("deleted.own.until", { until }) : t("deleted.by.until", { name, until })}`
  return `${first} ${isOwn ? tCount("deleted.own.days", days) : tCount("deleted.by.days", days, { name })}`
}

/** Takes a document out of the bin, and opens it anew. @param {string} id */
export function restoreButton(id) {
  const restore = () => api.restoreDocument(id).then(() => location.reload(), toastError)
  const press = button(t("deleted.restore"), { class: "button button-strong" }, () => void once(press, restore))
  return press
}
