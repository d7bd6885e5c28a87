// @ts-check
/** The thin lines that connect each card with its passage. Owns one drawing over the desk. */

import { svg } from "../lib/dom.js"

/** @typedef {{ id: string, active: boolean, by: import("../lib/api.js").Role, from: { x: number, y: number }, edge: number, to: { x: number, y: number } }} Connector */

export class Connectors {
  /** @param {HTMLElement} desk what the coordinates are relative to */
  constructor(desk) {
    this.element = svg("svg", { class: "connectors", "aria-hidden": "true" })
    desk.append(this.element)
  }

  /** @param {readonly Connector[]} connectors */
  draw(connectors) {
    // Along under the line to the edge of the paper, dotted, so that it does not look as if the rest
    // of the line were marked too; then across to the card.
    const paths = connectors.flatMap(({ active, by, from, edge, to }) => {
      const style = `connector${active ? " connector-active" : ""}${by === "writer" ? " by-writer" : ""}`
      return [
        svg("path", { class: `${style} connector-under`, d: `M${from.x} ${from.y}H${edge}` }),
        svg("path", { class: style, d: `M${edge} ${from.y}L${to.x} ${to.y}` }),
      ]
    })
    this.element.replaceChildren(...paths)
  }
}
