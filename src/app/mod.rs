//! Starts the server from the bottom up, supervises it, and stops it from the top down.
//!
//! Start: secrets → storage → locks and pub/sub → sessions → HTTP. Stop: refuse connections → close
//! sockets, spread over `server.drain` → commit edits, release seats → end renewal last → close storage.
//! If a critical task ends, the process exits, so that its supervisor restarts it. Half a server would
//! run on and never be restarted.

pub mod backup;
pub mod doctor;
pub(crate) mod features;
pub mod healthcheck;
mod host_keys;
mod huge_pages;
pub mod names;
mod open_files;
#[cfg(test)]
mod openapi_schema_tests;
#[cfg(test)]
mod openapi_tests;
mod readiness;
pub mod root;
pub mod secrets;
mod shutdown;
mod signals;
mod work;

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{SecondsFormat, Utc};
use futures_util::FutureExt as _;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use metrics::NoopRecorder;
use rustix::fs::{Access as Right, access};
use rustix::io::Errno;
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::accounts::Accounts;
use crate::app::features::{Core, Features};
use crate::app::host_keys::Providers;
use crate::app::names::{hosts, origins, server_name};
use crate::app::secrets::{SecretError, Secrets};
use crate::app::shutdown::Stopping;
use crate::app::signals::{Signals, StopSignal};
use crate::app::work::work;
use crate::config::Settings;
use crate::domain::ids::NodeId;
use crate::http::access::Access;
use crate::http::auth::revocations::Revocations;
use crate::http::auth::tokens::Tokens;
use crate::http::byte_budget::{BudgetLimits, ByteBudget};
use crate::http::connection_slots::ConnectionLimits;
use crate::http::guest_budgets::{self, GuestBudgets};
use crate::http::headers::Policy;
use crate::http::health::MetricsHandle;
use crate::http::limit::{Limiter, Rate};
use crate::http::origin::Origins;
use crate::http::readiness::{Finding, Readiness};
use crate::http::security_log::SecurityLog;
use crate::http::service::HttpService;
use crate::http::tarpit::Tarpit;
use crate::http::{HttpState, serve};
use crate::locks::{Locks, LocksError};
use crate::pubsub::{Pubsub, PubsubError};
use crate::runtime::Runtime;
use crate::seats::peers::Peers;
use crate::sessions::options::{HistoryTerms, RoomLimits, SeatTerms};
use crate::sharing::Sharing;
use crate::sharing::invite::Invites;
use crate::sharing::quota::DocumentQuota;
use crate::storage::Storage;
use crate::storage::copy::file_of;
use crate::storage::error::StorageError;
use crate::telemetry::last_hour::Tee;
use crate::telemetry::logs::Format;
use crate::telemetry::metrics::Metrics;

