// @ts-check
/** The sentences of the text as a whole in Korean: its counts. A part of `ko.js`. */

/** @type {Record<keyof typeof import("./text_en.js").textEn, string>} */
export const textKo = {
  "count.words": "단어",
  "count.selected": "선택 {count}자",
  "count.unit.words": "단어",
}
