// @ts-check
/** The reasons why the server rejects a request, in Korean. A part of `ko.js`. */

/** @type {Record<keyof typeof import("./errors_en.js").errorsEn, string>} */
export const errorsKo = {
  "error.offline": "서버에 연결할 수 없습니다.",
  "error.server": "서버에 문제가 있습니다. 잠시 뒤 다시 시도해 주세요.",
  "error.limited": "요청이 너무 많습니다. 잠시 뒤 다시 시도해 주세요.",
  "error.quota": "만들 수 있는 문서를 모두 만들었습니다. 먼저 몇 개를 지워 주세요.",
  "error.full": "서버에 새로 저장할 공간이 없습니다. 열려 있는 문서에 쓰는 글은 계속 저장됩니다.",
  "error.unknown": "서버가 이 요청을 받아들이지 않았습니다. 페이지를 새로 고친 뒤 다시 시도해 주세요.",
  "error.signed-out": "로그인이 끝났습니다. 페이지를 새로 고쳐 주세요.",
  "error.rights": "권한이 없거나 더 이상 할 수 없는 일입니다.",
  "error.gone": "더 이상 존재하지 않습니다. 페이지를 새로 고쳐 주세요.",
  "error.changed": "그사이 내용이 바뀌었습니다. 다시 확인한 뒤 시도해 주세요.",
  "error.too-large": "허용된 길이를 넘습니다. 줄여서 다시 시도해 주세요.",
  "error.invalid": "이 글은 저장할 수 없습니다. 비어 있거나 너무 길거나, 표시할 수 없는 문자가 들어 있습니다.",
  "error.address": "지금 주소로 보낸 요청은 서버가 받지 않습니다. 공개된 주소로 페이지를 열어 주세요.",
  "error.guests-off": "이곳에서는 로그인 없이 들어올 수 없습니다. 이용하시던 서비스에서 페이지를 열어 주세요.",
  "error.invite": "링크가 온전하지 않습니다. 전체를 다시 복사해 주세요.",
  "error.own-document": "이 글의 작성자이므로 직접 첨삭할 수 없습니다.",
  "error.no-reviewer": "이 글에는 검토자가 없습니다.",
  "error.reviewer-exists": "이미 다른 사람이 첨삭하고 있습니다.",
  "error.name-from-host": "이름은 로그인한 서비스에서 가져옵니다. 그곳에서 바꿔 주세요.",
  "error.not-a-guest": "다른 기기에서도 여기와 같은 방법으로 로그인해 주세요.",
  "error.code": "코드가 틀렸거나 이미 쓰였거나 만료되었습니다. 다른 기기에서 새로 만들어 주세요.",
  "error.document-full": "글이 허용 분량을 넘습니다. 먼저 글을 조금 줄여 주세요.",
  "error.text-changing": "지금 글이 바뀌는 중입니다. 다시 시도해 주세요.",
  "error.too-many": "더 이상 추가할 수 없습니다.",
}
