/** The administrator's calls about jobs and webhooks. A part of `api.ts`. */

import { call, ifThere, type Schemas } from "./api.ts"

export type Job = Schemas["Jobs"]["jobs"][number]
export type JobRun = Job["last_runs"][number]
export type Webhook = Schemas["Webhook"]
export type Series = Schemas["Series"]

export const jobs = (bearer: string, signal: AbortSignal) => ifThere(call("GET", "/api/admin/jobs", { bearer, signal }))

export const series = (bearer: string, signal: AbortSignal) => ifThere(call("GET", "/api/admin/series", { bearer, signal }))

/** Webhooks whose attempts are over. */
export const deadWebhooks = (bearer: string, signal: AbortSignal) =>
  ifThere(call("GET", "/api/admin/webhooks", { query: { state: "dead", limit: 100 }, bearer, signal }))

export const replayWebhook = (bearer: string, id: string) => call("POST", "/api/admin/webhooks/{id}/replay", { path: { id }, bearer })

export const replayWebhooks = (bearer: string) => call("POST", "/api/admin/webhooks/replay", { bearer })
