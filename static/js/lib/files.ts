/**
 * Documents as files: the export of a share link, and the import of a file.
 *
 * A server builds an export once for all callers; until then it answers 202 with the progress. An import
 * is a request of its own kind: only `XMLHttpRequest` reports how much of a body is sent.
 */

import { Problem, problemIn, type Document } from "./api.ts"
import { ownTimeZone } from "./i18n.ts"

/** The formats of an export, the most useful one first. */
export const FORMATS = ["docx", "pdf", "html", "md", "txt"] as const
/** The longest file of an import, in bytes: `IMPORT_BYTES_MAX` of the server, which may close the connection
    of a longer one before the answer is read. */
export const IMPORT_BYTES_MAX = 16 * 1024 * 1024
/** The extensions of an import. */
export const EXTENSIONS = [".docx", ".md", ".markdown", ".txt", ".text"]

/** The encodings of texts that are offered beside the one that the server guesses. */
export const ENCODINGS = ["euc-kr", "windows-1252", "shift_jis", "gb18030", "big5", "windows-1251"]

/** A text in an encoding, or `null` if its bytes are none in it. @param encoding by its name (WHATWG) */
export function decoded(bytes: ArrayBuffer, encoding: string) {
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes)
  } catch {
    return null
  }
}

/** Bounds of the pause before the next request for an unfinished export, in ms. */
const PAUSE = { least: 200, most: 10_000 }

type Format = (typeof FORMATS)[number]
type LeftOut = Partial<Record<"pictures" | "objects" | "fields" | "headers" | "symbols", number>>
/** Those of some files. */
type MoreChanges = { equations?: number, hidden_passages?: number, number_formats?: string[], left_out?: LeftOut }
export type Changes = { tables: number, footnotes: number, comments_left: number, changes_applied: number } & MoreChanges

/** The formats that the server makes: a PDF needs a font there. None if the server is of an earlier version. */
export async function formatsOfServer(): Promise<string[]> {
  const { signal } = new AbortController()
  const response = await request("/api/export-formats", signal)
  if (response.status === 404) return []
  if (!response.ok) throw problemIn(response.status, await response.json().catch(() => null))
  const { formats } = await whole(response.json(), signal)
  return Array.isArray(formats) ? formats : []
}

/**
 * The file of a document, once the server has built it.
 *
 * @returns with the name that the server gives it
 */
export async function exportFile(
  link: string,
  { format, hasReviews }: { format: Format, hasReviews: boolean },
  { signal, building }: { signal: AbortSignal, building: (percent: number) => void },
): Promise<{ name: string | null, content: Blob }> {
  const path = `/api/share-links/${encodeURIComponent(link)}/export?format=${format}&reviews=${hasReviews ? 1 : 0}`
  let zone = `&zone=${encodeURIComponent(ownTimeZone())}`
  for (;;) {
    const response = await request(path + zone, signal)
    // A new browser may name a zone that the server does not know: the file then has times in UTC.
    if (response.status === 422 && zone !== "") {
      zone = ""
      continue
    }
    if (!response.ok) throw problemIn(response.status, await response.json().catch(() => null))
    if (response.status !== 202) {
      const name = nameIn(response.headers.get("content-disposition") ?? "")
      return { name, content: await whole(response.blob(), signal) }
    }
    const { progress } = await whole(response.json(), signal)
    building(Math.min(Math.max(Number(progress) || 0, 0), 100))
    await pause(pauseIn(response.headers.get("retry-after")), signal)
  }
}

const request = (path: string, signal: AbortSignal) => whole(fetch(path, { signal, credentials: "same-origin", headers: { accept: "*/*" } }), signal)

/** A failed connection as a problem. */
async function whole<T>(work: Promise<T>, signal: AbortSignal) {
  try {
    return await work
  } catch (error) {
    if (signal.aborted) throw error
    throw new Problem(0, "offline")
  }
}

/** The file's name in a `Content-Disposition` (RFC 8187). */
export function nameIn(header: string) {
  const [, encoded] = /filename\*=UTF-8''([^;]+)/i.exec(header) ?? []
  try {
    return encoded === undefined ? null : decodeURIComponent(encoded)
  } catch {
    return null
  }
}

/** The pause that a `Retry-After` asks for, in ms. @param header in seconds */
export function pauseIn(header: string | null) {
  return Math.min(Math.max(1_000 * (Number(header) || 0), PAUSE.least), PAUSE.most)
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    const end = () => reject(signal.reason)
    signal.addEventListener("abort", end, { once: true })
    window.setTimeout(() => {
      signal.removeEventListener("abort", end)
      resolve()
    }, ms)
  })
}

/** Why the server would refuse a file, as far as its name and length tell. */
export function refusalOf({ name, size }: { name: string, size: number }): Problem | null {
  if (!EXTENSIONS.some((extension) => name.toLowerCase().endsWith(extension))) return new Problem(415, "import-format")
  return IMPORT_BYTES_MAX < size ? new Problem(413, "import-too-large") : null
}

/**
 * Makes a document of a file. `import` counts what it shows in another way, or not at all.
 *
 * @param options `sent`: 1 is all of it
 */
export function importFile(
  file: File,
  { signal, sent }: { signal: AbortSignal, sent: (share: number) => void },
): Promise<Document & { import?: Changes }> {
  return new Promise((resolve, reject) => {
    // An aborted signal fires no event: a cancel during the sign-in ends here.
    signal.throwIfAborted()
    const request = new XMLHttpRequest()
    // A Mac spells Hangul in names by its letters.
    request.open("POST", `/api/documents/import?name=${encodeURIComponent(file.name.normalize("NFC"))}`)
    // The name decides: systems disagree on the types.
    request.setRequestHeader("content-type", "application/octet-stream")
    request.setRequestHeader("accept", "application/json")
    request.responseType = "json"
    request.upload.addEventListener("progress", ({ loaded, total }) => sent(0 < total ? loaded / total : 1))
    request.upload.addEventListener("load", () => sent(1))
    request.addEventListener("load", () => {
      const { status, response } = request
      if (200 <= status && status < 300) resolve(response)
      else reject(problemIn(status, response))
    })
    request.addEventListener("error", () => reject(new Problem(0, "offline")))
    request.addEventListener("abort", () => reject(signal.reason))
    signal.addEventListener("abort", () => request.abort(), { once: true })
    request.send(file)
  })
}
