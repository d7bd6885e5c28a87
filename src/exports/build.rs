//! Finds the stored file of a document, or builds it once for all callers.
//!
//! # Order of a build
//!
//! 1. The request acquires the lock of the file and moves the guard into the build task.
//! 2. The task ratifies the fence of the lock. From then on the database refuses the file of every
//!    earlier build.
//! 3. It reads the state of the document again: an earlier build may have stored the file meanwhile.
//! 4. It waits for a file permit, fair by user and address, and holds it until the file is stored: files
//!    that wait for a slow database have a bound of memory, and a waiting build holds none.
//! 5. It reads the reviews, and the text under a build permit of the user who asked. Then it renders the
//!    file on a blocking thread.
//! 6. It stores the file under its fence, and then releases the lock.
//!
//! A document that changes while its file is built needs another build for the next caller. A writer
//! who types would keep a caller waiting for ever, so a file that took long answers requests for
//! some seconds after its end, also if the text has changed since (`exports::served`).

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};
use tokio_util::task::TaskTracker;

use crate::bounds::permits::{Permit, Permits, Requester};
use crate::domain::export::{ExportFailure, ExportFormat};
use crate::domain::fence::Fence;
use crate::domain::user::User;
use crate::exports::error::ExportError;
use crate::exports::rendering::{PdfFonts, Rendering};
use crate::exports::served::{UNSAVED, servable};
use crate::exports::store;
use crate::exports::store::{
    ExportBounds, ExportBuild, ExportKey, ExportMark, ExportState, NewExport, StoredExport,
};
use crate::files::EXPORT_BYTES_MAX;
use crate::files::render_model::{Heading, RenderModel};
use crate::locks::{AcquireOptions, Guard, Lease, LockError, LockName, Locks};
use crate::periodic::Work;
use crate::reviews::anchors::placed_in;
use crate::rooms::RoomError;
use crate::rooms::texts::Texts;
use crate::seats::SeatError;
use crate::storage::error::StorageError;
use crate::storage::packed::sha256;
use crate::storage::{Storage, trace};

/// Exported files that the server holds in memory at once, from the rendering until they are stored: 64 MiB.
const EXPORTS_HELD_MAX: usize = 4;
/// Exported files held for one address: the memory of one remains for others.
const EXPORTS_HELD_PER_ADDRESS_MAX: usize = EXPORTS_HELD_MAX - 1;
/// Bytes of the stored exports of one share link: each format once, and the largest ones twice.
const EXPORTS_PER_LINK_BYTES_MAX: i64 = 2 * 16 * 1024 * 1024;
/// Bytes of all stored exports. They are a cache: beyond it the server deletes the oldest ones.
const EXPORTS_BYTES_MAX: i64 = 256 * 1024 * 1024;
/// Stored exports. The trim after each build reads the sizes of all.
const EXPORTS_MAX: i64 = 10_000;
/// How long the database stores an export: a day's downloads.
const EXPORT_AGE_MAX: TimeDelta = TimeDelta::hours(24);
const _: () = assert!(2 * (EXPORT_BYTES_MAX as i64) <= EXPORTS_PER_LINK_BYTES_MAX);
const _: () = assert!(EXPORTS_PER_LINK_BYTES_MAX < EXPORTS_BYTES_MAX);

/// How long the request that starts a build waits for its file. Most files take a few milliseconds.
const WAIT: Duration = Duration::from_secs(1);
/// The longest rendering: five thousand pages of a PDF on a slow machine.
const RENDER_TIMEOUT: Duration = Duration::from_secs(90);
/// Lease of the lock, renewed every two seconds: a dead builder is replaced after it.
const LEASE: Duration = Duration::from_secs(6);
/// How long a stored failure answers requests. After it the next request starts another build.
const FAILED_FOR: TimeDelta = TimeDelta::seconds(10);
/// Shortest interval between two stored steps of the progress.
const NOTE_EVERY: Duration = Duration::from_millis(500);
/// Period of the deletion of old files.
const TRIM_EVERY: Duration = Duration::from_secs(10 * 60);

#[derive(Clone, Debug)]
pub struct Exports {
    pub(super) texts: Texts,
    storage: Storage,
    locks: Locks,
    tasks: TaskTracker,
    /// One for each rendered file that is not stored yet.
    files: Permits,
    fonts: PdfFonts,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Export {
    Ready {
        file: StoredExport,
        title: String,
    },
    Building {
        /// 0 to 100.
        progress: u8,
    },
}

#[derive(Debug)]
pub enum Lookup {
    Found(Export),
    /// A build is due, from this state.
    Due(Box<ExportState>),
}

type Built = Result<StoredExport, ExportError>;

impl Exports {
    #[must_use]
    pub fn new(
        texts: Texts,
        storage: Storage,
        locks: Locks,
        tasks: TaskTracker,
        fonts: PdfFonts,
    ) -> Self {
        let files = Permits::new(EXPORTS_HELD_MAX, EXPORTS_HELD_PER_ADDRESS_MAX);
        Self { texts, storage, locks, tasks, files, fonts }
    }

