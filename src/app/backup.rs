//! `galley backup` and `galley restore`: copies of a SQLite database, and the commands for PostgreSQL.
//!
//! A restore changes nothing until it has checked a draft of the copy beside the database. A crash between
//! its renames leaves the new file beside the former write-ahead log, which the next start refuses.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use chrono::Utc;
use futures_util::future::BoxFuture;
use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::io::Errno;

use crate::app::secrets::{self, SecretError, SecretFile};
use crate::config::Settings;
use crate::pubsub;
use crate::setting::with_password;
use crate::storage::copy::{self, Stamp, beside};
use crate::storage::error::StorageError;

#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error("{} cannot be restored", path.display())]
    Copy { path: PathBuf, source: StorageError },
    #[error("{}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{0}")]
    Refused(String),
}

/// Returns the report.
pub fn write<'a>(
    settings: &'a Settings,
    target: &'a Path,
) -> BoxFuture<'a, Result<String, BackupError>> {
    Box::pin(async move {
        let url = &settings.database.url;
        if url.starts_with("postgres") {
            let [dump, restore] = of_postgres(url, target);
            // Tables of a newer schema that refer to older ones stop the restore.
            return Ok(format!(
                "{dump}\n# To restore it, stop all servers first; after an upgrade also make the \
                 database anew and empty:\n# {restore}\n"
            ));
        }
        let database = copy::file_of(url)?;
        if ["-wal", "-shm", "-journal"].iter().any(|suffix| beside(&database, suffix) == target) {
            let name = target.display();
            return Err(BackupError::Refused(format!(
                "{name} is a name of SQLite's; choose another"
            )));
        }
        let mark = installation(settings)?.unwrap_or_default();
        // Private before the first byte.
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(target);
        let made = made.map_err(|source| io_error(target, source))?;
        let written = copy::write(&database, target, mark).await.map_err(BackupError::from);
        let written = written.and_then(|()| made.sync_all().map_err(|it| io_error(target, it)));
        if written.is_err() {
            let _gone = fs::remove_file(target);
        }
        written?;
        let (from, to) = (database.display(), target.display());
        Ok(format!("{to}: a copy of {from}\n{}", belongings(settings)))
    })
}

/// Returns the report.
pub fn restore<'a>(
    settings: &'a Settings,
    copy: &'a Path,
    takes_others: bool,
) -> BoxFuture<'a, Result<String, BackupError>> {
    Box::pin(async move {
        let url = &settings.database.url;
        if url.starts_with("postgres") {
            let [dump, restore] = of_postgres(url, copy);
            return Ok(format!("# Stop all servers first. The copy is of:\n# {dump}\n{restore}\n"));
        }
        let database = copy::file_of(url)?;
        demand_whole(copy, &database)?;
        // Held to the end: a server that starts meanwhile waits, and opens the new file.
        let lock = lock(&database)?;
        let former = beside(&database, &Utc::now().format(".%Y%m%dT%H%M%S%.3fZ").to_string());
        let draft = beside(&former, ".draft");
        let own = if takes_others { None } else { installation(settings)? };
        let checked = fill(&draft, copy, own, takes_others).await;
        let replaced = match &checked {
            Ok(_) => replace(&database, &draft, &former),
            Err(_) => Ok(()),
        };
        if checked.is_err() || replaced.is_err() {
            for suffix in ["", "-wal", "-shm", "-journal"] {
                let _gone = fs::remove_file(beside(&draft, suffix));
            }
        }
        let Stamp { schema, .. } = checked?;
        replaced?;
        let mut report = format!(
            "{}: restored from {}, schema version {schema}\n",
            database.display(),
            copy.display()
        );
        if lock.is_some() {
            report += &format!("{}: the former file, with its -wal and -shm\n", former.display());
        }
        Ok(report + &belongings(settings))
    })
}

/// Refuses the database itself, and a file that lacks what a log beside it holds.
fn demand_whole(copy: &Path, database: &Path) -> Result<(), BackupError> {
    let found = fs::metadata(copy).map_err(|source| io_error(copy, source))?;
    let is_same = |it: fs::Metadata| (it.dev(), it.ino()) == (found.dev(), found.ino());
    let name = copy.display();
    // `lock` would end with the first close of the file.
    if fs::metadata(database).is_ok_and(is_same) {
        return Err(BackupError::Refused(format!("{name} is the database itself")));
    }
    let logs = ["-wal", "-journal"].map(|suffix| beside(copy, suffix));
    match logs.iter().find(|log| fs::metadata(log).is_ok_and(|log| log.len() != 0)) {
        Some(log) => Err(BackupError::Refused(format!(
            "{name} is not whole: {} has changes of it; make copies with `galley backup`",
            log.display()
        ))),
        None => Ok(()),
    }
}

