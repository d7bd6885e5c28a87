// @ts-check
/** The redirect to a sign-in and back. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { afterSignOut, leadToSignIn, opensWindow, signInAddress, storeInvite, takeFault, takeInvite } from "../../static/js/lib/sign_in.ts"

const here = { origin: "https://galley.example", pathname: "/s/shr_1" }

test("the return address is the page's, encoded and without its fragment", () => {
  const address = signInAddress("https://app.example/in?next={return}&x=1", here)
  assert.equal(address, "https://app.example/in?next=https%3A%2F%2Fgalley.example%2Fs%2Fshr_1&x=1")
  assert.equal(signInAddress("https://app.example/in", here), "https://app.example/in")
})

test("without storage an invite is not retained, and no call fails", () => {
  storeInvite("shr_1", "key")
  assert.equal(takeInvite("shr_1"), "")
})

/** Puts a page at this address, in a frame or not. @param {string} address @param {boolean} [isFramed] */
function visit(address, isFramed = false) {
  const at = new URL(address)
  const self = { location: at }
  const history = { replaceState: (/** @type {null} */ _state, /** @type {string} */ _title, /** @type {string} */ next) => (at.href = new URL(next, at).href) }
  Object.assign(globalThis, { location: at, history, window: { self, top: isFramed ? {} : self } })
  return at
}

test("the fault of a sign-in leaves the address, and a foreign one is none", () => {
  const at = visit("https://galley.example/?sign_in=denied&return=%2Fd%2Fdoc_1#ask=x")
  assert.deepEqual(takeFault(), { fault: "denied", back: "/d/doc_1" })
  assert.equal(at.href, "https://galley.example/#ask=x")
  assert.equal(takeFault(), null)
  visit("https://galley.example/?sign_in=constructor&return=/")
  assert.equal(takeFault(), null)
  visit("https://galley.example/?sign_in=away&return=https://evil.example/")
  assert.deepEqual(takeFault(), { fault: "away", back: "/" })
})

test("a provider shows itself in no frame: the sign-in opens a window, and the sign-out stays", () => {
  const [ours, theirs] = ["https://galley.example/api/auth/oidc/start?return={return}", "https://app.example/in"]
  const link = () => /** @type {HTMLAnchorElement} */ ({ href: "", target: "" })
  for (const [isFramed, template, target] of /** @type {const} */ ([[true, ours, "_blank"], [true, theirs, ""], [false, ours, ""]])) {
    visit("https://galley.example/d/doc_1", isFramed)
    const go = link()
    leadToSignIn(go, template)
    assert.deepEqual([go.target, opensWindow(template)], [target, target !== ""])
  }
  const go = link()
  leadToSignIn(go, ours, "/s/shr_1")
  assert.equal(new URL(go.href).searchParams.get("return"), "https://galley.example/s/shr_1")
  assert.deepEqual(["https://id.example/out", null].map(afterSignOut), ["https://id.example/out", "/"])
  visit("https://galley.example/", true)
  assert.equal(afterSignOut("https://id.example/out"), "/")
})