#[derive(Debug, thiserror::Error)]
pub enum AppError {
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error("database.url: uid {uid} cannot write {}, which SQLite needs", path.display())]
    Unwritable { path: PathBuf, uid: u32, source: StorageError },
    #[error(transparent)]
    Locks(#[from] LocksError),
    #[error(transparent)]
    Pubsub(#[from] PubsubError),
    #[error(
        "auth.secret_file: the database belongs to another secret than that of {}; put the former one back, or \
         run `galley serve --new-root` once, with all other servers stopped: it ends all invites, and without \
         auth.token_secrets all sign-ins",
        .0.display()
    )]
    OtherRoot(PathBuf),
    #[error("cannot listen on {address}")]
    Listen { address: SocketAddr, source: std::io::Error },
    #[error("cannot listen for signals")]
    Signals(#[source] std::io::Error),
    #[error("cannot start the metrics exporter: {0}")]
    Metrics(String),
    #[error("ended before the stop was done, by a second signal")]
    Hurried,
    #[error("{0} ended by itself; the log says why")]
    Died(&'static str),
}

pub struct App {
    node: NodeId,
    settings: Settings,
    state: HttpState,
    features: Features,
    listener: TcpListener,
    address: SocketAddr,
    storage: Storage,
    locks: Locks,
    metrics: Option<Metrics>,
    signals: Signals,
    runtime: Runtime,
    providers: Providers,
}

impl App {
    /// Binds the port, too. The future is boxed, as that of [`Self::run`]: rustc compiles the body of an
    /// `async fn` again in each crate that awaits it.
    pub fn start(settings: Settings, node: NodeId) -> BoxFuture<'static, Result<Self, AppError>> {
        Box::pin(Self::start_services(settings, node))
    }

    async fn start_services(settings: Settings, node: NodeId) -> Result<Self, AppError> {
        // First, so that a signal during a slow start is not lost.
        let signals = Signals::listen().map_err(AppError::Signals)?;
        let metrics = start_metrics(&settings)?;
        let Secrets { root, tokens, admin_token } = Secrets::find_or_make(&settings)?;
        huge_pages::turn_off();
        let storage = open(&settings.database.url).await?;
        let invites = Invites::new(root.expose_secret().as_bytes());
        root::demand(&storage, &invites, &settings).await?;
        if settings.database.url.starts_with("postgres") && settings.locks.url == "memory:" {
            tracing::warn!(
                "seats are held in this process: start no second server on this database, or set \
                 locks.url to a Redis"
            );
        }
        tracing::info!("starting as {node} on {}", server_name(&settings));
        let locks = Locks::connect_as(&settings.locks.url, node).await?;
        // Servers that share a Redis notify each other by pub/sub. A server with locks in memory has no
        // peers.
        let speaks_as = root.expose_secret().as_bytes();
        let pubsub = Pubsub::connect(&settings.locks.url, node, speaks_as).await?;
        let peers = Peers::new(server_name(&settings), pubsub);
        // Before the critical tasks start: a bind failure would otherwise end them and be reported as
        // theirs.
        let wanted = settings.server.listen;
        let cannot = |source| AppError::Listen { address: wanted, source };
        let listener = serve::listen(wanted).map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        let runtime = start_runtime(&settings, &storage, locks.clone(), peers);
        let origins = origins(&settings.server, address);
        let providers = Providers::start(&settings.auth, &origins).await?;
        let accounts = Accounts::new(storage.clone(), *settings.audit.retention);
        let revocations = Revocations::default();
        // Before the first request: a revoked token works on no server that starts.
        revocations.read(&accounts).await?;
        let tokens = tokens.with_provider(providers.keys()).with_revocations(revocations);
        let readiness = readiness::start(&storage, &locks, &runtime, providers.key_sets()).await;
        let scrape = metrics.clone().map_or_else(MetricsHandle::off, |metrics| {
            MetricsHandle::new(move || metrics.render())
        });
        let features = Features::prepare(&Core {
            settings: &settings,
            node,
            storage: &storage,
            locks: &locks,
            runtime: &runtime,
            invites: &invites,
            tokens: &tokens,
            oidc: providers.oidc.as_ref(),
        })?;
        let entry = Entry { tokens, accounts, admin_token, origins, invites };
        let state = state(&settings, &storage, &runtime, entry, readiness, scrape);
        // The log reports at start what `/readyz` would report later.
        for Finding { name, remedy } in state.readiness.look().await.0.down {
            tracing::warn!(name, remedy, "started, but not ready");
        }
        Ok(Self {
            node,
            settings,
            state,
            features,
            listener,
            address,
            storage,
            locks,
            metrics,
            signals,
            runtime,
            providers,
        })
    }

    /// In the format of the log.
    #[must_use]
    pub fn ready_line(&self) -> String {
        let open = self.state.origins.own();
        let listen = format!("http://{}", self.address);
        if self.settings.log.format == Format::Json {
            let timestamp = Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true);
            let line = json!({ "node": self.node, "server": server_name(&self.settings), "timestamp": timestamp, "level": "INFO",
                "target": "galley", "message": "Galley is ready", "open": format!("{open}/"),
                "listen": listen });
            return line.to_string();
        }
        match &self.settings.server.public_url {
            Some(_) => format!("Galley is ready: open {open}/ – it listens on {listen}"),
            None => format!("Galley is ready: open {open}/"),
        }
    }

    /// The service of this server, for a caller in the same process.
    #[must_use]
    pub fn service(&self) -> HttpService {
        let body_bytes = as_size(*self.settings.limits.body_bytes);
        HttpService::new(self.state.clone(), self.features.routes.clone(), body_bytes)
    }

    /// Until a signal or the end of a critical task; then stops from the top down.
    pub fn run(self) -> BoxFuture<'static, Result<(), AppError>> {
        Box::pin(self.serve_and_stop())
    }

    #[expect(clippy::disallowed_methods, reason = "one for each row of the table")]
    async fn serve_and_stop(self) -> Result<(), AppError> {
        let Self {
            settings, state, features, listener, storage, locks, runtime, providers, ..
        } = self;
        let (metrics, mut signals) = (self.metrics, self.signals);
        // After the ready line, so that a warning does not hide the address.
        if let Err(fault) = open_files::raise_bound(*settings.limits.connections) {
            tracing::warn!("{fault}");
        }
        let (sockets, stop) = (TaskTracker::new(), CancellationToken::new());
        let (tasks, readiness) = (runtime.tasks.tracker.clone(), state.readiness.clone());
        let work = work(&settings, &state, &storage, locks, metrics).into_iter();
        let work = work.chain(features.work()).map(|row| {
            let stop = stop.clone();
            (row.name(), stop.run_until_cancelled_owned(row.run_for_ever()).map(drop).boxed())
        });
        let body_bytes = as_size(*settings.limits.body_bytes);
        let service = HttpService::new(state, features.routes.clone(), body_bytes);
        let work = work.chain(features.until(&stop)).chain(providers.work(&stop));
        let work = work.map(|(name, work)| tasks.spawn(work).map(move |_ended| name));
        let mut work: FuturesUnordered<_> = work.collect();
        let connections = ConnectionLimits {
            all: u64::from(*settings.limits.connections),
            address: u64::from(*settings.limits.connections_per_address),
        };
        let edge = serve::run(listener, service, connections, sockets.clone(), stop.clone());
        let edge = tasks.spawn(edge);
        let mut linger = Duration::ZERO;
        let died = tokio::select! {
            signal = signals.next() => {
                tracing::info!(signal = signal.name(), "stopping");
                // Linger only for SIGTERM: behind a terminal there is no balancer that must see the stop
                // first.
                if signal == StopSignal::Terminate {
                    linger = *settings.server.linger;
                }
                None
            }
            _ended = edge => Some("the listener"),
            ended = work.next() => ended,
            () = runtime.tasks.died.cancelled() => Some("a task of the sessions"),
        };
        if let Some(task) = died {
            tracing::error!(task, "a critical task ended; stopping");
        }
        let drain = *settings.server.drain;
        let listening = stop;
        let stopping = Stopping { linger, drain, readiness, runtime, sockets, listening, storage };
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

/// A failure names the file or the folder of SQLite that this user cannot write.
async fn open(url: &str) -> Result<Storage, AppError> {
    let failed = |source: StorageError| {
        let file = url.strip_prefix("sqlite:").and_then(|_| file_of(url).ok());
        let or_here = |it: &'_ Path| match it.as_os_str().is_empty() {
            true => PathBuf::from("."),
            false => it.to_owned(),
        };
        // SQLite also makes files beside its file, and the server a missing folder.
        let mut folders = file.iter().flat_map(|file| file.ancestors().skip(1)).map(or_here);
        let folder = folders.find(|it| it.exists());
        let is_closed =
            |it: &PathBuf| access(it, Right::WRITE_OK).is_err_and(|error| error != Errno::NOENT);
        let uid = rustix::process::geteuid().as_raw();
        match [file.clone(), folder].into_iter().flatten().find(is_closed) {
            Some(path) => AppError::Unwritable { path, uid, source },
            None => source.into(),
        }
    };
    Storage::open(url).await.map_err(failed)
}

