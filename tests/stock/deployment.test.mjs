// @ts-check
/** The files of `config/` for an operator: each runs, or passes the check of its own tool. `proxies.test.mjs` has those of the proxies. */
import assert from "node:assert/strict"
import { execFileSync, spawnSync } from "node:child_process"
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { after, before, test } from "node:test"

// @ts-expect-error -- it comes without types
import { load, loadAll } from "js-yaml"
import ts from "typescript"

import { Galley, binary } from "./galley.mjs"
import { read, top } from "./papers.mjs"
import { Redis } from "./redis.mjs"

const ALERTS = join(top, "config/prometheus/alerts.yml")
/** Seconds of a stop beside `server.linger` and `server.drain`. */
const STOP_SECONDS = 25

/** @type {string} */
let folder
before(() => (folder = mkdtempSync(join(tmpdir(), "galley-deployment-"))))
after(() => rmSync(folder, { recursive: true, force: true }))

/** The settings in force, without those of this process. @param {Record<string, string>} settings @param {string[]} words */
const checkConfig = (settings, ...words) =>
  execFileSync(binary, ["check-config", ...words], { encoding: "utf8", env: { PATH: process.env.PATH, ...settings } })

/** @param {string} text a duration in seconds */
const seconds = (text) => Number(/^(\d+)s$/.exec(text)?.[1])

/** Of each text the faults of its documents by the types of their API. @param {string[]} yamls */
function kubernetesFaults(yamls) {
  const files = new Map(yamls.map((yaml, at) => {
    const lines = loadAll(yaml).map((/** @type {any} */ document, /** @type {number} */ of) => {
      const group = document.apiVersion.includes("/") ? document.apiVersion.replace(".k8s.io", "") : `core/${document.apiVersion}`
      return `export const document${of}: import("kubernetes-types/${group}").${document.kind} = ${JSON.stringify(document)}`
    })
    return [join(top, `tests/stock/kubernetes${at}.ts`), lines.join("\n")]
  }))
  const options = { strict: true, noEmit: true, skipLibCheck: true, types: [], moduleResolution: ts.ModuleResolutionKind.Node10 }
  const host = ts.createCompilerHost(options)
  const stored = host.getSourceFile.bind(host)
  host.getSourceFile = (name, ...rest) => {
    const text = files.get(name)
    return text === undefined ? stored(name, ...rest) : ts.createSourceFile(name, text, ts.ScriptTarget.ES2022)
  }
  const program = ts.createProgram([...files.keys()], options, host)
  return [...files.keys()].map((name) =>
    program.getSemanticDiagnostics(program.getSourceFile(name)).map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, "\n")))
}

test("each document of kubernetes.yaml has the type of its API, and its settings are valid", () => {
  const yaml = read("config/kubernetes.yaml")
  // An unknown field, a wrong type and a missing field are faults.
  const faulty = [["failureThreshold", "failureThresholds"], ["replicas: 3", "replicas: three"], ["maxSkew: 1", ""]]
  const [none, ...some] = kubernetesFaults([yaml, ...faulty.map(([good, bad]) => yaml.replace(good ?? "", bad ?? ""))])
  assert.deepEqual(none, [])
  for (const faults of some) assert.equal(faults.length, 1, `${faults}`)
  const documents = loadAll(yaml)
  const settings = join(folder, "galley.toml")
  const toml = documents.find((/** @type {any} */ { kind }) => kind === "ConfigMap").data["galley.toml"]
  writeFileSync(settings, toml)
  const shown = checkConfig({}, "--config", settings)
  const { spec } = documents.find((/** @type {any} */ { kind }) => kind === "Deployment").spec.template
  const [container] = spec.containers
  const [linger, drain] = ["linger", "drain"].map((key) => seconds(new RegExp(`^${key} = "(.*)"$`, "m").exec(shown)?.[1] ?? ""))
  const stop = Number(container.lifecycle.preStop.exec.command[1]) + (linger ?? NaN) + (drain ?? NaN) + STOP_SECONDS
  assert.ok(stop <= spec.terminationGracePeriodSeconds, `${stop}`)
  for (const probe of ["readinessProbe", "livenessProbe", "startupProbe"]) assert.ok(container[probe].timeoutSeconds >= 2, probe)
})

test("docker-compose reads compose.yml, whose servers have valid settings and the addresses of nginx.conf", () => {
  const secrets = Object.fromEntries(["DATABASE", "REDIS", "ADMIN"].map((name) => [`${name}_SECRET`, "0123456789abcdef".repeat(4)]))
  const plugin = "/usr/libexec/docker/cli-plugins/docker-compose"
  const tool = existsSync(plugin) ? plugin : "docker-compose"
  const run = (/** @type {Record<string, string>} */ env) =>
    spawnSync(tool, ["-f", join(top, "config/compose.yml"), "config"], { encoding: "utf8", cwd: folder, env: { PATH: process.env.PATH, ...env } })
  assert.match(run({}).stderr, /see the top of compose\.yml/)
  const { status, stdout, stderr } = run(secrets)
  assert.equal(status, 0, stderr)
  const { services } = load(stdout)
  const addresses = ["one", "two", "three"].map((name) => {
    const { environment, networks } = services[name]
    checkConfig(environment)
    return networks.default.ipv4_address
  })
  const named = [...read("config/nginx.conf").matchAll(/server (10[\d.]+):8080/g)].map(([, address]) => address)
  assert.deepEqual(new Set(addresses), new Set(named))
})

