// @ts-check
/**
 * A document that is nearly as large as it may become, or is: what the server says of it, and the
 * ways out with the text.
 *
 * Imports nothing that touches the DOM, so it is tested with `node --test`.
 */

/** @typedef {{ state: "ample" | "near" | "full", bytes: number, limit: number }} Size */

/** @type {Readonly<Size>} Until the server says otherwise. */
export const ample = Object.freeze({ state: "ample", bytes: 0, limit: 0 })

/** The fields of `document.size`. @param {{ [field: string]: any }} event @returns {Readonly<Size>} */
export function sizeIn({ state, bytes, limit }) {
  if (state !== "near" && state !== "full") return ample
  return Object.freeze({ state, bytes: Number(bytes) || 0, limit: Number(limit) || 0 })
}

/** How much of it is taken, in whole percent, and never more than all. @param {Size} size */
export function percentOf({ bytes, limit }) {
  return 0 < limit ? Math.min(Math.floor((100 * bytes) / limit), 100) : 100
}

/** A name that every system takes for a file. @param {string} title @param {string} otherwise */
export function fileName(title, otherwise) {
  // Characters that a path or a shell interprets, and invisible ones.
  const plain = title.replace(/[\\/:*?"<>|\p{C}]+/gu, " ").replace(/\s+/g, " ").trim()
  const short = [...plain.replace(/^[.\s]+/, "")].slice(0, 80).join("").replace(/[.\s]+$/, "")
  return `${short || otherwise}.txt`
}