/// Each connection of SQLite holds a lock on a part of the file. The kernel passes locks to other hosts if
/// the file system does. None: there is no database.
fn lock(database: &Path) -> Result<Option<File>, BackupError> {
    let file = match File::options().read(true).write(true).open(database) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error(database, error)),
    };
    match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::AGAIN | Errno::ACCESS) => {
            let name = database.display();
            Err(BackupError::Refused(format!("a running server uses {name}; stop it first")))
        }
        Err(error) => Err(io_error(database, error.into())),
    }
}

/// Copies and checks. `own`: the mark that the copy must have. `takes_others`: the next start may have another root.
async fn fill(
    draft: &Path,
    copy: &Path,
    own: Option<i32>,
    takes_others: bool,
) -> Result<Stamp, BackupError> {
    if let Some(folder) = draft.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|source| io_error(folder, source))?;
    }
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(draft);
    let mut made = made.map_err(|source| io_error(draft, source))?;
    let mut from = File::open(copy).map_err(|source| io_error(copy, source))?;
    io::copy(&mut from, &mut made).map_err(|source| io_error(draft, source))?;
    let invalid = |source| BackupError::Copy { path: copy.to_owned(), source };
    let stamp = copy::check(draft).await.map_err(invalid)?;
    made.sync_all().map_err(|source| io_error(draft, source))?;
    if takes_others {
        copy::forget_root(draft).await.map_err(invalid)?;
    }
    match (stamp.installation, own) {
        (theirs, Some(own)) if theirs != 0 && theirs != own => Err(BackupError::Refused(format!(
            "{} is of another installation: its server had another secret. Put that secret beside it, or \
             add --other-installation: then all users sign in again, and guests and invites are lost",
            copy.display()
        ))),
        _ => Ok(stamp),
    }
}

fn replace(database: &Path, draft: &Path, former: &Path) -> Result<(), BackupError> {
    let rename = |from: &Path, to: &Path| match fs::rename(from, to) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        renamed => renamed.map_err(|source| io_error(from, source)),
    };
    rename(database, former)?;
    rename(draft, database).inspect_err(|_| {
        let _back = fs::rename(former, database);
    })?;
    for suffix in ["-wal", "-shm"] {
        rename(&beside(database, suffix), &beside(former, suffix))?;
    }
    let folder = database.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    File::open(folder).and_then(|it| it.sync_all()).map_err(|source| io_error(folder, source))
}

/// The mark of this installation. None without a secret: the command makes none.
fn installation(settings: &Settings) -> Result<Option<i32>, SecretError> {
    let secret = secrets::read(SecretFile("auth.secret_file", &settings.auth.secret_file))?;
    Ok(secret.map(|secret| pubsub::installation(secret.as_bytes())))
}

fn belongings(settings: &Settings) -> String {
    let files = [
        (
            &settings.auth.secret_file,
            "without it all users sign in again, and guests and invites are lost",
        ),
        (&settings.push.key_file, "without it browsers must subscribe to notifications again"),
    ];
    let line = |(file, use_of): (&PathBuf, &str)| {
        let state = if file.exists() { "is here" } else { "IS MISSING" };
        format!("{} belongs beside it and {state}: {use_of}\n", file.display())
    };
    files.map(line).concat()
}

/// The commands that back up and restore a PostgreSQL, as lines of a shell, without the password.
fn of_postgres(url: &str, copy: &Path) -> [String; 2] {
    let (url, copy) = (quoted(&with_password(url, "")), quoted(&copy.to_string_lossy()));
    [
        format!("pg_dump --format=custom --file={copy} {url}"),
        format!("pg_restore --clean --if-exists --single-transaction --dbname={url} {copy}"),
    ]
}

/// As one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn io_error(path: &Path, source: io::Error) -> BackupError {
    BackupError::Io { path: path.to_owned(), source }
}
