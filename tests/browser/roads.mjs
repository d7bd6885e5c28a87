// @ts-check
/**
 * The main roads of the pages: the browser tests of a run without `--all`, by file and the beginning of their names. Each
 * size and scheme, and all else, runs with `--all`. A further file costs a process and a browser.
 */

/** @type {Readonly<Record<string, readonly string[]>>} */
export const ROADS = {
  accessible: ["the start page, empty", "the gate, when it asks", "the desk of both with reviews", "the admin page, and an ended seat"],
  admin: ["evicting a session by keyboard"],
  bin: ["the start page moves a document to the bin"],
  collaboration: ["two users write, comment", "the peer's caret follows", "a third user is refused", "the same user's other tab is named", "reviews can be edited"],
  deciding: ["parts of suggestions are drawn", "Alt Enter accepts the suggestion at the caret and goes on, Ctrl Z takes it back", "the bar at the caret decides"],
  decisions: ["an accepted suggestion is taken back with its text (ko-KR, wide", "all suggestions are accepted at once, and taken back (ko-KR, wide"],
  editor: ["a syllable is composed whole at each caret and over each selection beside replaced words, and the writer's", "letters of the user that did not enter", "an announced edit of the page is read"],
  embedded: ["tokens of five seconds are renewed"],
  embedding: ["two users of an own page", "the desk works in the frame"],
  entry: ["an invite survives a sign-in elsewhere", "a guest signs out after a warning"],
  error_states: ["a killed server is reported", "a full disk is called by its name, and what was typed meanwhile is saved when there is space", "clients of a drained server"],
  files: ["a reviewer exports, too", "a chosen file becomes a document, by the keyboard", "a Word file comes back as the text"],
  find_print: ["the writer replaces one match or all"],
  fuzz: ["at each rest of a random writer"],
  history: ["a pause stores a version"],
  identity: ["the reviewer is removed"],
  ime: ["a noun is composed over"],
  incoming: ["a paste, a key and an input method of the writer"],
  keyboard: ["a text is pasted, commented on, corrected"],
  margin: ["with 20 reviews on one paragraph"],
  offers: ["an offer is made, claimed by its link"],
  own_data: ["the writer sees the comments of a deleted reviewer"],
  partners: ["a request about a document with a message"],
  phone: ["at 360 px: a tapped passage and its card", "Back closes the sheet"],
  reconnect: ["the page shows the time of its next attempt, and reconnects at once on request or when the network is back"],
  sign_in: ["a closed installation: sign-in, an invite, and sign-out at the provider (ko"],
  sections: ["each question has a meter"],
  suggesting: ["what a reviewer types is a suggestion", "keys, deletion, line breaks", "an accepted suggestion stays", "what the server did not acknowledge", "Hangul is composed in a word", "the writer edits the line of a composition", "the switch says what typing does"],
  takeover: ["a page resumes its seat on another server"],
  talk: ["replies are edited and deleted by their author (1280, ko"],
  unsaved: ["closing a tab warns of unsaved edits", "a tab crash loses no journaled edit", "a lost seat shows unsaved edits"],
  wait_queue: ["a waiter in a second tab is seated"],
}