    /// The formats that this server builds. It serves stored files of the other ones, too.
    #[must_use]
    pub fn formats(&self) -> Vec<ExportFormat> {
        let is_built =
            |format: &ExportFormat| *format != ExportFormat::Pdf || self.fonts.are_there();
        ExportFormat::ALL.iter().copied().filter(is_built).collect()
    }

    /// [`ExportError::NotFound`] for a user who is no member, [`ExportError::Failed`] shortly after a
    /// build failed, [`ExportError::NotAvailable`] if this server cannot build the file.
    pub async fn look_up(&self, user: &User, key: ExportKey) -> Result<Lookup, ExportError> {
        let state = store::export_state(&self.storage, key).await?;
        let state =
            state.filter(|state| state.has_member(&user.id)).ok_or(ExportError::NotFound)?;
        let now = Utc::now();
        if let Some(file) = servable(key, &state, now) {
            let title = state.now.title;
            return Ok(Lookup::Found(Export::Ready { file, title }));
        }
        let failed = state.build.as_ref().filter(|build| now < build.changed_at + FAILED_FOR);
        if let Some(failure) = failed.and_then(|build| build.failure) {
            return Err(failure.into());
        }
        let Err(not_available) = Rendering::new(key.format, &self.fonts).await else {
            return Ok(Lookup::Due(Box::new(state)));
        };
        // Another server, which has the fonts, may be at it. Its clock may differ, so the lock decides.
        let holder = self.locks.holder(&lock_of(key)).await.map_err(SeatError::Locks)?;
        let Some(build) = state.build else { return Err(not_available) };
        if holder.is_some() {
            return Ok(Lookup::Found(Export::Building { progress: build.progress.min(99) }));
        }
        // A build stores its file before it releases its lock.
        let state = store::export_state(&self.storage, key).await?.ok_or(ExportError::NotFound)?;
        let file = servable(key, &state, now).ok_or(not_available)?;
        Ok(Lookup::Found(Export::Ready { file, title: state.now.title }))
    }

    /// `None`: another file has replaced it.
    pub async fn bytes(
        &self,
        key: ExportKey,
        file: &StoredExport,
    ) -> Result<Option<Bytes>, ExportError> {
        Ok(store::export_bytes(&self.storage, key, file.hash).await?)
    }

    /// Starts the build unless another caller builds the file, and waits a moment for its end. `charge`
    /// counts the build to its user. [`ExportError::Failed`]: the build fails in this moment.
    ///
    /// # Cancel safety
    ///
    /// Dropped before the grant, it starts no build and leaves no lock behind. From then on the task
    /// owns the lock and finishes the build.
    pub async fn build(
        &self,
        key: ExportKey,
        state: ExportState,
        requester: Requester,
        charge: impl FnOnce() -> Result<(), Duration>,
    ) -> Result<Export, ExportError> {
        if !self.storage.has_room() {
            return Err(SeatError::Room(RoomError::StorageSpent).into());
        }
        let floor = state.build.as_ref().map_or(Fence::ZERO, |build| build.fence);
        let options = AcquireOptions::new(Lease::Renewed(LEASE)).above(floor);
        let guard = match self.locks.lock(&lock_of(key), &options).await {
            Ok(guard) => guard,
            Err(LockError::Busy(_) | LockError::WaitTimeout(_)) => {
                let progress = state.build.map_or(0, |build| build.progress.min(99));
                return Ok(Export::Building { progress });
            }
            Err(LockError::Unavailable(error)) => return Err(SeatError::Locks(error).into()),
            Err(LockError::Lost(_)) => return Err(ExportFailure::Unavailable.into()),
        };
        charge().map_err(ExportError::TooFast)?;
        let (done, built) = oneshot::channel();
        let this = self.clone();
        // The guard moves into the task.
        let building = async move {
            let built = this.build_under(&guard, key, requester).await;
            if let Err(error) = guard.release().await {
                tracing::debug!(%error, "the lock of an export is released later");
            }
            // The caller may have stopped waiting.
            let _gone = done.send(built);
            this.trim(Some(key)).await;
        };
        #[expect(clippy::disallowed_methods, reason = "under the lock of the file")]
        self.tasks.spawn(trace::within(trace::current(), building));
        match timeout(WAIT, built).await {
            Ok(Ok(built)) => Ok(Export::Ready { file: built?, title: state.now.title }),
            Ok(Err(_panicked)) => Err(ExportFailure::Unavailable.into()),
            Err(_elapsed) => Ok(Export::Building { progress: 0 }),
        }
    }

