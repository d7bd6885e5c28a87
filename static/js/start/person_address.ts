/**
 * How a user is named to the server: by an exact handle, or by a personal link.
 * Pure, tested with `node --test`.
 */

/** Letters, digits, underscores and Hangul syllables. */
const HANDLE = /^[a-z0-9_\uAC00-\uD7A3]{2,30}$/
/** 256 bits in base 64. */
const TOKEN = /^[\w-]{43}$/
const FRAGMENT = /^#ask=([\w-]{43})$/

/**
 * A handle as the server stores it, without the `@`. A keyboard may compose Hangul of single letters.
 *
 * @returns `null`: it cannot be a handle
 */
export function handleIn(text: string): string | null {
  const handle = text.normalize("NFC").trim().replace(/^[@＠]/, "").toLowerCase()
  return HANDLE.test(handle) ? handle : null
}

/** The token of a personal link. @param hash of an address */
export const tokenIn = (hash: string): string | null => FRAGMENT.exec(hash)?.[1] ?? null

/**
 * The person in a text that a user typed or pasted, as the server reads it.
 *
 * @param origin of this site
 * @returns `@handle` or a token; `null`: it is neither
 */
export function personIn(text: string, origin: string): string | null {
  const typed = text.trim()
  if (TOKEN.test(typed)) return typed
  if (typed.includes("#") || typed.includes("/")) return tokenOf(typed, origin)
  const handle = handleIn(typed)
  return handle === null ? null : `@${handle}`
}

function tokenOf(text: string, origin: string) {
  // An address may come without its scheme.
  const { host, protocol } = new URL(origin)
  const address = text.startsWith(host) ? `${protocol}//${text}` : text
  if (!URL.canParse(address, origin)) return null
  const url = new URL(address, origin)
  return url.origin === origin ? tokenIn(url.hash) : null
}
