// @ts-check
/** The sentences of what writer and reviewer say to each other, in Korean. A part of `ko.js`. */

/** @type {Record<keyof typeof import("./talk_en.js").talkEn, string>} */
export const talkKo = {
  "review.body.hint.reviewer": "무엇을, 왜 고치면 좋을까요?",
  "review.body.hint.writer": "예: 이 문장이 어색한가요?",
  "review.summary": "총평",
  "review.summary.add": "총평 쓰기",
  "review.summary.hint.reviewer": "글 전체에서 무엇이 좋았고, 무엇부터 고치면 좋을까요?",
  "review.summary.hint.writer": "글 전체에 대해 묻거나 알리고 싶은 점을 적어 주세요",
  "review.new.summary": "{name}님의 새 총평",
  "reply.edited": "수정됨",
  "reply.deleted": "답글을 삭제했습니다.",
}
