// @ts-check
/** The sentences of the text as a whole in English: its counts, the ways out with it, the print. A part of `en.js`. */

export const textEn = {
  "count.words": "Words",
  "count.selected": "{count} selected",
  "count.unit.words": "words",

  "menu.copy": "Copy the text",
  "menu.copy.selection": "Copy the selection",
  "menu.copy.paragraph": "Copy this paragraph",
  "menu.save": "Save as .txt",
  "menu.print": "Print",
  "out.copied.text": "Copied the whole text: {count} characters.",
  "out.copied.selection": "Copied the selection: {count} characters.",
  "out.copied.paragraph": "Copied this paragraph: {count} characters.",
  "out.failed": "The browser did not allow copying. Save the text as a file instead.",
  "out.saved": "Downloaded as “{name}”.",
  "print.title": "Print",
  "print.with": "The text with the comments",
  "print.without": "The text only",
  "print.go": "Print",
  "print.comments": "Comments",
  "print.lost": "Comments whose passage is gone",
  "keys.print": "Print",
}
