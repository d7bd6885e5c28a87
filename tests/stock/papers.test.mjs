// @ts-check
/** Compares the papers with the code: settings, links, events, close codes, metrics. */
import assert from "node:assert/strict"
import { createHmac } from "node:crypto"
import { existsSync, readdirSync } from "node:fs"
import { dirname, join } from "node:path"
import { test } from "node:test"

import { blocks, languages, openapi, papers, read, top } from "./papers.mjs"

const protocol = read("src/http/PROTOCOL.md")

/** Rust sources without their tests. @returns {string} */
const sources = () => {
  const files = readdirSync(join(top, "src"), { recursive: true, encoding: "utf8" })
  const rust = files.filter((name) => name.endsWith(".rs") && !name.includes("tests"))
  const code = rust.map((name) => read(join("src", name)).split("\n#[cfg(test)]\nmod tests {")[0] ?? "")
  return code.join("\n")
}

/** The distinct first groups of a pattern, sorted. @param {string} text @param {RegExp} pattern */
const all = (text, pattern) =>
  [...new Set([...text.matchAll(pattern)].map(([, found]) => found ?? ""))].sort()

/** The part of a paper below a heading. @param {string} paper @param {string} heading */
const section = (paper, heading) => {
  const part = paper.split(/^##+ /m).find((each) => each.startsWith(`${heading}\n`))
  assert.ok(part, `a section ${heading}`)
  return part
}

/** Each setting of the manual with its default; no default for a key that is not set. */
const settings = () => {
  let name = ""
  /** @type {Record<string, string>} */
  const found = {}
  for (const line of read("config/default.toml").split("\n")) {
    const list = /^# \[\[(\w+\.\w+)\]\]$/.exec(line)?.[1]
    if (list) found[list] = ""
    name = list ?? /^\[(\w+)\]$/.exec(line)?.[1] ?? name
    const [, unset, key, value] = /^(# )?([a-z_]+) = (.+)$/.exec(line) ?? []
    if (key && value) found[`${name}.${key}`] = unset ? "" : value
  }
  assert.ok(Object.keys(found).length > 20)
  return found
}

/** The sections of settings. @param {object} of */
const sections = (of) => [...new Set(Object.keys(of).map((key) => key.split(".")[0] ?? ""))].sort()

test("both languages of the README show the same code", () => {
  const [english, korean] = languages.map((name) => blocks(read(name)))
  assert.deepEqual(korean, english)
})

for (const name of languages) {
  test(`${name} states the default of each setting that it names`, () => {
    const manual = settings()
    const part = read(name).split(/^## /m).find((each) => each.includes("| `server.listen` |")) ?? ""
    const rows = [...part.matchAll(/^\| `([a-z]+\.[a-z_]+)` \| (?:`(.+?)`|[^`|]+) \|/gm)]
    const stated = Object.fromEntries(rows.map(([, key, value]) => [key, value ?? ""]))
    const expected = Object.fromEntries(Object.keys(stated).map((key) => [key, manual[key]]))
    assert.ok(rows.length > 5)
    assert.deepEqual(stated, expected)
  })
}

test("the languages of the README state the same settings and link to the same papers", () => {
  for (const pattern of [/^\| `([a-z]+\.[a-z_]+)` \|/gm, /\]\((?!README|tests\/data)([^)]+)\)/g]) {
    const [english, korean] = languages.map((name) => all(read(name), pattern))
    assert.ok(english?.length)
    assert.deepEqual(korean, english)
  }
})

for (const name of languages) {
  test(`${name} shows the signature of a webhook under a secret`, () => {
    const vector = /`(\w{16})`.*?`(\d{10})`.*?`({})`.*?`([0-9a-f]{64})`/s.exec(read(name)) ?? []
    const [, secret = "", time, body, signature] = vector
    const expected = createHmac("sha256", secret).update(`${time}.${body}`).digest("hex")
    assert.equal(signature, expected)
  })
}

for (const name of papers) {
  test(`${name} links to existing files and headings`, () => {
    for (const [, file, heading] of read(name).matchAll(/\]\(([^)#:]*)(?:#([^)]*))?\)/g)) {
      const target = file ? join(dirname(name), file) : name
      assert.ok(existsSync(join(top, target)), target)
      if (!heading) continue
      const anchors = [...read(target).matchAll(/^#+ (.+)$/gm)].map(([, text]) =>
        (text ?? "").toLowerCase().replaceAll(" ", "-"))
      assert.ok(anchors.includes(heading), `${target}#${heading}`)
    }
  })

  test(`${name} names existing settings and metrics`, () => {
    // `server.draining` is an event.
    const manual = settings()
    const keys = new RegExp(`\`((?:${sections(manual).join("|")})\\.[a-z_]+)[\` ]`, "g")
    for (const key of all(read(name), keys)) assert.ok(key in manual || key === "server.draining", key)
    const metrics = all(read("src/core/telemetry/metrics.rs"), /"(galley_[a-z_]+)"/g)
    for (const metric of all(read(name), /`[^`\n]*?(galley_(?!token)[a-z_]+)/g)) {
      assert.ok(metrics.includes(metric), metric)
    }
  })
}

test("the OpenAPI document lists and describes every problem", () => {
  // The server shows at `/problems/<name>` the sentences of these descriptions that name it.
  const named = all(JSON.stringify(openapi()), /"description":"([^"\n]*)"/g).join(" ")
  const problems = [
    ...all(sources(), /::[A-Z_]+,\s*"([a-z]+(?:-[a-z]+)*)",\s*"/g),
    ...all(sources(), /"\/problems\/([a-z-]+)"/g),
  ]
  assert.ok(problems.length > 60)
  for (const name of problems) assert.ok(named.includes(`\`${name}\``), name)
  const types = openapi().components.schemas.Problem.properties.type.enum
  assert.deepEqual(types, [...new Set(problems)].sort().map((name) => `/problems/${name}`))
})

test("the protocol lists every metric", () => {
  const metrics = all(read("src/core/telemetry/metrics.rs"), /"(galley_[a-z_]+)"/g)
  assert.deepEqual(all(section(protocol, "Metrics"), /(galley_[a-z_]+)/g), metrics)
})

test("the protocol lists every websocket event", () => {
  const names = /fn name\(&self\).*?\n    }\n/s.exec(read("src/core/outbox/event.rs"))?.[0] ?? ""
  const rows = section(protocol, "Events").split("\n").filter((line) => line.startsWith("| `"))
  const listed = rows.flatMap((row) => all(row.split(" | ")[0] ?? "", /`([a-z.]+)`/g)).sort()
  assert.deepEqual(listed, all(names, /"([a-z.]+)"/g))
  for (const problem of all(read("src/core/outbox/event.rs"), /"\/problems\/([a-z-]+)"/g)) {
    assert.ok(section(protocol, "Events").includes(`\`${problem}\``), problem)
  }
})

/** The names that an enum of Rust serializes its variants to. @param {string} file @param {string} name */
const variants = (file, name) => {
  const body = new RegExp(`^pub enum ${name} \\{\n(.*?)^\\}`, "ms").exec(read(file))?.[1] ?? ""
  const names = all(body, /#\[strum\(serialize = "([a-z.]+)"\)\]/g)
  assert.equal(names.length, [...body.matchAll(/^ {4}[A-Z]\w+,$/gm)].length, `each variant of ${name} has a name`)
  return names
}

test("the protocol alone lists the webhook events", () => {
  const events = variants("src/domain/webhook.rs", "WebhookEvent")
  const rows = section(protocol, "Webhooks").split("\n").filter((line) => /^\| `\w+\./.test(line))
  const listed = rows.flatMap((row) => all(row.split(" | ")[0] ?? "", /`([a-z.]+)`/g))
  assert.deepEqual(listed.sort(), events)
  for (const name of [...languages, "config/default.toml"]) {
    const paper = read(name)
    assert.match(paper, /PROTOCOL\.md(?:#webhooks|, "Webhooks")/, name)
    // The example of the setting names some.
    const prose = paper.split("\n").filter((line) => !/^(?:# )?events = \[/.test(line)).join("\n")
    assert.deepEqual(events.filter((event) => prose.includes(event)), [], name)
  }
})

test("the page of administrators names every job", () => {
  const code = sources()
  const types = all(code, /impl Job for (\w+) \{/g)
  const constants = all(code, /impl Job for \w+ \{\s*fn name\(&self\) -> &'static str \{\s*([A-Z_]+)\s*\}/g)
  const jobs = constants.flatMap((name) => all(code, new RegExp(`const ${name}: &str = "([a-z-]+)";`, "g"))).sort()
  assert.ok(jobs.length > 0)
  assert.equal(jobs.length, types.length, "the name of a job is a constant of its own")
  const list = /Box<dyn periodic::Job>> =\s+vec!\[(.*?)\];/s.exec(read("src/app/features.rs"))?.[1] ?? ""
  const ticking = all(list, /Box::new\((\w+?)(?:\.clone\(\))?\)/g)
  const inSnakeCase = (/** @type {string} */ type) => type.replaceAll(/(?<!^)[A-Z]/g, (letter) => `_${letter}`).toLowerCase()
  // A variable has the name of its type, or the type itself is the job.
  const names = ticking.map(inSnakeCase).sort()
  assert.deepEqual(names, types.map(inSnakeCase).sort(), "app/features.rs lists each job, under the name of its type")
  const dictionaries = readdirSync(join(top, "static/js/lib/i18n")).filter((name) => name.startsWith("admin_"))
  assert.ok(dictionaries.length >= languages.length)
  for (const name of dictionaries) {
    assert.deepEqual(all(read(`static/js/lib/i18n/${name}`), /"admin\.job\.([a-z-]+)":/g), jobs, name)
  }
})

test("the protocol lists every close code and every reason", () => {
  const closes = read("src/core/outbox/close.rs")
  const codes = all(closes, /=> (\d{4}),/g).filter((code) => code !== "1000")
  const part = section(protocol, "Close codes")
  assert.deepEqual(all(part, /^\| (\d{4}) \|/gm), codes)
  const reasons = [
    ...all(sources(), /Close::\w+\(\s*"([a-z-]+)"/g),
    ...all(closes, /=> "([a-z_-]+)"/g),
  ].filter((reason) => reason !== "")
  assert.ok(reasons.length > 30)
  for (const reason of reasons) assert.ok(part.includes(`\`${reason}\``), reason)
})
