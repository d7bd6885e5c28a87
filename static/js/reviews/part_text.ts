/** The parts of a suggestion in words: what becomes what, for a name or to be spoken. */

import type { Part } from "../lib/api.ts"
import { number, t } from "../lib/i18n.ts"
import { kindOf, movedText } from "./parts.ts"

/** So much of a text is spoken, in UTF-16 units. */
const TEXT_MAX = 120
/** So many parts are spoken. */
const PARTS_MAX = 4

/** @param parts at least one */
export function sayParts(parts: readonly Part[]) {
  const text = movedText(parts)
  if (text !== null) return t("part.move", { text: spelt(text) })
  const said = parts.slice(0, PARTS_MAX).map(sayPart)
  const more = parts.length - said.length
  return (more === 0 ? said : [...said, t("part.more", { count: number(more) })]).join("; ")
}

function sayPart(part: Part) {
  return t(`part.${kindOf(part)}`, { quote: spelt(part.anchor.quote), text: spelt(part.text) })
}

/** White space alone is spelt out: else nothing would be spoken. */
function spelt(text: string) {
  if (text.trim() !== "") return inShort(text)
  const words = [...text].slice(0, PARTS_MAX).map((space) => t(space === "\n" ? "part.break" : "part.space"))
  return words.join(", ")
}

/** A text in one line, cut off. @param most in UTF-16 units */
export function inShort(text: string, most: number = TEXT_MAX) {
  const line = text.replace(/\s+/g, " ").trim()
  return line.length <= most ? line : `${line.slice(0, most - 1)}…`
}
