// @ts-check
/** Where `editor.html` begins: from the address to the desk. */

import { translateAll } from "../lib/i18n.js"
import { enter } from "../seat/entry.js"
import { EntryDialog } from "../seat/entry_dialog.js"
import { DeskPage } from "./wiring.js"

translateAll(document)
const dialog = new EntryDialog()
const arrival = await enter(dialog)
if (arrival) {
  dialog.open()
  new DeskPage(arrival).start()
}
