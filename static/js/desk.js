// @ts-check
/** Where `editor.html` begins: from the address to the desk. */

import { arrive } from "./arrive.js"
import { DeskPage } from "./desk_page.js"
import { Gate } from "./gate.js"
import { sayAll } from "./words.js"

sayAll(document)
const gate = new Gate()
const arrival = await arrive(gate)
if (arrival) {
  gate.open()
  new DeskPage(arrival).start()
}
