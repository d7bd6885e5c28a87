/**
 * The print: title, date, the whole text, and the comments as numbered notes behind it.
 *
 * The editor draws only the part of a long text that is in the window, and cards have no place on paper,
 * so the print is a view of its own.
 */

import type { Link, Review } from "../lib/api.ts"
import { el } from "../lib/dom.ts"
import { authorName, i18n, number, t } from "../lib/i18n.ts"
import { now } from "../lib/server_clock.ts"
import { partsView } from "../reviews/diff_view.ts"
import { isSuggestion } from "../reviews/parts.ts"
import type { Reviews } from "../reviews/reviews.ts"
import { stands } from "../reviews/spots.ts"
import { isSummary, quoteOf } from "../reviews/summary.ts"
import { charactersIn } from "./counts.ts"
import { markedLines, type Piece } from "./marked_lines.ts"

/** `reviews`: `null` for the text alone. */
type Printed = { link: Link | null, text: string, language: string, reviews: Reviews | null }

/** Of a quote, so many characters stand above the comment. */
const QUOTE_MAX = 160

export function printView({ link, text, language, reviews }: Printed) {
  const open = reviews?.open ?? []
  const located = open.filter((review) => reviews?.passageOf(review.id))
  const marks = located.flatMap((review, at) => {
    const spots = reviews?.spotsOf(review.id).filter(stands) ?? []
    return spots.map(({ from, to }) => ({ from, to, number: at + 1 }))
  })
  const ofText = language ? { lang: language } : {}
  const title = link?.title || t("start.untitled")
  const lines = markedLines(text, marks)
  // The first line of most texts is their title, which stands once.
  const own = text.split("\n", 1)[0]?.trim() === title.trim() ? lines.shift() : undefined
  return el(
    "article",
    { id: "print-view", class: "print-view", lang: i18n.language },
    own ? line("h1", own, ofText) : el("h1", { text: title }),
    el("p", { class: "print-facts", text: facts(link, text) }),
    el("div", { class: "print-text", ...ofText }, ...lines.map((pieces) => line("p", pieces))),
    section(t("review.summary"), open.filter(isSummary).map((review) => note(review, null))),
    section(t("print.comments"), located.map((review, at) => note(review, at + 1))),
    section(t("print.lost"), (reviews?.orphans ?? []).map((review) => note(review, null))),
  )
}

function facts(link: Link | null, text: string) {
  const date = new Intl.DateTimeFormat(i18n.language, { dateStyle: "long", timeStyle: "short" }).format(now())
  const writer = link && `${t("role.writer")} ${link.writer.name}`
  const reviewer = link?.reviewer && `${t("role.reviewer")} ${link.reviewer.name}`
  const characters = t("start.characters", { count: number(charactersIn(text)) })
  return [date, writer, reviewer, characters].filter((fact) => fact).join(" · ")
}

function line(tag: "h1" | "p", pieces: Piece[], given: { lang?: string } = {}) {
  const drawn = el(tag, { dir: "auto", ...given })
  for (const { text, marked, ends } of pieces) {
    drawn.append(marked ? el("span", { class: "print-mark", text }) : text)
    if (0 < ends.length) drawn.append(el("sup", { text: ends.map((end) => `[${end}]`).join("") }))
  }
  return drawn
}

const section = (heading: string, notes: HTMLElement[]) =>
  notes.length === 0 ? null : el("section", { class: "print-notes" }, el("h2", { text: heading }), el("ul", {}, ...notes))

function note(review: Review, numbered: number | null) {
  const quote = quoteOf(review)
  const short = quote.length <= QUOTE_MAX ? quote : `${quote.slice(0, QUOTE_MAX - 1)}…`
  const head = el("p", { class: "print-who" }, el("strong", { text: authorName(review.author) }), ` · ${day(review.created_at)}`)
  const drawn = el("li", {}, numbered === null ? null : el("span", { class: "print-number", text: `[${numbered}]` }), head)
  if (isSuggestion(review)) drawn.append(...partsView(review.parts))
  else if (short !== "") drawn.append(el("blockquote", { text: short }))
  if (review.body !== "") drawn.append(el("p", { class: "print-body", text: review.body }))
  for (const { author, body, created_at: at } of review.replies) {
    const who = el("p", { class: "print-who" }, "↳ ", el("strong", { text: authorName(author) }), ` · ${day(at)}`)
    drawn.append(el("div", { class: "print-reply" }, who, el("p", { class: "print-body", text: body })))
  }
  return drawn
}

const day = (moment: string) => new Intl.DateTimeFormat(i18n.language, { dateStyle: "medium", timeStyle: "short" }).format(new Date(moment))
