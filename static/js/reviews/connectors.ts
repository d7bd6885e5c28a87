/** The thin lines that connect each card with its passage. Owns one drawing over the desk. */

import type { Role } from "../lib/api.ts"
import { svg } from "../lib/dom.ts"

type Connector = { id: string, active: boolean, by: Role, from: { x: number, y: number }, to: { x: number, y: number }, turn: number }

export class Connectors {
  declare element

  /** @param desk what the coordinates are relative to */
  constructor(desk: HTMLElement) {
    this.element = svg("svg", { class: "connectors", "aria-hidden": "true" })
    desk.append(this.element)
  }

  draw(connectors: readonly Connector[]) {
    // A connector begins at the edge of the text: under the words of its line it would look like a mark.
    const paths = connectors.map(({ active, by, from, to, turn }) => {
      const style = `connector${active ? " connector-active" : ""}${by === "writer" ? " by-writer" : ""}`
      return svg("path", { class: style, d: `M${from.x} ${from.y}H${turn - 12}C${turn} ${from.y} ${turn} ${to.y} ${turn + 12} ${to.y}H${to.x}` })
    })
    this.element.replaceChildren(...paths)
  }
}
