// @ts-check
/** The redirect to a sign-in and back. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { storeInvite, signInAddress, takeInvite } from "../../static/js/lib/sign_in.ts"

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
