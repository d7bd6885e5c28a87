//! Starts the server from the bottom up, supervises it, and stops it from the top down.
//!
//! Start: secrets → storage → locks and pub/sub → sessions → HTTP. Stop: refuse connections → close
//! sockets, spread over `server.drain` → commit edits, release seats → end renewal last → close storage.
//! If a critical task ends, the process exits, so that its supervisor restarts it. Half a server would
//! run on and never be restarted.

mod jobs;
mod open_files;
pub mod secrets;
mod shutdown;
mod signals;
mod web_push;
mod webhooks;

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use tokio::net::TcpListener;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::secrets::{ADMIN_TOKEN_FILE, SecretError};
use crate::app::shutdown::Stopping;
use crate::app::signals::{Signals, StopSignal};
use crate::config::{ServerSettings, Settings};
use crate::domain::ids::NodeId;
use crate::exports::build::Exports;
use crate::exports::rendering::PdfFonts;
use crate::http::access::Access;
use crate::http::auth::tokens::Tokens;
use crate::http::byte_budget::{BudgetLimits, ByteBudget};
use crate::http::connection_slots::ConnectionLimits;
use crate::http::guest_bytes::GuestBytes;
use crate::http::headers::Policy;
use crate::http::health::MetricsHandle;
use crate::http::host::Hosts;
use crate::http::limit::{Limiter, Rate};
use crate::http::origin::Origins;
use crate::http::readiness::{Down, Finding, Probe, Readiness};
use crate::http::security_log::SecurityLog;
use crate::http::tarpit::Tarpit;
use crate::http::ws::upgrade::Front;
use crate::http::{HttpState, serve};
use crate::jobs::Jobs;
use crate::locks::{Locks, LocksError};
use crate::notify::Notify;
use crate::notify::webhooks::Webhooks;
use crate::partners::Partners;
use crate::partners::offers::Offers;
use crate::pubsub::{Pubsub, RelayError};
use crate::reviews::Reviews;
use crate::rooms::room::review_events::MissedQueue;
use crate::seats::{SeatService, SeatServiceDeps};
use crate::sessions::options::{HistoryTerms, RoomLimits, SeatTerms};
use crate::sharing::Sharing;
use crate::sharing::invite::Invites;
use crate::sharing::quota::Quota;
use crate::storage::Storage;
use crate::storage::error::StorageError;
use crate::telemetry::metrics::Metrics;
use crate::versions::Versions;

/// Interval at which the exporter drains histogram samples into their buckets.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);

/// `/readyz`: the database rejects reads.
const STORAGE_AWAY: &str = "the database cannot be read: see whether it runs and can be reached, and \
                            whether its disk has room; the server's log has its own words";
/// `/readyz`: a pooler in transaction mode stands before the database.
const STORAGE_POOLED: &str = "the database is behind a pooler in transaction mode, where prepared \
                              statements do not work: let `database.url` lead to PostgreSQL \
                              itself (a server holds ten connections at most), or to a pool with \
                              pool_mode = session";
/// `/readyz`: the database serves reads and rejects edits.
const STORAGE_STUCK: &str = "the database can be read, but edits cannot be stored: see what else \
                             writes to it, and whether it may be written; they are kept in memory \
                             within a limit and stored by themselves, so do not stop this server \
                             before; its log has the database's own words";
/// `/readyz`: the database rejects edits because its disk is full.
const STORAGE_FULL: &str = "the database has no space left, so edits cannot be stored: free space on \
                            its disk; they are kept in memory within a limit and stored by \
                            themselves, so do not stop this server before";
/// `/readyz`: Redis does not serve commands.
const LOCKS_AWAY: &str = "Redis does not answer as it should, so no seat can be acquired: see whether \
                          it runs, has room, and is where `locks.url` leads; the server's log has \
                          its own words";