    #[must_use]
    pub fn trimming(&self) -> Work {
        let exports = self.clone();
        Work::new("trim exports", TRIM_EVERY, move || {
            let exports = exports.clone();
            async move { exports.trim(None).await }
        })
    }

    async fn trim(&self, newest: Option<ExportKey>) {
        let bounds = ExportBounds {
            rows: EXPORTS_MAX,
            bytes: EXPORTS_BYTES_MAX,
            link_bytes: EXPORTS_PER_LINK_BYTES_MAX,
            built_after: Utc::now() - EXPORT_AGE_MAX,
        };
        if let Err(error) = store::trim_exports(&self.storage, bounds, newest).await {
            tracing::warn!(%error, "old exports were not deleted; the next build tries again");
        }
    }

    async fn build_under(&self, guard: &Guard, key: ExportKey, requester: Requester) -> Built {
        let began = Instant::now();
        let fence = guard.fence();
        let work = Build { exports: self, key, requester, fence, began, noted: began };
        let built = tokio::select! {
            // Polled first: the database would refuse the file.
            biased;
            loss = guard.lost() => {
                tracing::warn!(link = %key.link, %loss, "the build of an export has lost its lock");
                Err(Stop::Lost)
            }
            built = work.run() => built,
        };
        let (outcome, built) = match built {
            Ok(built) => built,
            Err(Stop::Lost) => ("lost", Err(ExportFailure::Unavailable.into())),
            Err(Stop::Gone) => ("gone", Err(ExportError::NotFound)),
            Err(Stop::Failed(error)) => {
                tracing::warn!(link = %key.link, %error, "an export cannot be built");
                ("failed", Err(error))
            }
        };
        let format = key.format.as_str();
        metrics::counter!("galley_exports_total", "format" => format, "outcome" => outcome)
            .increment(1);
        if outcome == "built" {
            metrics::histogram!("galley_export_seconds", "format" => format)
                .record(began.elapsed());
        }
        built
    }
}

enum Stop {
    /// A later build is ratified.
    Lost,
    /// The link has ended.
    Gone,
    Failed(ExportError),
}

impl From<StorageError> for Stop {
    fn from(error: StorageError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<RoomError> for Stop {
    fn from(error: RoomError) -> Self {
        match error {
            RoomError::NoSuchDocument => Self::Gone,
            RoomError::Unreadable => Self::Failed(ExportFailure::Damaged.into()),
            RoomError::TooCostly => Self::Failed(ExportFailure::TooCostly.into()),
            other => Self::Failed(ExportError::Session(other.into())),
        }
    }
}

struct Build<'a> {
    exports: &'a Exports,
    key: ExportKey,
    /// The build counts towards the permits of this user.
    requester: Requester,
    fence: Fence,
    began: Instant,
    noted: Instant,
}

impl Build<'_> {
    /// The name of the outcome, and the file.
    async fn run(mut self) -> Result<(&'static str, Built), Stop> {
        let (storage, key) = (&self.exports.storage, self.key);
        if !store::begin_export(storage, key, self.fence, Utc::now()).await? {
            let state = store::export_state(storage, key).await?;
            return Err(if state.is_some() { Stop::Lost } else { Stop::Gone });
        }
        let state = store::export_state(storage, key).await?.ok_or(Stop::Gone)?;
        if let Some(file) = servable(key, &state, Utc::now()) {
            return Ok(("found", Ok(file)));
        }
        let permit = self.exports.files.take(self.requester.clone()).await;
        let permit = Arc::new(permit.ok_or(RoomError::Busy)?);
        let _held = Held::count();
        match self.render(&state, &permit).await {
            Ok((mark, bytes)) => self.store(mark, bytes).await.map(|file| ("built", Ok(file))),
            Err(Stop::Failed(ExportError::Failed(failure))) => {
                self.note(100, Some(failure)).await?;
                Err(Stop::Failed(failure.into()))
            }
            Err(stop) => Err(stop),
        }
    }

