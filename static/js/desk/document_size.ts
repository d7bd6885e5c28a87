/**
 * A document that is nearly as large as it may become, or is: what the server says of it, and the
 * ways out with the text.
 *
 * Imports nothing that touches the DOM, so it is tested with `node --test`.
 */

export type Size = { state: "ample" | "near" | "full", bytes: number, limit: number }

/** Until the server says otherwise. */
export const ample: Readonly<Size> = Object.freeze({ state: "ample", bytes: 0, limit: 0 })

/** The fields of `document.size`. */
export function sizeIn({ state, bytes, limit }: { [field: string]: any }): Readonly<Size> {
  if (state !== "near" && state !== "full") return ample
  return Object.freeze({ state, bytes: Number(bytes) || 0, limit: Number(limit) || 0 })
}

/** How much of it is taken, in whole percent, and never more than all. */
export function percentOf({ bytes, limit }: Size) {
  return 0 < limit ? Math.min(Math.floor((100 * bytes) / limit), 100) : 100
}

/** A name that every system takes for a file. */
export function fileName(title: string, otherwise: string) {
  // Characters that a path or a shell interprets, and invisible ones.
  const plain = title.replace(/[\\/:*?"<>|\p{C}]+/gu, " ").replace(/\s+/g, " ").trim()
  const short = [...plain.replace(/^[.\s]+/, "")].slice(0, 80).join("").replace(/[.\s]+$/, "")
  return `${short || otherwise}.txt`
}