/// The server could not start, or stopped by a failure.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// A secret could not be read or created.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The database could not be opened.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The lock service could not be reached, or its settings are invalid.
    #[error(transparent)]
    Locks(#[from] LocksError),
    /// The pub/sub connection could not be opened.
    #[error(transparent)]
    Pubsub(#[from] RelayError),
    /// The port could not be bound.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address from the settings.
        address: SocketAddr,
        /// The system's error.
        source: std::io::Error,
    },
    /// The signal handlers could not be installed.
    #[error("cannot listen for signals")]
    Signals(#[source] std::io::Error),
    /// The metrics exporter could not start.
    #[error("cannot start the metrics exporter: {0}")]
    Metrics(String),
    /// A second signal arrived before the stop had finished.
    #[error("ended before the stop was done, by a second signal")]
    Hurried,
    /// A critical task ended by itself.
    #[error("{0} ended by itself; the log says why")]
    Died(&'static str),
}

/// A server that is ready and listens.
pub struct App {
    settings: Settings,
    state: HttpState,
    listener: TcpListener,
    address: SocketAddr,
    storage: Storage,
    locks: Locks,
    figures: Option<Metrics>,
    signals: Signals,
    tasks: TaskTracker,
}

impl App {
    /// Starts all parts from the bottom up and binds the port.
    ///
    /// # Errors
    ///
    /// [`AppError`]: the first part that failed to start.
    pub async fn start(settings: Settings) -> Result<Self, AppError> {
        // First, so that a signal during a slow start is not lost.
        let signals = Signals::listen().map_err(AppError::Signals)?;
        let figures = start_figures(&settings)?;
        let secret = secrets::find_or_make(&settings.auth.secret_file)?;
        let admin_token = match &settings.admin.token {
            Some(token) => token.clone(),
            None => secrets::find_or_make(Path::new(ADMIN_TOKEN_FILE))?,
        };
        secrets::demand_two(&secret, &admin_token, &settings.auth.secret_file)?;
        open_files::raise_bound(settings.limits.connections);
        let storage = Storage::open(&settings.database.url).await?;
        if settings.database.url.starts_with("postgres") && settings.locks.url == "memory:" {
            tracing::warn!(
                "seats are held in this process: start no second server on this database, or set \
                 locks.url to a Redis"
            );
        }
        let node = NodeId::generate();
        tracing::info!(%node, "starting");
        let locks = Locks::connect_as(&settings.locks.url, node).await?;
        let tasks = TaskTracker::new();
        // Servers that share a Redis notify each other by pub/sub. A server with locks in memory has no
        // peers.
        let speaks_as = secret.expose_secret().as_bytes();
        let relay = Pubsub::connect(&settings.locks.url, node, speaks_as).await?;
        // Before the critical tasks start: a bind failure would otherwise end them and be reported as
        // theirs.
        let wanted = settings.server.listen;
        let cannot = |source| AppError::Listen { address: wanted, source };
        let listener = serve::listen(wanted).map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        let (sessions, missed) = start_sessions(&settings, &storage, &locks, relay, &tasks);
        let origins = match &settings.server.public_url {
            Some(origin) => Origins::exactly(origin.clone()),
            None => Origins::of_listener(address),
        };
        let reviews = Reviews::start(sessions.clone(), missed);
        let readiness = readiness(&storage, &locks, &sessions);
        let scrape = figures.clone().map_or_else(MetricsHandle::off, |figures| {
            MetricsHandle::new(move || figures.render())
        });
        let notify = web_push::start(&settings, &storage)?;
        let jobs = jobs::prepare(&settings, &storage, &locks, &notify, node);
        // Before the first request: from here on the transaction of an event writes its webhooks.
        let webhooks = webhooks::start(&settings, &storage);
        let entry = Entry { secret, admin_token, origins };
        let below = (&storage, &locks);
        let services = (sessions, reviews, (notify, webhooks), jobs);
        let state = state(&settings, below, services, entry, readiness, scrape);
        // The first health check, so that the log reports at start what `/readyz` would report later.
        for Finding { name, remedy } in state.readiness.look().await.down {
            tracing::warn!(name, remedy, "started, but not ready");
        }
        Ok(Self { settings, state, listener, address, storage, locks, figures, signals, tasks })
    }

    /// The line that prints the address to open.
    #[must_use]
    pub fn ready_line(&self) -> String {
        let open = self.state.origins.own();
        match &self.settings.server.public_url {
            Some(_) => {
                format!("Galley is ready: open {open}/ – it listens on http://{}", self.address)
            }
            None => format!("Galley is ready: open {open}/"),
        }
    }

    /// The router of this server, for a caller in the same process.
    #[must_use]
    pub fn front(&self) -> Front {
        Front::new(self.state.clone(), as_size(self.settings.limits.body_bytes))
    }

    /// Serves until a signal or the end of a critical task, then stops from the top down.
    ///
    /// # Errors
    ///
    /// [`AppError::Died`] after a critical task ended by itself, and [`AppError::Hurried`] after a
    /// second signal ended the stop.
    pub async fn run(self) -> Result<(), AppError> {
        let Self { settings, state, listener, storage, locks, figures, mut signals, tasks, .. } =
            self;
        let sessions = state.sessions.clone();
        let (limiter, guest_bytes) = (state.limiter.clone(), state.guest_bytes.clone());
        let readiness = state.readiness.clone();
        let purging = state.sharing.clone().keep_purging();
        let trimming = state.exports.clone().keep_trimming();
        let pushing = state.notify.clone().keep_pushing();
        let jobs = state.jobs.clone();
        let delivering = state.webhooks.clone();
        let (sockets, stop) = (TaskTracker::new(), CancellationToken::new());
        let body_bytes = as_size(settings.limits.body_bytes);
        let connections = ConnectionLimits {
            all: as_size(settings.limits.connections),
            address: as_size(settings.limits.connections_per_address),
        };
        let edge = tasks.spawn(serve::run(
            listener,
            Front::new(state, body_bytes),
            connections,
            sockets.clone(),
            stop.clone(),
        ));
        let upkeep = upkeep(figures, limiter, guest_bytes, locks, sessions.clone(), stop.clone());
        let upkeep = tasks.spawn(upkeep);
        tasks.spawn(jobs.keep_ticking(stop.clone()));
        let measuring = storage.clone().keep_measuring(settings.limits.stored_bytes);
        let stopped = stop.clone();
        tasks.spawn(async move { stopped.run_until_cancelled(measuring).await });
        let stopped = stop.clone();
        tasks.spawn(async move { stopped.run_until_cancelled(purging).await });
        let stopped = stop.clone();
        tasks.spawn(async move { stopped.run_until_cancelled(trimming).await });
        let stopped = stop.clone();
        tasks.spawn(async move { stopped.run_until_cancelled(pushing).await });
        tasks.spawn(webhooks::run(delivering, sessions.clone(), stop.clone()));
        let mut linger = Duration::ZERO;
        let died = tokio::select! {
            signal = signals.next() => {
                tracing::info!(signal = signal.name(), "stopping");
                // Linger only for SIGTERM: behind a terminal there is no balancer that must see the stop
                // first.
                if signal == StopSignal::Terminate {
                    linger = settings.server.linger;
                }
                None
            }
            _ended = edge => Some("the listener"),
            _ended = upkeep => Some("the upkeep"),
            () = sessions.died() => Some("a task of the sessions"),
        };
        if let Some(task) = died {
            tracing::error!(task, "a critical task ended; stopping");
        }
        let drain = settings.server.drain;
        let listening = stop;
        let stopping =
            Stopping { linger, drain, readiness, sessions, sockets, listening, tasks, storage };
        tokio::select! {
            () = stopping.run() => {}
            signal = signals.next() => {
                tracing::warn!(signal = signal.name(), "second signal: ending at once");
                return Err(AppError::Hurried);
            }
        }
        died.map_or(Ok(()), |task| Err(AppError::Died(task)))
    }
}

/// Migrates the database to the current schema and closes it.
///
/// # Errors
///
/// [`StorageError`] when a migration fails.
pub async fn migrate(settings: &Settings) -> Result<(), StorageError> {
    let storage = Storage::open(&settings.database.url).await?;
    storage.close().await;
    Ok(())
}

/// The credentials and origins that authentication uses.
struct Entry {
    secret: SecretString,
    admin_token: SecretString,
    origins: Origins,
}

fn start_figures(settings: &Settings) -> Result<Option<Metrics>, AppError> {
    if !settings.metrics.enabled {
        return Ok(None);
    }
    Metrics::start().map(Some).map_err(|error| AppError::Metrics(error.to_string()))
}

fn start_sessions(
    settings: &Settings,
    storage: &Storage,
    locks: &Locks,
    relay: Pubsub,
    tasks: &TaskTracker,
) -> (SeatService, MissedQueue) {
    let seats = &settings.seats;
    let limits = &settings.limits;
    SeatService::start(SeatServiceDeps {
        storage: storage.clone(),
        locks: locks.clone(),
        relay,
        terms: SeatTerms {
            lease: seats.terms,
            client_timeout: seats.client_timeout,
            resume_grace: seats.resume_grace,
            idle_release: seats.idle_release.unwrap_or_default(),
        },
        limits: RoomLimits {
            message_bytes: as_size(limits.message_bytes),
            document_bytes: as_size(limits.document_bytes),
            messages_per_second: limits.messages_per_second,
            message_burst: limits.message_burst,
            ..RoomLimits::default()
        },
        history: HistoryTerms { pause: settings.history.pause, longest: settings.history.longest },
        tasks: tasks.clone(),
    })
}

fn readiness(storage: &Storage, locks: &Locks, sessions: &SeatService) -> Readiness {
    let (storage, locks, sessions) = (storage.clone(), locks.clone(), sessions.clone());
    Readiness::new(vec![
        Probe::new("storage", move || {
            let (storage, sessions) = (storage.clone(), sessions.clone());
            async move {
                let down = |error: &StorageError, remedy: &str| Down {
                    cause: error.to_string(),
                    remedy: remedy.to_owned(),
                };
                storage.check().await.map_err(|error| down(&error, remedy_of(&error)))?;
                match sessions.storage_trouble() {
                    None => Ok(Vec::new()),
                    Some(error @ StorageError::Full(_)) => Err(down(&error, STORAGE_FULL)),
                    Some(error) => Err(down(&error, STORAGE_STUCK)),
                }
            }
        }),
        Probe::new("locks", move || {
            let locks = locks.clone();
            async move {
                locks.check().await.map_err(|error| locks_down(&error))?;
                Ok(locks.warnings().into_iter().map(str::to_owned).collect())
            }
        }),
    ])
}

/// The operator's remedy for a database that rejects reads.
fn remedy_of(error: &StorageError) -> &'static str {
    if matches!(error, StorageError::Pooled(_)) { STORAGE_POOLED } else { STORAGE_AWAY }
}

/// The operator's remedy for locks that cannot be used. Errors of Redis and the network may contain an
/// address, so only the log shows them.
fn locks_down(error: &LocksError) -> Down {
    let line = match error {
        LocksError::Misconfigured(line) => line,
        LocksError::Unavailable(_) | LocksError::Unsupported(_) => LOCKS_AWAY,
    };
    Down { cause: error.to_string(), remedy: line.to_owned() }
}

fn state(
    settings: &Settings,
    (storage, locks): (&Storage, &Locks),
    (sessions, reviews, (notify, webhooks), jobs): (SeatService, Reviews, (Notify, Webhooks), Jobs),
    entry: Entry,
    readiness: Readiness,
    scrape: MetricsHandle,
) -> HttpState {
    let Entry { secret, admin_token, origins } = entry;
    let secret = secret.expose_secret().as_bytes();
    let limits = &settings.limits;
    let rate = |per_second, burst| Rate {
        per_second: NonZeroU32::new(per_second).unwrap_or(NonZeroU32::MIN),
        burst: NonZeroU32::new(burst).unwrap_or(NonZeroU32::MIN),
    };
    let requests = rate(limits.requests_per_second, limits.request_burst);
    let joins = rate(limits.joins_per_second, limits.join_burst);
    let guests = rate(limits.guests_per_second, limits.guest_burst);
    let buffered = BudgetLimits {
        all: limits.buffered_bytes.into(),
        address: limits.buffered_bytes_per_address.into(),
        user: limits.buffered_bytes_per_user.into(),
    };
    let document_bytes = as_size(limits.document_bytes);
    let quota = Quota {
        documents: limits.user_documents,
        bytes: limits.user_bytes,
        bin_retention: limits.bin_retention,
    };
    let invites = Invites::new(secret);
    let guest_bytes = NonZeroU32::new(limits.guest_bytes_per_hour).unwrap_or(NonZeroU32::MIN);
    HttpState {
        tokens: Tokens::new(secret),
        access: Access::new(settings.auth.guests, admin_token.expose_secret().as_bytes())
            .under_https(origins.own().is_secure())
            .with_sign_in(settings.auth.sign_in_url.as_deref()),
        limiter: Limiter::new(requests, joins, guests),
        budget: ByteBudget::new(buffered),
        hosts: hosts(&settings.server),
        proxies: settings.server.trusted_proxies.clone(),
        policy: Policy::new(&origins),
        origins,
        sharing: Sharing::new(storage.clone(), invites.clone(), document_bytes, quota),
        partners: Partners::new(storage.clone(), locks.clone(), invites),
        exports: Exports::new(reviews.clone(), PdfFonts::new(settings.exports.fonts.clone())),
        offers: Offers::new(storage.clone(), locks.clone()),
        reviews,
        versions: Versions::new(sessions.clone()),
        sessions,
        readiness,
        scrape,
        notify,
        jobs,
        webhooks,
        tarpit: Tarpit::default(),
        guest_bytes: GuestBytes::new(guest_bytes),
        security_log: SecurityLog::default(),
    }
}

/// The names under which the server answers.
fn hosts(server: &ServerSettings) -> Hosts {
    let public = server.public_url.as_ref().map(ToString::to_string);
    let public = public.as_deref().and_then(|origin| origin.split_once("://")).map(|(_, it)| it);
    Hosts::new(server.listen, public, &server.hosts)
}

/// Periodic work of the process: drains metrics and drops idle counters, so that memory does not grow.
async fn upkeep(
    figures: Option<Metrics>,
    limiter: Limiter,
    guest_bytes: GuestBytes,
    locks: Locks,
    sessions: SeatService,
    stop: CancellationToken,
) {
    let mut ticker = interval(UPKEEP_EVERY);
    ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while stop.run_until_cancelled(ticker.tick()).await.is_some() {
        if let Some(figures) = &figures {
            figures.upkeep();
        }
        limiter.forget_the_quiet();
        guest_bytes.forget_idle();
        sessions.forget_idle_users();
        // Reading the alarms clears those of classes without recent events.
        let _in_force = locks.alarms();
    }
}

fn as_size(bytes: u32) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
