/** Where `editor.html` begins: from the address to the desk. */

import { i18n, translateAll } from "../lib/i18n.ts"
import { cleanFields } from "../lib/incoming.ts"
import { enter } from "../seat/entry.ts"
import { EntryDialog } from "../seat/entry_dialog.ts"
import { DeskPage } from "./wiring.ts"

await i18n.start()
translateAll(document)
cleanFields()
const dialog = new EntryDialog()
const arrival = await enter(dialog)
if (arrival) {
  const reviewing = arrival.role === "reviewer" ? await import("../suggest/reviewer_page.ts") : null
  dialog.open()
  new DeskPage(arrival, reviewing).start()
}
