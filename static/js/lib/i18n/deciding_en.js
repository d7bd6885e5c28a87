// @ts-check
/** The sentences about parts of suggestions in English. A part of `en.js`. */

export const decidingEn = {
  "part.insert": "“{text}” added",
  "part.delete": "“{quote}” deleted",
  "part.replace": "“{quote}” becomes “{text}”",
  "part.move": "“{text}” moved",
  "part.more": "{count} more places",
  "part.space": "space",
  "part.break": "line break",
  "review.suggestion.inserts": "(add)",
  "review.suggestion.moves": "(move)",
  "review.parts": "{count} places",
  "review.subject.part": "{name}, {what}",
  "review.new.suggestion": "{name} suggests: {what}",
  "review.status.withdrawn": "withdrawn",
  "review.status.fulfilled": "in the text already",
}