/// Returns the version of the schema.
pub fn migrate(settings: &Settings) -> BoxFuture<'_, Result<i64, AppError>> {
    Box::pin(async {
        let storage = open(&settings.database.url).await?;
        let version = storage.schema().await?;
        storage.close().await;
        Ok(version)
    })
}

struct Entry {
    tokens: Tokens,
    accounts: Accounts,
    admin_token: SecretString,
    origins: Origins,
    invites: Invites,
}

fn start_metrics(settings: &Settings) -> Result<Option<Metrics>, AppError> {
    if !settings.metrics.enabled {
        // Fails for a second server of the process, which shares the first one's recorder.
        let _second = metrics::set_global_recorder(Tee(NoopRecorder));
        return Ok(None);
    }
    let started = Metrics::start(env!("CARGO_PKG_VERSION"), server_name(settings));
    started.map(Some).map_err(|error| AppError::Metrics(error.to_string()))
}

fn start_runtime(settings: &Settings, storage: &Storage, locks: Locks, peers: Peers) -> Runtime {
    let (seats, limits) = (&settings.seats, &settings.limits);
    let terms = SeatTerms {
        lease: seats.terms(),
        client_timeout: *seats.client_timeout,
        resume_grace: *seats.resume_grace,
        idle_release: *seats.idle_release,
    };
    let limits = RoomLimits {
        message_bytes: as_size(*limits.message_bytes),
        document_bytes: as_size(*limits.document_bytes),
        messages_per_second: *limits.messages_per_second,
        message_burst: *limits.message_burst,
        room_bytes: as_size(*limits.room_bytes),
        ..RoomLimits::default()
    };
    let checkpoints =
        HistoryTerms { pause: *settings.history.pause, longest: *settings.history.longest };
    Runtime::start(storage, locks, peers, terms, limits, checkpoints)
}

