// @ts-check
/** The sentences of decisions about suggestions, in Korean. A part of `ko.js`. */

/** @type {Record<keyof typeof import("./decision_en.js").decisionEn, string>} */
export const decisionKo = {
  "decision.accepted": "반영했습니다",
  "decision.rejected": "거절했습니다",
  "decision.all.accept": "모두 반영 ({count})",
  "decision.all.reject": "모두 거절 ({count})",
  "decision.all.accept.sure": "제안 {count}건을 모두 반영할까요? 되돌릴 수 있습니다.",
  "decision.all.reject.sure": "제안 {count}건을 모두 거절할까요? 되돌릴 수 있습니다.",
  "decision.all.accept.yes": "모두 반영",
  "decision.all.reject.yes": "모두 거절",
  "decision.all.accept.done": "{count}건을 반영했습니다.",
  "decision.all.reject.done": "{count}건을 거절했습니다.",
  "decision.none": "아무것도 바꾸지 않았습니다.",
  "decision.left.text": "{count}건은 그 부분의 글이 바뀌어 남겨 두었습니다.",
  "decision.left.overlaps": "{count}건은 먼저 온 제안과 같은 부분을 고치므로 남겨 두었습니다.",
  "decision.left.changed": "{count}건은 방금 바뀌어 남겨 두었습니다. 다시 확인해 주세요.",
  "decision.take-back": "실행 취소",
  "decision.take-back.sure": "제안 {count}건을 한꺼번에 처리한 결정입니다. 모두 되돌릴까요?",
  "decision.taken-back": "되돌렸습니다.",
  "decision.conflict": "그 뒤에 글이 바뀌어 되돌릴 수 없습니다.",
  "decision.expired": "하루가 지난 결정은 되돌릴 수 없습니다. 본문을 직접 고쳐 주세요.",
  "decision.already": "이미 되돌렸습니다.",
  "keys.acceptAll": "제안 모두 반영",
  "review.too-large": "반영하면 글이 허용 분량을 넘습니다. 먼저 글을 조금 줄여 주세요.",
}
