//! The `galley` command.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Parser, Subcommand};
use galley::app::names::server_name;
use galley::app::secrets::{keys, tokens, with_passwords};
use galley::app::{App, backup, doctor, healthcheck, migrate, root};
use galley::config::{Faults, Flags, Settings, ignored, parse_duration};
use galley::domain::ids::NodeId;
use galley::domain::line::Line;
use galley::domain::user::User;
use galley::telemetry::logs;

/// mimalloc returns freed pages to the system within a second. The system's allocator retains most of a
/// peak's memory, in one arena per thread.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A live review server: one writer and one reviewer on one document.
#[derive(Parser)]
#[command(version, propagate_version = true)]
struct Command {
    #[command(flatten)]
    flags: FlagArgs,
    #[command(subcommand)]
    action: Option<Action>,
}

/// Flags that every command takes, before or after its name.
#[derive(Args)]
struct FlagArgs {
    /// Settings that differ from the defaults (see config/default.toml)
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// Address and port to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDR", global = true)]
    listen: Option<String>,
    /// Where documents are kept: `sqlite://PATH` or `postgres://…`
    #[arg(long, value_name = "URL", global = true)]
    database_url: Option<String>,
    /// Where seats are held: `memory:`, `redis://…`, `redis+sentinel://…` or `redis+cluster://…`
    #[arg(long, value_name = "URL", global = true)]
    locks_url: Option<String>,
}

#[derive(Subcommand)]
enum Action {
    /// Run the server (the default)
    Serve {
        /// Accept another `auth.secret_file` than the database has had: all invites made before end
        #[arg(long)]
        new_root: bool,
    },
    /// Bring the database to the current schema and stop
    Migrate,
    /// Read, check and print the settings in force
    CheckConfig,
    /// Check database, locks, limits and proxy as a start would, and change nothing
    Doctor,
    /// Ask the server of these settings whether it works: exit 0 or 1
    Healthcheck {
        /// Ask /readyz in place of /healthz
        #[arg(long)]
        ready: bool,
    },
    /// Copy the SQLite database, also of a running server, or print the command for PostgreSQL
    Backup {
        /// The copy, which must not exist
        file: PathBuf,
    },
    /// Put a copy in the place of the SQLite database, or print the command for PostgreSQL
    Restore {
        file: PathBuf,
        /// Take the copy of another installation, whose users, guests and invites end here
        #[arg(long)]
        other_installation: bool,
    },
    /// Print a new secret and a new key pair for pushes
    Keys,
    /// Print a signed access token
    Token(TokenArgs),
}

#[derive(Args)]
struct TokenArgs {
    /// The user's id: letters, digits, _ and -, at most 64
    #[arg(long, value_name = "ID")]
    sub: String,
    /// The user's display name
    #[arg(long)]
    name: String,
    /// Opens /api/admin too
    #[arg(long)]
    admin: bool,
    /// Lifetime of the token
    #[arg(long, default_value = "1h", value_name = "DURATION")]
    ttl: String,
}

/// Exit code for invalid settings.
const FAULTY: u8 = 2;

fn main() -> ExitCode {
    let command = Command::parse();
    match run(command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<Faults>() => {
            complain(&error.to_string());
            ExitCode::from(FAULTY)
        }
        Err(error) => {
            complain(&format!("galley: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<()> {
    let FlagArgs { config, listen, database_url, locks_url } = command.flags;
    let flags = Flags { config, listen, database_url, locks_url };
    let environment = environment();
    let ignored = ignored(environment.keys());
    let settings = Settings::load(&flags, environment)?;
    match command.action.unwrap_or(Action::Serve { new_root: false }) {
        Action::Serve { new_root } => serve(settings, ignored.as_deref(), new_root),
        Action::Migrate => {
            let version = runtime()?.block_on(migrate(&with_passwords(settings)?))?;
            say(&format!("the database has schema version {version}\n"))
        }
        Action::CheckConfig => {
            ignored.iter().for_each(|line| complain(line));
            say(&settings.show())
        }
        Action::Doctor => {
            let settings = with_passwords(settings)?;
            let (lines, faults) = runtime()?.block_on(doctor::examine(&settings));
            say(&lines)?;
            if faults == 0 { Ok(()) } else { Err(Faults(vec![format!("faults: {faults}")]).into()) }
        }
        Action::Healthcheck { ready } => {
            let path = if ready { "/readyz" } else { "/healthz" };
            let listen = settings.server.listen;
            healthcheck::request(listen, path).with_context(|| format!("http://{listen}{path}"))
        }
        Action::Backup { file } => {
            say(&runtime()?.block_on(backup::write(&with_passwords(settings)?, &file))?)
        }
        Action::Restore { file, other_installation } => {
            let restored = backup::restore(&settings, &file, other_installation);
            say(&runtime()?.block_on(restored)?)
        }
        Action::Keys => {
            let [secret, private, public] = keys()?;
            say(&format!(
                "# For the file of auth.secret_file:\n{secret}\n# For the file of push.key_file, and its public \
                 key (applicationServerKey):\n{private}\n{public}\n"
            ))
        }
        Action::Token(args) => token(&settings, &args),
    }
}

fn serve(settings: Settings, ignored: Option<&str>, new_root: bool) -> anyhow::Result<()> {
    let node = NodeId::generate();
    logs::start_logs(
        &settings.log.level,
        settings.log.format,
        &node.to_string(),
        &server_name(&settings),
    )?;
    if let Some(line) = ignored {
        tracing::warn!("{line}");
    }
    let settings = with_passwords(settings)?;
    let runtime = runtime()?;
    let ended = runtime.block_on(async {
        if new_root {
            root::replace(&settings).await?;
        }
        let app = App::start(settings, node).await?;
        say(&format!("{}\n", app.ready_line()))?;
        Ok(app.run().await?)
    });
    // All edits are stored. Texts still being built have no reader left and may take hours.
    runtime.shutdown_background();
    ended
}

fn token(settings: &Settings, args: &TokenArgs) -> anyhow::Result<()> {
    let user = User {
        id: args.sub.parse().context("--sub: letters, digits, _ and -, at most 64")?,
        name: Line::Name.parse(&args.name).context("--name")?,
    };
    let ttl = parse_duration(&args.ttl).context("--ttl: a number and its unit, like 1h")?;
    anyhow::ensure!(!ttl.is_zero(), "--ttl: must be longer than 0s");
    let tokens = tokens(&settings.auth)?;
    let signed = tokens.sign(&user, args.admin, ttl, chrono::Utc::now()).context("--ttl")?;
    say(&format!("{}\n", signed.token))
}

/// A variable that is not UTF-8 is no setting.
fn environment() -> HashMap<String, String> {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(text).collect()
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let built = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    built.context("cannot start the runtime")
}

/// The result of a command goes to standard output.
fn say(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot write the result")
}

/// Everything else goes to standard error. If that is closed, the message is lost.
fn complain(text: &str) {
    let _gone = writeln!(std::io::stderr().lock(), "{text}");
}
