// @ts-check
/** The sentences of the text as a whole in English: its counts. A part of `en.js`. */

export const textEn = {
  "count.words": "Words",
  "count.selected": "{count} selected",
  "count.unit.words": "words",
}
