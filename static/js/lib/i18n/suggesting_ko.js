// @ts-check
/** The sentences about suggestions that are typed in the text, in Korean. A part of `ko.js`. */

/** @type {Record<keyof typeof import("./suggesting_en.js").suggestingEn, string>} */
export const suggestingKo = {
  "mode.name": "본문에서 글자를 입력하면",
  "mode.suggesting": "고쳐 쓰기",
  "mode.reading": "읽기",
  "mode.suggesting.on": "고쳐 쓰기: 본문에 쓰면 제안이 됩니다.",
  "mode.reading.on": "읽기: 글자를 눌러도 바뀌지 않습니다.",
  "desk.text.suggesting": "본문 (검토자: 여기서 고치면 제안이 됩니다)",
  "keys.mode": "고쳐 쓰기 또는 읽기 (검토자)",
  "suggesting.first": "여기서 고치면 제안이 되어 {writer}님에게 바로 보입니다. {writer}님이 반영하기 전에는 글이 바뀌지 않습니다.",
  "suggesting.saved": "{time} 제안 저장됨",
  "suggesting.late": "{time} 이후 제안 {count}건 저장 안 됨",
  "suggesting.late.one": "{time} 이후 제안 1건 저장 안 됨",
  "suggesting.unsent": "제안 {count}건을 {time}부터 저장하지 못했습니다. 이 브라우저에 보관 중입니다.",
  "suggesting.unsent.one": "제안 1건을 {time}부터 저장하지 못했습니다. 이 브라우저에 보관 중입니다.",
  "suggesting.too-long": "제안 하나가 너무 길어 저장되지 않았습니다. 줄이거나, 작성자가 앞부분을 결정한 뒤에 나머지를 넣어 주세요.",
  "suggesting.full": "이 글에 열린 제안이 가득 찼습니다. 작성자가 일부를 정리하면 이어서 저장됩니다.",
  "suggesting.edited": "제안하는 사이 {writer}님이 이 부분을 고쳤습니다. 이어서 고치면 새 글에 맞춰 다시 제안합니다.",
  "suggesting.orphaned": "이 부분은 지워졌습니다. 제안하신 말:",
  "suggesting.here": "여기에 제안",
  "suggesting.reading": "고쳐 쓰기로 바꾼 다음, 제안할 곳에 커서를 놓아 주세요.",
  "suggesting.folded": "{count}자 삭제",
  "suggesting.recovered": "지난번에 고쳐 쓴 내용을 본문에 되살렸습니다.",
  "suggesting.offered": "{when}에 고쳐 쓴 다음 내용은 저장되지 않았습니다.",
  "suggesting.again": "다시 제안하기",
  "suggesting.gone": "그 부분의 글이 바뀌었습니다. 제안하신 말:",
}
