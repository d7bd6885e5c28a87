// @ts-check
/** The sentences of a page that is offline, frozen, or read-only, in English. A part of `en.js`. */

export const statesEn = {
  "seat.reconnecting": "reconnecting…",
  "seat.unknown": "unknown",
  "saved.silent": "No answer",
  "saved.read-only": "Read only · as of {time}",
  "state.silent": "The server has not answered since {time}. Go on writing: what you write is kept in this browser until it answers.",
  "state.silent.reader": "The server has not answered since {time}. Go on reading; a comment that you write now is kept in this browser, to be sent when it answers.",
  "review.form.reason": "Add a reason",
  "review.silent": "Not sent: the server does not answer. Your words are kept in this browser; send again when it answers.",
}
