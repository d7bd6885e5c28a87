/** The administrator's calls about jobs, webhooks and the audit. A part of `api.ts`. */

import { call, ifThere, type Schemas } from "./api.ts"

export type Job = Schemas["Jobs"]["jobs"][number]
export type JobRun = Job["last_runs"][number]
export type Webhook = Schemas["Webhook"]
export type Act = Schemas["Act"]
export type Series = Schemas["Series"]

export const jobs = (bearer: string, signal: AbortSignal) => ifThere(call("GET", "/api/admin/jobs", { bearer, signal }))

export const series = (bearer: string, signal: AbortSignal) => ifThere(call("GET", "/api/admin/series", { bearer, signal }))

/** Webhooks whose attempts are over. */
export const deadWebhooks = (bearer: string, signal: AbortSignal) =>
  ifThere(call("GET", "/api/admin/webhooks", { query: { state: "dead", limit: 100 }, bearer, signal }))

export const replayWebhook = (bearer: string, id: string) => call("POST", "/api/admin/webhooks/{id}/replay", { path: { id }, bearer })

export const replayWebhooks = (bearer: string) => call("POST", "/api/admin/webhooks/replay", { bearer })

/** The latest acts. @param pages how many pages of them */
export async function audit(bearer: string, query: { user?: string, action?: string }, pages: number, signal: AbortSignal) {
  const all = await ifThere(call("GET", "/api/admin/audit", { query, bearer, signal }))
  for (let page = 1; page < pages && all?.next_cursor; page++) {
    const { audit: acts, next_cursor: next } = await call("GET", "/api/admin/audit", { query: { ...query, cursor: all.next_cursor }, bearer, signal })
    all.audit.push(...acts)
    all.next_cursor = next
  }
  return all
}
