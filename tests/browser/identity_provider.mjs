// @ts-check
/**
 * An identity provider of the browser tests, on a site of its own: OpenID Connect with a page on which the user chooses an
 * account or refuses, a session that it remembers, and a sign-out. No frame shows it.
 */

import { createHash, generateKeyPairSync, randomUUID, sign } from "node:crypto"
import { createServer } from "node:http"

/** @typedef {{ sub: string, name: string }} Account */
/** @typedef {import("node:http").IncomingMessage} Incoming */

/** @type {Readonly<Record<string, Account>>} */
const ACCOUNTS = { kim: { sub: "auth0|kim@example.com", name: "김민수" }, lee: { sub: "lee-42", name: "이서연" } }
export const CLIENT = "galley"

const base64url = (/** @type {unknown} */ part) => Buffer.from(JSON.stringify(part)).toString("base64url")

/** @param {Incoming} request @returns {Promise<string>} */
async function bodyOf(request) {
  let body = ""
  for await (const part of request) body += part
  return body
}

export class IdentityProvider {
  #key = generateKeyPairSync("ec", { namedCurve: "P-256" })
  /** The sign-in of each code, which is taken once. @type {Map<string, { account: Account, query: URLSearchParams }>} */
  #codes = new Map()
  #server = createServer((request, response) => {
    void this.#answer(request).then(({ status = 200, headers = {}, body = "" }) => response.writeHead(status, headers).end(body))
  })
  issuer = ""

  static async start() {
    const provider = new IdentityProvider()
    await new Promise((done) => provider.#server.listen(0, "127.0.0.1", () => done(undefined)))
    const address = provider.#server.address()
    // Galley stands at 127.0.0.1: for a browser that is another site.
    provider.issuer = `http://localhost:${typeof address === "object" && address ? address.port : 0}`
    return provider
  }

  stop() {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  /** The setting of a server for its users. */
  get settings() {
    return { GALLEY_AUTH__OIDC: JSON.stringify({ issuer: this.issuer, client_id: CLIENT }) }
  }

  /** @param {Incoming} request @returns {Promise<{ status?: number, headers?: Record<string, string>, body?: string }>} */
  async #answer(request) {
    const { pathname, searchParams: query } = new URL(request.url ?? "/", this.issuer)
    const { issuer } = this
    if (pathname === "/.well-known/openid-configuration") {
      const at = (/** @type {string} */ path) => `${issuer}/${path}`
      return json({ issuer, authorization_endpoint: at("authorize"), token_endpoint: at("token"), jwks_uri: at("jwks"), end_session_endpoint: at("logout") })
    }
    if (pathname === "/jwks") return json({ keys: [{ ...this.#key.publicKey.export({ format: "jwk" }), kid: "1", use: "sig" }] })
    if (pathname === "/authorize") return this.#authorize(query, /provider=(\w+)/.exec(request.headers.cookie ?? "")?.[1])
    if (pathname === "/logout") return to(query.get("post_logout_redirect_uri") ?? "/", { "set-cookie": "provider=; Max-Age=0" })
    if (pathname === "/token") return this.#token(new URLSearchParams(await bodyOf(request)))
    if (pathname === "/portal") return page(`<iframe title="Galley" src="${query.get("shows")}" width="900" height="700"></iframe>`, {})
    return { status: 404 }
  }

  /** @param {URLSearchParams} query @param {string | undefined} chosen the account of its session */
  #authorize(query, chosen) {
    const back = new URL(query.get("redirect_uri") ?? "")
    back.searchParams.set("state", query.get("state") ?? "")
    const account = ACCOUNTS[query.get("account") ?? chosen ?? ""]
    if (query.has("deny")) back.searchParams.set("error", "access_denied")
    else if (!account) {
      const link = (/** @type {string} */ more, /** @type {string} */ text) => `<p><a href="/authorize?${query}&${more}">${text}</a>`
      const links = Object.entries(ACCOUNTS).map(([id, { name }]) => link(`account=${id}`, name))
      return page(`<h1>Provider</h1>${links.join("")}${link("deny", "Deny")}`, { "x-frame-options": "DENY" })
    } else {
      const code = randomUUID()
      this.#codes.set(code, { account, query })
      back.searchParams.set("code", code)
    }
    return to(String(back), query.has("account") ? { "set-cookie": `provider=${query.get("account")}` } : {})
  }

  /** @param {URLSearchParams} form */
  #token(form) {
    const grant = this.#codes.get(form.get("code") ?? "")
    this.#codes.delete(form.get("code") ?? "")
    const challenge = createHash("sha256").update(form.get("code_verifier") ?? "").digest("base64url")
    if (!grant || grant.query.get("code_challenge") !== challenge) return { ...json({ error: "invalid_grant" }), status: 400 }
    const now = Math.floor(Date.now() / 1_000)
    const claims = { iss: this.issuer, aud: CLIENT, iat: now, exp: now + 300, nonce: grant.query.get("nonce"), ...grant.account }
    const signed = `${base64url({ alg: "ES256", kid: "1" })}.${base64url(claims)}`
    const signature = sign("sha256", Buffer.from(signed), { key: this.#key.privateKey, dsaEncoding: "ieee-p1363" })
    return json({ id_token: `${signed}.${signature.toString("base64url")}`, access_token: "x", token_type: "Bearer" })
  }
}

/** @param {object} body */
const json = (body) => ({ headers: { "content-type": "application/json" }, body: JSON.stringify(body) })

/** @param {string} body @param {Record<string, string>} headers */
const page = (body, headers) => ({ headers: { "content-type": "text/html; charset=utf-8", ...headers }, body: `<!doctype html><title>Provider</title>${body}` })

/** @param {string} location @param {Record<string, string>} headers */
const to = (location, headers) => ({ status: 302, headers: { location, ...headers } })
