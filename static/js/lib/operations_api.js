// @ts-check
/** The administrator's calls about jobs and webhooks. A part of `api.js`. */

import { call, ifThere } from "./api.js"

/**
 * @typedef {{ started_at: string, ended_at: string | null, node: string, outcome: string,
 *   counts: Record<string, number> }} JobRun
 * @typedef {{ job: string, running: { node: string, since: string, fence: number } | null, last_runs: JobRun[],
 *   next_at: string, estimate_ms: number | null }} Job
 * @typedef {{ id: string, type: string, url: string, document_id: string | null, share_link_id: string | null,
 *   created_at: string, attempts: number, next_at: string | null, last_error: string | null,
 *   state: string }} Webhook
 * @typedef {{ minutes: string[], seats: (number | null)[], edits: (number | null)[],
 *   renewal_p99_ms: (number | null)[], missing: string[] }} Series
 */

/** @param {string} bearer @param {AbortSignal} signal @returns {Promise<{ jobs: Job[] } | null>} */
export const jobs = (bearer, signal) => ifThere(call("GET", "/api/admin/jobs", { bearer, signal }))

/** @param {string} bearer @param {AbortSignal} signal @returns {Promise<Series | null>} */
export const series = (bearer, signal) => ifThere(call("GET", "/api/admin/series", { bearer, signal }))

/**
 * Webhooks whose attempts are over.
 *
 * @param {string} bearer
 * @param {AbortSignal} signal
 * @returns {Promise<{ webhooks: Webhook[], next_cursor: string | null } | null>}
 */
export const deadWebhooks = (bearer, signal) => ifThere(call("GET", "/api/admin/webhooks?state=dead&limit=100", { bearer, signal }))

/** @param {string} bearer @param {string} id @returns {Promise<Webhook>} */
export const replayWebhook = (bearer, id) => call("POST", `/api/admin/webhooks/${encodeURIComponent(id)}/replay`, { bearer })

/** @param {string} bearer @returns {Promise<{ replayed: number }>} */
export const replayWebhooks = (bearer) => call("POST", "/api/admin/webhooks/replay", { bearer })
