// @ts-check
/** The sentences about parts of suggestions in Korean. A part of `ko.js`. */

/** @type {Record<keyof typeof import("./deciding_en.js").decidingEn, string>} */
export const decidingKo = {
  "part.insert": "“{text}” 넣기",
  "part.delete": "“{quote}” 삭제",
  "part.replace": "“{quote}” 대신 “{text}”",
  "part.move": "“{text}” 옮기기",
  "part.more": "그 밖에 {count}곳",
  "part.space": "공백",
  "part.break": "줄바꿈",
  "review.suggestion.inserts": "(넣기)",
  "review.suggestion.moves": "(옮기기)",
  "review.parts": "{count}곳",
  "review.subject.part": "{name}, {what}",
  "review.new.suggestion": "{name}님의 새 제안: {what}",
  "review.status.withdrawn": "제안 취소됨",
  "review.status.fulfilled": "이미 글에 있음",
}