    async fn render(
        &mut self,
        state: &ExportState,
        permit: &Arc<Permit>,
    ) -> Result<(ExportMark, Bytes), Stop> {
        let texts = &self.exports.texts;
        let key = self.key;
        // The permit comes before the reviews: a waiting build holds no memory.
        let mut snapshot = texts.snapshot(state.document, &self.requester).await?;
        if snapshot.seq < state.now.seq {
            // Another server has stored an edit whose message this one lacks. The permit is free meanwhile.
            drop(snapshot);
            texts.read_on(state.document).await;
            snapshot = texts.snapshot(state.document, &self.requester).await?;
        }
        self.progress(20).await?;
        let reviews = match key.has_reviews {
            true => self.exports.storage.all_reviews_unchecked(key.link).await?,
            false => Vec::new(),
        };
        self.progress(40).await?;
        let mark = ExportMark {
            seq: if snapshot.is_durable { snapshot.seq } else { UNSAVED },
            ..state.now.clone()
        };
        let (title, writer) = (mark.title.clone(), state.writer.name.clone());
        let heading = Heading { title, writer, built_at: Utc::now(), zone: key.zone };
        let rendering = Rendering::new(key.format, &self.exports.fonts).await;
        let rendering = rendering.map_err(Stop::Failed)?;
        let model = texts.read_at(state.document, snapshot, move |text| {
            let reviews = placed_in(text, reviews);
            RenderModel::new(heading, text.content(), reviews)
        });
        let model = model.await?;
        let bytes = self.render_model(rendering, model, Arc::clone(permit)).await?;
        self.progress(90).await?;
        Ok((mark, bytes))
    }

    /// Renders on a blocking thread of its own: the typesetting of a long text takes many seconds, and the
    /// text and its build permit are free meanwhile. The thread holds the file permit until its end, also
    /// after the build lost its lock.
    async fn render_model(
        &mut self,
        rendering: Rendering,
        model: RenderModel,
        permit: Arc<Permit>,
    ) -> Result<Bytes, Stop> {
        let _stop = rendering.stop_on_drop();
        let thread = rendering.clone();
        #[expect(clippy::disallowed_methods, reason = "under the permit")]
        let work = self.exports.tasks.spawn_blocking(move || {
            let _permit = permit;
            thread.render(&model)
        });
        let mut work = pin!(timeout(RENDER_TIMEOUT, work));
        let rendered = loop {
            if let Ok(rendered) = timeout(NOTE_EVERY, &mut work).await {
                break rendered;
            }
            self.progress(40_u8.saturating_add(rendering.percent() / 2)).await?;
        };
        let rendered = match rendered {
            Ok(Ok(rendered)) => rendered,
            Ok(Err(panicked)) => {
                tracing::error!(link = %self.key.link, %panicked, "a file cannot be rendered");
                Err(ExportFailure::Damaged)
            }
            Err(_elapsed) => Err(ExportFailure::TooCostly),
        };
        Ok(rendered.map_err(|failure| Stop::Failed(failure.into()))?.into())
    }

    async fn store(&self, mark: ExportMark, bytes: Bytes) -> Result<StoredExport, Stop> {
        let export = StoredExport {
            mark,
            hash: sha256(&bytes),
            length: i64::try_from(bytes.len()).unwrap_or(i64::MAX),
            took_ms: i64::try_from(self.began.elapsed().as_millis()).unwrap_or(i64::MAX),
            built_at: whole_milliseconds(Utc::now()),
        };
        let new = NewExport { key: self.key, export, bytes };
        let is_stored = store::store_export(&self.exports.storage, self.fence, &new).await?;
        if is_stored { Ok(new.export) } else { Err(Stop::Lost) }
    }

    async fn progress(&mut self, progress: u8) -> Result<(), Stop> {
        if self.noted.elapsed() < NOTE_EVERY {
            return Ok(());
        }
        self.noted = Instant::now();
        self.note(progress, None).await
    }

    async fn note(&self, progress: u8, failure: Option<ExportFailure>) -> Result<(), Stop> {
        let build = ExportBuild { fence: self.fence, progress, failure, changed_at: Utc::now() };
        let is_last = store::note_export(&self.exports.storage, self.key, &build).await?;
        is_last.then_some(()).ok_or(Stop::Lost)
    }
}

/// Counts a file in the gauge until it is stored or dropped.
struct Held;

impl Held {
    fn count() -> Self {
        metrics::gauge!("galley_exports_held").increment(1.0);
        Self
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        metrics::gauge!("galley_exports_held").decrement(1.0);
    }
}

fn lock_of(key: ExportKey) -> LockName {
    let ExportKey { link, format, has_reviews, zone: _ } = key;
    LockName::named(&format!("export:{link}:{format}:{}", u8::from(has_reviews)))
}

fn whole_milliseconds(at: DateTime<Utc>) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(at.timestamp_millis()).unwrap_or(at)
}
