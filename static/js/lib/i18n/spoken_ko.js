// @ts-check
/** The names that a screen reader speaks, in Korean. A part of `ko.js`. */

/** @type {Record<keyof typeof import("./spoken_en.js").spokenEn, string>} */
export const spokenKo = {
  "review.subject": "{name}, “{quote}”",
  "review.subject.summary": "{name}, 총평",
  "review.form": "“{quote}”에 의견 달기",
  "review.act": "{act}: {subject}",
  "review.mark.comment": "의견",
  "review.mark.suggestion": "고쳐 쓰기 제안",
  "keys.card": "의견의 버튼으로 들어가기와 나오기",
  "keys.neighbour": "옆 의견으로 이동",
}
