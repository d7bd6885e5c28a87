// @ts-check
/** The reasons why the server rejects a request, in English. A part of `en.js`. */

export const errorsEn = {
  "error.offline": "The server cannot be reached.",
  "error.server": "The server has a problem; try again in a moment.",
  "error.limited": "Too much at once; try again in a moment.",
  "error.quota": "You’ve reached the limit of documents. Delete some first.",
  "error.full": "The server has no space for anything new. What you write in open documents is still saved.",
  "error.unknown": "The server did not accept this. Reload the page and try again.",
  "error.signed-out": "You are not signed in any more. Reload the page.",
  "error.rights": "You may not do this, or not any more.",
  "error.gone": "This does not exist any more. Reload the page.",
  "error.changed": "It has changed meanwhile. Look at it again, then try once more.",
  "error.too-large": "This is longer than it may be. Shorten it and try again.",
  "error.invalid": "The server does not accept this text: it is empty, too long, or has characters that cannot be shown.",
  "error.address": "The server does not accept this from the address in your browser. Open the page by its public address.",
  "error.guests-off": "Guests cannot sign in here. Open the page from the product that brought you.",
  "error.invite": "The link is incomplete. Copy all of it again.",
  "error.own-document": "You are the writer of this document, so you cannot review it.",
  "error.no-reviewer": "This document has no reviewer.",
  "error.reviewer-exists": "Another person reviews this document already.",
  "error.name-from-host": "Your name comes from the product that signed you in. Change it there.",
  "error.not-a-guest": "Sign in on the other device as you did here.",
  "error.code": "The code is wrong, used or expired. Make a new one on the other device.",
  "error.document-full": "The document is as long as it may become. Take some text out first.",
  "error.text-changing": "The text is changing at this moment. Try again.",
  "error.too-many": "There is no room for more of these.",
}