test("systemd-analyze verifies galley.service, which gives a stop its time", () => {
  const unit = read("config/galley.service")
  const file = join(folder, "galley.service")
  writeFileSync(file, unit.replaceAll("/usr/local/bin/galley", binary))
  const { status, stdout, stderr } = spawnSync("systemd-analyze", ["verify", "--man=no", file], { encoding: "utf8" })
  assert.deepEqual([status, stdout, stderr], [0, "", ""])
  const [, stop] = /^TimeoutStopSec=(\d+)$/m.exec(unit) ?? []
  const shown = checkConfig({}, "--config", join(top, "config/production.toml"))
  const [linger, drain] = ["linger", "drain"].map((key) => seconds(new RegExp(`^${key} = "(.*)"$`, "m").exec(shown)?.[1] ?? ""))
  assert.ok((linger ?? NaN) + (drain ?? NaN) + STOP_SECONDS <= Number(stop))
})

test("promtool checks alerts.yml, and its tests raise each rule once", () => {
  execFileSync("promtool", ["check", "rules", ALERTS])
  execFileSync("promtool", ["test", "rules", join(top, "tests/data/alerts.yml")])
  const rules = load(read("config/prometheus/alerts.yml")).groups.flatMap((/** @type {any} */ group) => group.rules)
  const raised = load(read("tests/data/alerts.yml")).tests.flatMap((/** @type {any} */ { alert_rule_test }) =>
    alert_rule_test.filter((/** @type {any} */ { exp_alerts }) => exp_alerts.length === 1).map((/** @type {any} */ { alertname }) => alertname))
  assert.deepEqual(raised.sort(), rules.map((/** @type {any} */ { alert }) => alert).sort())
})

test("each series and label of the alerts and of grafana.json is one of a server", async () => {
  const { panels } = JSON.parse(read("config/grafana.json"))
  const shown = panels.flatMap((/** @type {any} */ { targets }) => targets.map((/** @type {any} */ { expr }) => expr))
  const record = shown.map((/** @type {string} */ expr, /** @type {number} */ at) => ({ record: `panel${at}`, expr }))
  const file = join(folder, "panels.yml")
  writeFileSync(file, JSON.stringify({ groups: [{ name: "panels", rules: record }] }))
  execFileSync("promtool", ["check", "rules", file])
  const rules = load(read("config/prometheus/alerts.yml")).groups.flatMap((/** @type {any} */ group) => group.rules)
  const all = [...shown, ...rules.map((/** @type {any} */ { expr }) => expr)]
  const redis = await Redis.start()
  const server = await Galley.start({ GALLEY_DATABASE__SHARED_SQLITE: "true", GALLEY_LOCKS__URL: redis.url })
  // Counts a request, and the check of Redis measures its clock.
  await fetch(`${server.url}/readyz`)
  const metrics = await (await fetch(`${server.url}/metrics`)).text()
  execFileSync("promtool", ["check", "metrics"], { input: metrics, stdio: ["pipe", "pipe", "pipe"] })
  const lines = metrics.split("\n")
  await server.stop()
  await redis.stop()
  // Prometheus adds the first two, and renames the third of a series that has it.
  const added = ["instance", "alertname", "exported_job"]
  for (const expr of all.filter((expr) => expr !== 'up{job="galley"} == 0')) {
    const names = [...expr.matchAll(/galley_\w+/g)].map(([name]) => name)
    assert.notEqual(names.length, 0, expr)
    const found = lines.filter((line) => names.includes(line.split(/[ {]/)[0] ?? ""))
    for (const name of names) assert.ok(found.some((line) => line.startsWith(name)), `${name} of ${expr}`)
    const labels = [...expr.matchAll(/by \(([\w, ]+)\)/g)].flatMap(([, by]) => by?.split(", ") ?? [])
    labels.push(...[...expr.matchAll(/(\w+)(?:=|=~|!=)"/g)].map(([, label]) => label ?? ""))
    for (const label of labels.filter((label) => !added.includes(label))) {
      assert.ok(found.some((line) => new RegExp(`[{,]${label}="`).test(line)), `${label} of ${expr}`)
    }
  }
})

test("the images of the Dockerfile have digests, its user a number, and its layers no tests", () => {
  const file = read("Dockerfile")
  for (const [, image] of file.matchAll(/^FROM (\S+)/gm)) assert.match(image ?? "", /trixie\S*@sha256:[0-9a-f]{64}$/)
  assert.match(file, /^USER \d+:\d+$/m)
  assert.doesNotMatch(file, /^COPY .*tests/m)
  const [, members] = /^members = \[(.*)\]$/m.exec(read("Cargo.toml")) ?? []
  for (const [, member] of (members ?? "").matchAll(/"(\S+)"/g)) assert.match(file, new RegExp(`^COPY ${member}/Cargo.toml ${member}/$`, "m"))
  assert.match(file, /^HEALTHCHECK .*CMD \["galley", "healthcheck"\]$/m)
  const [, version] = /^version = "(.*)"$/m.exec(read("Cargo.toml")) ?? []
  assert.match(file, new RegExp(`image.version="${version}"`))
})
