// @ts-check
/** The sentences of what writer and reviewer say to each other, in English. A part of `en.js`. */

export const talkEn = {
  "review.body.hint.reviewer": "What should be different, and why?",
  "review.body.hint.writer": "For example: does this sentence read well?",
  "review.summary": "Overall comment",
  "review.summary.add": "Overall comment",
  "review.summary.hint.reviewer": "The text as a whole: what works, and what should change first?",
  "review.summary.hint.writer": "A question or a note about the whole text",
  "review.new.summary": "{name}: new overall comment",
  "reply.edited": "edited",
  "reply.deleted": "Reply deleted.",
}
