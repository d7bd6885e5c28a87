// @ts-check
/**
 * The stock client, holding a seat until it is killed or frozen.
 *
 *     node hold_seat.mjs URL LINK ROLE TOKEN
 */

// @ts-expect-error -- it comes without types
import { WebSocket } from "ws"
import { WebsocketProvider } from "y-websocket"
import * as Y from "yjs"

const [url = "", link, role, token = ""] = process.argv.slice(2)
const provider = new WebsocketProvider(
  `${url.replace("http", "ws")}/ws/share-links`,
  `${link}/${role}`,
  new Y.Doc(),
  { params: { token }, disableBc: true, WebSocketPolyfill: WebSocket },
)
provider.on("status", (/** @type {{ status: string }} */ { status }) => console.error(status))
