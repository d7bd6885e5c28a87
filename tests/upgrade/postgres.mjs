// @ts-check
/** A private PostgreSQL server with one database, on a socket in a temporary folder. */
import { execFileSync, spawn } from "node:child_process"
import { chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** PostgreSQL refuses to run as root. This account exists on every system, and owns no files. */
const UNPRIVILEGED = 65_534
const isRoot = process.getuid?.() === 0

export class Postgres {
  static start() {
    const postgres = new Postgres(mkdtempSync(join(tmpdir(), "pg-")))
    postgres.tool("initdb", "-D", "data", "-U", "galley", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
    const settings = `listen_addresses = ''\nunix_socket_directories = '${postgres.folder}'\n`
    writeFileSync(join(postgres.folder, "data/postgresql.conf"), settings)
    postgres.control("start")
    postgres.tool("createdb", "-h", postgres.folder, "-U", "galley", "galley")
    return postgres
  }

  /** @param {string} folder */
  constructor(folder) {
    this.folder = folder
    this.ids = isRoot ? { uid: UNPRIVILEGED, gid: UNPRIVILEGED } : {}
    this.programs = execFileSync("pg_config", ["--bindir"], { encoding: "utf8" }).trim()
    chmodSync(folder, 0o755)
    if (isRoot) chownSync(folder, UNPRIVILEGED, UNPRIVILEGED)
  }

  get url() {
    return `postgres://galley@${this.folder.replaceAll("/", "%2F")}/galley`
  }

  /** Runs a program of PostgreSQL and returns its output. @param {string} name @param {string[]} args */
  tool(name, ...args) {
    const detached = name === "pg_ctl" ? "ignore" : "pipe"
    const options = { cwd: this.folder, maxBuffer: 1 << 26, ...this.ids }
    const output = execFileSync(join(this.programs, name), args, { ...options, stdio: ["ignore", detached, "pipe"] })
    return output?.toString() ?? ""
  }

  /** The database as statements, without owners and without the name of the server. */
  dump() {
    const sql = this.tool("pg_dump", "-h", this.folder, "-U", "galley", "--inserts", "--no-owner", "galley")
    return sql.split("\n").filter((line) => !/^(\\|--|$)/.test(line)).join("\n")
  }

  /** Starts its processes, or ends them all without a last checkpoint. @param {"start" | "stop"} what */
  control(what) {
    this.tool("pg_ctl", "-D", "data", "-l", "log", "-w", "-s", "-m", "immediate", what)
  }

  /** As `control`, while the sockets of this process live on: a recovery may take longer than a client may be silent. @param {"start" | "stop"} what */
  async controlMeanwhile(what) {
    const child = spawn(join(this.programs, "pg_ctl"), ["-D", "data", "-l", "log", "-w", "-s", "-m", "immediate", what], { cwd: this.folder, stdio: "ignore", ...this.ids })
    const code = await new Promise((done) => child.once("exit", done))
    if (code !== 0) throw new Error(`pg_ctl ${what}: ${code}`)
  }

  stop() {
    this.control("stop")
    rmSync(this.folder, { recursive: true, force: true })
  }
}
