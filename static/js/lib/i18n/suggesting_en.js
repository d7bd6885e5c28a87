// @ts-check
/** The sentences about suggestions that are typed in the text, in English. A part of `en.js`. */

export const suggestingEn = {
  "mode.name": "What typing does",
  "mode.suggesting": "Suggesting",
  "mode.reading": "Reading",
  "mode.suggesting.on": "Suggesting: what you type in the text becomes a suggestion.",
  "mode.reading.on": "Reading: keys change nothing.",
  "desk.text.suggesting": "The text (you review: what you type is a suggestion)",
  "keys.mode": "Suggesting or reading, for a reviewer",
  "suggesting.first": "What you type here is a suggestion. {writer} sees it as you type; the text changes only when {writer} accepts.",
  "suggesting.saved": "Suggestions saved {time}",
  "suggesting.late": "Since {time}: {count} suggestions not saved",
  "suggesting.late.one": "Since {time}: 1 suggestion not saved",
  "suggesting.unsent": "{count} suggestions not saved since {time}. This browser keeps them.",
  "suggesting.unsent.one": "1 suggestion not saved since {time}. This browser keeps it.",
  "suggesting.too-long": "One suggestion is too long to be saved. Shorten it, or put the rest in once the writer has decided about the beginning.",
  "suggesting.full": "This text has as many open suggestions as it can hold. More are saved once the writer has decided some.",
  "suggesting.edited": "{writer} changed this meanwhile. Type in it to suggest on the new text.",
  "suggesting.orphaned": "The passage is gone. Your words:",
  "suggesting.here": "Suggest here",
  "suggesting.reading": "Switch to Suggesting, and put the caret where the words belong.",
  "suggesting.folded": "{count} characters deleted",
  "suggesting.recovered": "What you had suggested is back in the text.",
  "suggesting.offered": "Suggestions of {when} were not saved:",
  "suggesting.again": "Suggest again",
  "suggesting.gone": "The text there has changed. Your words:",
}