fn state(
    settings: &Settings,
    storage: &Storage,
    runtime: &Runtime,
    entry: Entry,
    readiness: Readiness,
    scrape: MetricsHandle,
) -> HttpState {
    let Entry { tokens, accounts, admin_token, origins, invites } = entry;
    let limits = &settings.limits;
    let rate = |per_second, burst| Rate {
        per_second: NonZeroU32::new(per_second).unwrap_or(NonZeroU32::MIN),
        burst: NonZeroU32::new(burst).unwrap_or(NonZeroU32::MIN),
    };
    let requests = rate(*limits.requests_per_second, *limits.request_burst);
    let joins = rate(*limits.joins_per_second, *limits.join_burst);
    let guests = rate(*limits.guests_per_second, *limits.guest_burst);
    let buffered = BudgetLimits {
        all: (*limits.buffered_bytes).into(),
        address: (*limits.buffered_bytes_per_address).into(),
        user: (*limits.buffered_bytes_per_user).into(),
    };
    let document_bytes = as_size(*limits.document_bytes);
    let quota = DocumentQuota {
        documents: *limits.user_documents,
        bytes: *limits.user_bytes,
        bin_retention: *limits.bin_retention,
    };
    let policy = Policy::new(&origins);
    let guest_bytes = NonZeroU32::new(*limits.guest_bytes_per_hour).unwrap_or(NonZeroU32::MIN);
    let guest_acts = [
        (guest_budgets::REQUESTS, *limits.guest_requests_per_address),
        (guest_budgets::CLAIMS, *limits.guest_claims_per_address),
        (guest_budgets::HANDLES, *limits.guest_handles_per_address),
    ];
    HttpState {
        tokens,
        accounts,
        access: Access::new(settings.auth.guests, admin_token.expose_secret().as_bytes())
            .under_https(origins.own().is_secure())
            .with_sign_in(settings.auth.sign_in_url.as_deref())
            .with_oidc(settings.auth.oidc.as_ref().map(|_| origins.page()))
            .with_session(*settings.auth.session),
        limiter: Limiter::new(requests, joins, guests),
        budget: ByteBudget::new(buffered),
        hosts: hosts(&settings.server),
        proxies: settings.server.trusted_proxies.clone(),
        policy,
        origins,
        sharing: Sharing::new(
            storage.clone(),
            invites,
            document_bytes,
            quota,
            runtime.tasks.tracker.clone(),
        ),
        tasks: runtime.tasks.clone(),
        texts: runtime.texts.clone(),
        seats: runtime.seats.clone(),
        reviews: runtime.reviews.clone(),
        readiness,
        scrape,
        tarpit: Tarpit::default(),
        guest_budgets: GuestBudgets::new(guest_bytes, guest_acts),
        security_log: SecurityLog::default(),
    }
}

fn as_size(bytes: u32) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
