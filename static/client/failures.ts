/** Ends of a socket and failed requests as one typed error, with the remedy. */

/** `later`: the same may succeed by itself; `after sign-in`: with another token; `never`: not without a change. */
export type Retry = "never" | "later" | "after sign-in"
/**
 * `reconnects`: the session does so by itself. `holder`: of a taken seat, `you` if it is another session of
 * the same user. `retryAfter`: in ms, 0 if the server does not know.
 */
export type Remedy = { retry: Retry, reconnects?: boolean, holder?: { name: string, since: string, you?: boolean }, retryAfter?: number }

/** `code`: of the close, or the status of a response, 0 without one; `reason`: of the close, or the name of the problem. */
export interface GalleyError extends Readonly<Remedy> { readonly code: number, readonly reason: string }
export class GalleyError extends Error {
  constructor(code: number, reason: string, remedy: Remedy) {
    super(`${code} ${reason}`)
    Object.assign(this, { name: "GalleyError", code, reason, ...remedy })
  }
}

/** Closes of 4400 to 4499 that end by themselves: the wait, the seat of another session, an idle or expired one. */
const TEMPORARY = /^(?:4408|4409|4411|4410 (?:expired|document-reset))\b/

/**
 * The end of a socket. `document-reset` needs a new `Y.Doc`, so no session reconnects after it.
 *
 * @internal @param isAccepted the server accepted the token before, so a new one may continue the session
 */
export function closed(code: number, reason: string, isAccepted = false): GalleyError {
  const isRefusal = 4400 <= code && code < 4500
  if (code === 4401) return new GalleyError(code, reason, { retry: "after sign-in", reconnects: isAccepted })
  if (code === 4409) return new GalleyError(code, "seat-taken", { retry: "later", ...JSON.parse(reason) })
  const retry = !isRefusal || TEMPORARY.test(`${code} ${reason}`) ? "later" : "never"
  return new GalleyError(code, reason, { retry, reconnects: !isRefusal && reason !== "document-reset" })
}

/** A response that is no success; `null`: the server did not respond. @internal */
export async function failed(response: Response | null): Promise<GalleyError> {
  const status = response?.status ?? 0
  const problem = await response?.json().catch(() => null)
  const retry = status === 401 ? "after sign-in" : status === 0 || status === 429 || 500 <= status ? "later" : "never"
  const reason = String(problem?.type ?? "no-response").replace(/^.*\/problems\//, "")
  return new GalleyError(status, reason, { retry, retryAfter: 1_000 * (Number(response?.headers.get("retry-after")) || 0) })
}
