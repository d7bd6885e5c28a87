/** The parts of the desk that show and decide suggestions in the text, with their keys, by role. */

import type { Editor } from "../desk/editor.ts"
import { byId } from "../lib/dom.ts"
import type { ReviewActions } from "./actions.ts"
import { DecisionBar } from "./decision_bar.ts"
import type { Decisions } from "./decisions.ts"
import type { Margin } from "./margin.ts"
import type { Reviews } from "./reviews.ts"
import { ViewMenu } from "./view_menu.ts"

export function decidingParts(editor: Editor, reviews: Reviews, decisions: Decisions, margin: Margin, actions: ReviewActions) {
  const views = new ViewMenu(editor, reviews)
  const common = { view: () => views.next(), region: () => goToRegion(editor, reviews, margin) }
  if (editor.role !== "writer") return { parts: [views], commands: common }
  const bar = new DecisionBar(editor, decisions, margin, actions)
  const commands = { ...common, acceptNext: () => bar.decide("accept"), rejectNext: () => bar.decide("reject"), say: () => bar.say() }
  return { parts: [bar, views], commands }
}

/** Moves the focus from the text to the bar at the caret, from there to the cards, and back to the text. */
function goToRegion(editor: Editor, reviews: Reviews, margin: Margin) {
  const bar = byId("decision-bar")
  const first = bar.querySelector("button:not([hidden])")
  if (editor.view.hasFocus && !bar.hidden && first instanceof HTMLElement) return first.focus()
  const { open } = reviews
  const caret = editor.selection.from
  const near = open.find(({ id }) => caret <= (reviews.lastPassageOf(id)?.from ?? 0)) ?? open.at(-1)
  const card = margin.active ?? near?.id
  if (card && !byId("margin").contains(document.activeElement)) return margin.focusCard(card)
  margin.closeSheet()
  editor.focus()
}
