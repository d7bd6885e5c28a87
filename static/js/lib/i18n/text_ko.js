// @ts-check
/** The sentences of the text as a whole in Korean: its counts, the ways out with it, the print. A part of `ko.js`. */

/** @type {Record<keyof typeof import("./text_en.js").textEn, string>} */
export const textKo = {
  "count.words": "단어",
  "count.selected": "선택 {count}자",
  "count.unit.words": "단어",

  "menu.copy": "글 전체 복사",
  "menu.copy.selection": "선택한 부분 복사",
  "menu.copy.paragraph": "이 문단 복사",
  "menu.save": ".txt 파일로 저장",
  "menu.print": "인쇄",
  "out.copied.text": "글 전체 {count}자를 복사했습니다.",
  "out.copied.selection": "선택한 {count}자를 복사했습니다.",
  "out.copied.paragraph": "이 문단 {count}자를 복사했습니다.",
  "out.failed": "브라우저가 복사를 허용하지 않았습니다. 대신 파일로 저장해 주세요.",
  "out.saved": "‘{name}’ 파일로 내려받았습니다.",
  "print.title": "인쇄",
  "print.with": "글과 의견",
  "print.without": "글만",
  "print.go": "인쇄하기",
  "print.comments": "검토 의견",
  "print.lost": "위치를 잃은 의견",
  "keys.print": "인쇄",
}
