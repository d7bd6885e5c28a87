// @ts-check
/** The lines and the scales of the plots of the admin page. */

import assert from "node:assert/strict"
import { test } from "node:test"

import { paths, scaleTop } from "../../static/js/admin/plots.ts"

test("the top of a scale and its half are whole, and no value is above it", () => {
  const tops = [[0, 2], [1, 2], [2, 2], [3, 4], [5, 6], [7, 10], [11, 20], [38, 40], [212, 400], [601, 1_000]]
  for (const [most, top] of tops) assert.equal(scaleTop(Number(most)), top, `${most}`)
})

test("minutes without figures break the line and the area", () => {
  const { line, area } = paths([null, 0, 2, null, 1], 2)
  assert.equal(line, "M81.5 78.0L163.0 18.0M326.0 48.0h1")
  assert.equal(area, "M81.5 78.0L163.0 18.0L163.0 78L81.5 78ZM326.0 48.0L326.0 78L326.0 78Z")
  assert.deepEqual(paths([null, null], 2), { line: "", area: "" })
})
