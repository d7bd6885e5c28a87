// @ts-check
/** The names that a screen reader speaks, in English. A part of `en.js`. */

export const spokenEn = {
  "review.subject": "{name}, “{quote}”",
  "review.subject.summary": "{name}, overall comment",
  "review.form": "Comment on “{quote}”",
  "review.act": "{act}: {subject}",
  "review.mark.comment": "comment",
  "review.mark.suggestion": "suggestion",
  "keys.card": "Into the buttons of a comment, and back",
  "keys.neighbour": "From one comment to the next",
}
