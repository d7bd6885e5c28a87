// @ts-check
/** The sentences of a page that is offline, frozen, or read-only, in Korean. A part of `ko.js`. */

/** @type {Record<keyof typeof import("./states_en.js").statesEn, string>} */
export const statesKo = {
  "seat.reconnecting": "다시 연결 중…",
  "seat.unknown": "알 수 없음",
  "saved.silent": "응답 없음",
  "saved.read-only": "읽기 전용 · {time} 기준",
  "state.silent": "{time} 이후로 서버에서 답이 오지 않고 있습니다. 계속 쓰셔도 됩니다. 답이 올 때까지 쓰신 내용은 이 브라우저에 남아 있습니다.",
  "state.silent.reader": "{time} 이후로 서버에서 답이 오지 않고 있습니다. 글은 계속 읽을 수 있습니다. 지금 쓰는 의견은 이 브라우저에 남아 있으니, 답이 오면 보내 주세요.",
  "review.form.reason": "이유 덧붙이기",
  "review.silent": "아직 보내지 못했습니다. 서버에서 답이 오지 않고 있습니다. 쓰신 내용은 이 브라우저에 남아 있으니, 답이 오면 다시 보내 주세요.",
}
