// @ts-check
/** Where `editor.html` begins: from the address to the desk. */

import { arrive } from "../seat/entry.js"
import { DeskPage } from "./wiring.js"
import { Gate } from "../seat/entry_dialog.js"
import { sayAll } from "../lib/i18n.js"

sayAll(document)
const gate = new Gate()
const arrival = await arrive(gate)
if (arrival) {
  gate.open()
  new DeskPage(arrival).start()
}
