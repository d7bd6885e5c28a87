/** The administrator's calls about jobs and webhooks. A part of `api.ts`. */

import { call, ifThere } from "./api.ts"

export type JobRun = { started_at: string, ended_at: string | null, node: string, outcome: string,
  counts: Record<string, number> }
export type Job = { job: string, running: { node: string, since: string, fence: number } | null, last_runs: JobRun[],
  next_at: string, estimate_ms: number | null }
export type Webhook = { id: string, type: string, url: string, document_id: string | null, share_link_id: string | null,
  created_at: string, attempts: number, next_at: string | null, last_error: string | null,
  state: string }
export type Series = { minutes: string[], seats: (number | null)[], edits: (number | null)[],
  renewal_p99_ms: (number | null)[], missing: string[] }

export const jobs = (bearer: string, signal: AbortSignal): Promise<{ jobs: Job[] } | null> =>
  ifThere(call("GET", "/api/admin/jobs", { bearer, signal }))

export const series = (bearer: string, signal: AbortSignal): Promise<Series | null> => ifThere(call("GET", "/api/admin/series", { bearer, signal }))

/** Webhooks whose attempts are over. */
export const deadWebhooks = (
  bearer: string,
  signal: AbortSignal,
): Promise<{ webhooks: Webhook[], next_cursor: string | null } | null> =>
  ifThere(call("GET", "/api/admin/webhooks?state=dead&limit=100", { bearer, signal }))

export const replayWebhook = (bearer: string, id: string): Promise<Webhook> =>
  call("POST", `/api/admin/webhooks/${encodeURIComponent(id)}/replay`, { bearer })

export const replayWebhooks = (bearer: string): Promise<{ replayed: number }> => call("POST", "/api/admin/webhooks/replay", { bearer })
