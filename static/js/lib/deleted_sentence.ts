/** The deletion of a document as a sentence: the user, the time, and how long the bin keeps it; and the way back. */

import * as api from "./api.ts"
import type { Deletion } from "./api.ts"
import { button, once } from "./dom.ts"
import { toastError } from "./error_text.ts"
import { t, tCount, when } from "./i18n.ts"
import { now } from "./server_clock.ts"

const DAY = 86_400_000

/** @param deletion `null`: not known @param isOwn whether the reader is the owner */
export function deletedSentence(deletion: Deletion | null, isOwn: boolean) {
  if (deletion === null) return t("deleted.unknown")
  const [time, name] = [when(deletion.at), deletion.by.name]
  const first = isOwn ? t("deleted.own", { time }) : t("deleted.by", { name, time })
  // The server's clock is known to a second, so a deletion of this moment is purged after 30 days and up to a second.
  const days = Math.round((Date.parse(deletion.purge_at) - now()) / DAY)
  const until = when(deletion.purge_at)
  if (days < 1) return `${first} ${isOwn ? t("deleted.own.until", { until }) : t("deleted.by.until", { name, until })}`
  return `${first} ${isOwn ? tCount("deleted.own.days", days) : tCount("deleted.by.days", days, { name })}`
}

/** Takes a document out of the bin, and opens it anew. */
export function restoreButton(id: string) {
  const restore = () => api.restoreDocument(id).then(() => location.reload(), toastError)
  const press = button(t("deleted.restore"), { class: "button button-strong" }, () => void once(press, restore))
  return press
}
