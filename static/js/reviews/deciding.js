// @ts-check
/** The parts of the desk that show and decide suggestions in the text, with their keys, by role. */

import { DecisionBar } from "./decision_bar.js"
import { ViewMenu } from "./view_menu.js"

/**
 * @param {import("../desk/editor.js").Editor} editor @param {import("./reviews.js").Reviews} reviews
 * @param {import("./decisions.js").Decisions} decisions @param {import("./actions.js").ReviewActions} actions
 */
export function decidingParts(editor, reviews, decisions, actions) {
  const views = new ViewMenu(editor, reviews)
  if (editor.role !== "writer") return { parts: [views], commands: { view: () => views.next() } }
  const bar = new DecisionBar(editor, decisions, actions)
  const commands = { acceptNext: () => bar.decide("accept"), rejectNext: () => bar.decide("reject"), say: () => bar.say(), view: () => views.next() }
  return { parts: [bar, views], commands }
}
