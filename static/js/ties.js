// @ts-check
/** The thin lines that tie each card to its passage. Owns one drawing over the desk. */

import { svg } from "./dom.js"

/** @typedef {{ id: string, active: boolean, from: { x: number, y: number }, edge: number, to: { x: number, y: number } }} Tie */

export class Ties {
  /** @param {HTMLElement} desk what the coordinates are relative to */
  constructor(desk) {
    this.element = svg("svg", { class: "ties", "aria-hidden": "true" })
    desk.append(this.element)
  }

  /** @param {readonly Tie[]} ties */
  draw(ties) {
    const paths = ties.map(({ active, from, edge, to }) =>
      svg("path", {
        class: active ? "tie tie-active" : "tie",
        // Along under the line to the edge of the paper, then across to the card.
        d: `M${from.x} ${from.y}H${edge}L${to.x} ${to.y}`,
      }),
    )
    this.element.replaceChildren(...paths)
  }
}
