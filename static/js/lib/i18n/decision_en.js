// @ts-check
/** The sentences of decisions about suggestions, in English. A part of `en.js`. */

export const decisionEn = {
  "decision.accepted": "Accepted",
  "decision.rejected": "Rejected",
  "decision.all.accept": "Accept all ({count})",
  "decision.all.reject": "Reject all ({count})",
  "decision.all.accept.sure": "Put all {count} into the text? You can undo it.",
  "decision.all.reject.sure": "Reject all {count}? You can undo it.",
  "decision.all.accept.yes": "Accept all",
  "decision.all.reject.yes": "Reject all",
  "decision.all.accept.done": "{count} put into the text.",
  "decision.all.reject.done": "{count} rejected.",
  "decision.none": "Nothing was decided.",
  "decision.left.text": "{count} left: the text there has changed.",
  "decision.left.overlaps": "{count} left: an older suggestion changes the same words.",
  "decision.left.changed": "{count} left: changed just now. Look again.",
  "decision.take-back": "Undo",
  "decision.take-back.sure": "This was one decision about {count} suggestions. Undo all of them?",
  "decision.taken-back": "Undone.",
  "decision.conflict": "The text there has changed since; this cannot be undone.",
  "decision.expired": "A decision can be undone for a day. Change the text instead.",
  "decision.already": "This is undone already.",
  "keys.acceptAll": "Accept all suggestions",
  "review.too-large": "With this the text would be longer than it may become. Take some text out first.",
}
