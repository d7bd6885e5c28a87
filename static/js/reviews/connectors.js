// @ts-check
/** The thin lines that tie each card to its passage. Owns one drawing over the desk. */

import { svg } from "../lib/dom.js"

/** @typedef {{ id: string, active: boolean, from: { x: number, y: number }, edge: number, to: { x: number, y: number } }} Connector */

export class Connectors {
  /** @param {HTMLElement} desk what the coordinates are relative to */
  constructor(desk) {
    this.element = svg("svg", { class: "ties", "aria-hidden": "true" })
    desk.append(this.element)
  }

  /** @param {readonly Connector[]} ties */
  draw(ties) {
    // Along under the line to the edge of the paper, dotted, so that it does not look as if the rest
    // of the line were marked too; then across to the card.
    const paths = ties.flatMap(({ active, from, edge, to }) => [
      svg("path", { class: active ? "tie tie-under tie-active" : "tie tie-under", d: `M${from.x} ${from.y}H${edge}` }),
      svg("path", { class: active ? "tie tie-active" : "tie", d: `M${edge} ${from.y}L${to.x} ${to.y}` }),
    ])
    this.element.replaceChildren(...paths)
  }
}
