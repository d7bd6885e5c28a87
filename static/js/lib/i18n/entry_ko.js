// @ts-check
/** The sentences of signing in and out, in Korean. A part of `ko.js`. */

/** @type {Record<keyof typeof import("./entry_en.js").entryEn, string>} */
export const entryKo = {
  "entry.name.title": "첨삭을 부탁받으셨습니다",
  "entry.name.text": "시작하기 전에 이름을 알려 주세요. 작성자에게 보이는 이름입니다.",
  "entry.name.go": "검토 시작",
  "entry.opening": "문서를 여는 중입니다…",
  "entry.exists.title": "이미 검토자가 있는 문서입니다",
  "entry.missing.title": "열 수 있는 문서가 아닙니다",
  "entry.missing.text": "문서가 삭제되었거나, 다른 사람의 문서이거나, 링크가 취소되었습니다. 링크를 보낸 분에게 물어봐 주세요.",
  "entry.incomplete.title": "링크가 잘렸습니다",
  "entry.incomplete.text": "링크 뒷부분이 빠져 있습니다. 링크를 다시 받아 끝까지 복사해 주세요.",
  "entry.failed.title": "문서를 열지 못했습니다",
  "entry.failed.text": "잃어버린 것은 없습니다. {why}",
  "entry.signin.title": "로그인되어 있지 않습니다",
  "entry.signin.text": "로그인이 끝났거나 이 브라우저에서 로그인한 적이 없습니다. 저장된 내용은 모두 안전합니다. 원래 쓰던 서비스에서 이 화면을 다시 열어 주세요.",
  "entry.signin.back": "로그인이 끝났거나 이 브라우저에서 로그인한 적이 없습니다. 저장된 내용은 모두 안전합니다. 로그인하면 이 화면으로 돌아옵니다.",
  "entry.stranger.title": "로그인되어 있지 않습니다",
  "entry.stranger.text": "이 브라우저에는 이 문서를 열 수 있는 로그인이 없습니다. 게스트가 시작한 문서는 시작한 브라우저에서 열립니다. 그 브라우저의 ‘다른 기기에서 사용하기’로 여기에서도 열 수 있습니다. 다른 분의 글을 검토하려면 받은 초대 링크를 여세요.",
  "entry.unsaved": "아직 저장되지 않은 내용이 이 브라우저에 보관되어 있습니다. 다시 로그인하면 본문에 넣을 수 있습니다.",
  "entry.review.text": "{name}님으로 로그인되어 있습니다. 계속하면 이 글을 첨삭하는 유일한 검토자가 되고, 작성자에게 이름이 보입니다. 누가 보낸 링크인지 모른다면 열지 마세요.",
  "entry.review.go": "{name} 이름으로 검토하기",
  "entry.review.no": "나중에",
  "signin.go": "로그인",
  "start.signin": "로그인 후 이용할 수 있습니다. 원래 쓰던 서비스에서 Galley를 열어 주세요.",
  "start.signin.back": "로그인 후 이용할 수 있습니다. 로그인하면 이 화면으로 돌아옵니다.",

  "menu.leave": "로그아웃",
  "leave.sure": "로그아웃할까요? 지금은 {name}님입니다.",
  "leave.sure.guest": "이 기기에서 나갈까요? 지금은 게스트 {name}님입니다. 게스트는 비밀번호가 없어 다시 로그인할 수 없습니다. ‘다른 기기에서 사용하기’로 옮겨 두지 않았다면 문서와 의견을 더는 열 수 없게 됩니다.",
  "leave.unsaved": "아직 저장되지 않은 내용이 이 브라우저에만 있습니다. 나가면 지워집니다.",
  "leave.yes": "로그아웃",
  "leave.elsewhere": "원래 쓰던 서비스에서 여전히 로그인되어 있습니다. 그곳에서 로그아웃해 주세요.",
}
