//! Secrets that the first start creates and every later start reads.
//!
//! Two simultaneous first starts must agree on one secret. Each process writes a draft and then
//! hard-links it to the secret's name. The second link fails, because the name exists, and that process
//! reads the first one's secret. No process ever reads a partial secret.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::{ExposeSecret as _, SecretString};

use crate::config::{AuthSettings, Settings, TokenSecretFile};
use crate::http::auth::tokens::Tokens;
use crate::push::vapid::PushKey;
use crate::setting::add_password;

/// The bits of a mode by which others read or write a file, or its group writes it. A group may read: that is how
/// Kubernetes shows a secret to a user other than root.
const TOO_OPEN: u32 = 0o026;
/// Minimum length of a signing secret in bytes: the output length of HS256's hash (RFC 7518 §3.2).
const BYTES_MIN: usize = 32;

#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error(
        "{setting}: cannot read or make {} as uid {uid}; let this user write to its folder, or put \
         the file there",
        path.display()
    )]
    Io { setting: &'static str, path: PathBuf, uid: u32, source: io::Error },
    #[error("{setting}: {} is missing or empty: a file holds the password or secret", path.display())]
    NoPassword { setting: &'static str, path: PathBuf },
    #[error(
        "{0}: a secret has at least {BYTES_MIN} bytes; make another, or delete it to have one made"
    )]
    TooShort(PathBuf),
    #[error(
        "auth.token_secrets: {} is missing, or has less than {BYTES_MIN} bytes; make a secret with `galley keys`",
        .0.display()
    )]
    NoTokenSecret(PathBuf),
    #[error(
        "admin.token_file or admin.token holds the signing secret of {0}: an administrator's \
         token must be another text; delete the file to have one made"
    )]
    Shared(PathBuf),
    #[error(
        "{0}: no private key of P-256 in base64url; delete it to have one made, or set push.enabled \
         = false"
    )]
    NoPushKey(PathBuf),
    #[error("no random bytes to make a secret of")]
    Random(#[source] getrandom::Error),
}

/// The secrets of a server.
pub(super) struct Secrets {
    /// That of invites and of the messages between servers.
    pub(super) root: SecretString,
    pub(super) tokens: Tokens,
    pub(super) admin_token: SecretString,
}

impl Secrets {
    pub(super) fn find_or_make(settings: &Settings) -> Result<Self, SecretError> {
        let root = find_or_make(SecretFile("auth.secret_file", &settings.auth.secret_file))?;
        let admin_token = match &settings.admin.token {
            Some(token) => token.clone(),
            None => find_or_make(SecretFile("admin.token_file", &settings.admin.token_file))?,
        };
        demand_two(&root, &admin_token, &settings.auth.secret_file)?;
        for (TokenSecretFile { file, .. }, secret) in token_secrets(&settings.auth)? {
            demand_two(&secret, &admin_token, file)?;
        }
        Ok(Self { root, tokens: tokens(&settings.auth)?, admin_token })
    }
}

/// Signs and verifies tokens by `auth.token_secrets`. Without them by `auth.secret_file`, which is created if it
/// is missing.
pub fn tokens(auth: &AuthSettings) -> Result<Tokens, SecretError> {
    if auth.token_secrets.is_empty() {
        let secret = find_or_make(SecretFile("auth.secret_file", &auth.secret_file))?;
        return Ok(Tokens::new(secret.expose_secret().as_bytes()));
    }
    let secrets = token_secrets(auth)?;
    let secrets = secrets.iter().map(|(TokenSecretFile { kid, .. }, secret)| {
        (Some(kid.clone()), secret.expose_secret().as_bytes())
    });
    Ok(Tokens::of(secrets))
}

/// No start creates them: an older one that is missing would end tokens without a word.
fn token_secrets(
    auth: &AuthSettings,
) -> Result<Vec<(&TokenSecretFile, SecretString)>, SecretError> {
    let secrets = auth.token_secrets.iter().map(|named| {
        let secret = read(SecretFile("auth.token_secrets", &named.file))?.unwrap_or_default();
        match secret.len() < BYTES_MIN {
            true => Err(SecretError::NoTokenSecret(named.file.clone())),
            false => Ok((named, secret.into())),
        }
    });
    secrets.collect()
}

/// A file and the setting that names it.
#[derive(Clone, Copy, Debug)]
pub struct SecretFile<'a>(pub &'static str, pub &'a Path);

/// Puts the passwords of `database.password_file` and `locks.password_file` into the URLs.
pub fn with_passwords(mut settings: Settings) -> Result<Settings, SecretError> {
    let Settings { database, locks, .. } = &mut settings;
    for (setting, url, path) in [
        ("database.password_file", &mut database.url, database.password_file.take()),
        ("locks.password_file", &mut locks.url, locks.password_file.take()),
    ] {
        let Some(path) = path else { continue };
        *url = add_password(url, given(setting, &path)?.expose_secret());
    }
    Ok(settings)
}

/// The secret in a file that an operator has put there.
pub(super) fn given(setting: &'static str, path: &Path) -> Result<SecretString, SecretError> {
    let secret = read(SecretFile(setting, path))?.filter(|secret| !secret.is_empty());
    let missing = || SecretError::NoPassword { setting, path: path.to_owned() };
    Ok(secret.ok_or_else(missing)?.into())
}

/// A new secret, and a new push key with its public key.
pub fn keys() -> Result<[String; 3], SecretError> {
    let invalid = |_fault| SecretError::NoPushKey(PathBuf::from("galley keys"));
    let private = PushKey::generate().map_err(invalid)?;
    let public = PushKey::parse(&private).map_err(invalid)?.public().to_owned();
    Ok([random_text()?, private, public])
}

/// Creates the secret first if the file is missing: 256 random bits.
pub fn find_or_make(file: SecretFile<'_>) -> Result<SecretString, SecretError> {
    let secret = find_or_make_text(file, random_text)?;
    if secret.len() < BYTES_MIN {
        return Err(SecretError::TooShort(file.1.to_owned()));
    }
    Ok(secret.into())
}

/// Creates the key first if the file is missing.
pub fn find_or_make_push_key(path: &Path) -> Result<PushKey, SecretError> {
    let invalid = |_fault| SecretError::NoPushKey(path.to_owned());
    let text = find_or_make_text(SecretFile("push.key_file", path), || {
        PushKey::generate().map_err(invalid)
    })?;
    PushKey::parse(&text).map_err(invalid)
}

fn find_or_make_text(
    file: SecretFile<'_>,
    generate: impl FnOnce() -> Result<String, SecretError>,
) -> Result<String, SecretError> {
    match read(file)? {
        Some(text) => Ok(text),
        None => {
            make(file, &generate()?)?;
            read(file)?.ok_or_else(|| io_error(file, ErrorKind::NotFound.into()))
        }
    }
}

fn random_text() -> Result<String, SecretError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(SecretError::Random)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// `admin.token_file` may be a link to the signing secret. The message names `secret_file`.
fn demand_two(
    secret: &SecretString,
    admin_token: &SecretString,
    secret_file: &Path,
) -> Result<(), SecretError> {
    if secret.expose_secret() == admin_token.expose_secret() {
        return Err(SecretError::Shared(secret_file.to_owned()));
    }
    Ok(())
}

pub(super) fn read(file: SecretFile<'_>) -> Result<Option<String>, SecretError> {
    let path = file.1;
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error(file, error)),
    };
    let mode = fs::metadata(path).map(|found| found.permissions().mode());
    if mode.is_ok_and(|mode| mode & TOO_OPEN != 0) {
        tracing::warn!(
            file = %path.display(),
            "others can read a secret, or its group can write it; chmod 600 it, or mount it with mode 0440"
        );
    }
    Ok(Some(text.trim_end().to_owned()))
}

fn make(file: SecretFile<'_>, text: &str) -> Result<(), SecretError> {
    let path = file.1;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|source| io_error(file, source))?;
    }
    // The suffix is random. The process id is 1 in every container, so a draft that a crash left would
    // fail every later start.
    let mut suffix = [0; 8];
    getrandom::fill(&mut suffix).map_err(SecretError::Random)?;
    let mut draft = path.as_os_str().to_owned();
    draft.push(format!(".{}", URL_SAFE_NO_PAD.encode(suffix)));
    let draft = PathBuf::from(draft);
    write(&draft, text).map_err(|error| io_error(file, error))?;
    let linked = fs::hard_link(&draft, path).or_else(|error| match error.kind() {
        // Another process's first start created the secret.
        ErrorKind::AlreadyExists => Ok(()),
        _ => Err(io_error(file, error)),
    });
    if let Err(error) = fs::remove_file(&draft) {
        tracing::warn!(%error, file = %draft.display(), "a draft of a secret could not be removed");
    }
    linked
}

fn write(draft: &Path, secret: &str) -> io::Result<()> {
    // `create_new` follows no symbolic link (O_EXCL).
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(draft)?;
    // No newline at the end: the file's bytes are the key for other programs too.
    let written = file.write_all(secret.as_bytes()).and_then(|()| file.sync_all());
    if written.is_err() {
        // The disk is full. No later start would remove this draft, because each has its own name.
        let _gone = fs::remove_file(draft);
    }
    written
}

fn io_error(SecretFile(setting, path): SecretFile<'_>, source: io::Error) -> SecretError {
    let uid = rustix::process::geteuid().as_raw();
    SecretError::Io { setting, path: path.to_owned(), uid, source }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_secret_is_made_once_and_only_its_owner_may_read_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("deep/er/secret");
        let first = find_or_make(SecretFile("auth.secret_file", &path)).expect("made");
        let second = find_or_make(SecretFile("auth.secret_file", &path)).expect("found");
        assert_eq!(first.expose_secret(), second.expose_secret());
        assert_eq!(first.expose_secret().len(), 43);
        let mode = fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let files = fs::read_dir(path.parent().expect("a folder")).expect("readable");
        assert_eq!(files.count(), 1, "the draft is gone");
    }

    #[test]
    fn two_first_starts_agree_on_one_secret() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secret");
        make(SecretFile("auth.secret_file", &path), "first").expect("made");
        make(SecretFile("auth.secret_file", &path), "second").expect("not made again");
        assert_eq!(
            read(SecretFile("auth.secret_file", &path)).expect("readable").as_deref(),
            Some("first")
        );
    }

    #[test]
    fn a_draft_is_written_into_no_file_that_is_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let (theirs, draft) = (folder.path().join("theirs"), folder.path().join("secret.1"));
        fs::write(&theirs, "").expect("written");
        symlink(&theirs, &draft).expect("a link");
        let refused = write(&draft, "a secret").expect_err("a refusal");
        assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&theirs).expect("readable"), "");
    }

    #[test]
    fn a_dangling_link_instead_of_a_secret_is_an_error_and_not_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secret");
        symlink(folder.path().join("theirs"), &path).expect("a link");
        assert!(matches!(
            find_or_make(SecretFile("auth.secret_file", &path)),
            Err(SecretError::Io { .. })
        ));
        assert!(!folder.path().join("theirs").exists());
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 1, "no draft is left");
    }

    #[test]
    fn an_admin_token_that_is_a_link_to_the_secret_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, token) = (folder.path().join("secret"), folder.path().join("admin-token"));
        let secret = find_or_make(SecretFile("auth.secret_file", &path)).expect("made");
        symlink(&path, &token).expect("a link");
        let linked = find_or_make(SecretFile("auth.secret_file", &token)).expect("found");
        let refused = demand_two(&secret, &linked, &path);
        assert!(matches!(refused, Err(SecretError::Shared(_))));
        fs::remove_file(&token).expect("removed");
        let own = find_or_make(SecretFile("auth.secret_file", &token)).expect("made");
        assert!(demand_two(&secret, &own, &path).is_ok());
    }

    #[test]
    fn a_secret_that_can_be_guessed_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secret");
        fs::write(&path, "hunter2\n").expect("written");
        assert!(matches!(
            find_or_make(SecretFile("auth.secret_file", &path)),
            Err(SecretError::TooShort(_))
        ));
    }

    #[test]
    fn a_push_key_is_made_once_beside_the_secret_and_another_text_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("data/push-key");
        let first = find_or_make_push_key(&path).expect("made");
        assert_eq!(find_or_make_push_key(&path).expect("found").public(), first.public());
        let mode = fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        fs::write(&path, "no key").expect("written");
        assert!(matches!(find_or_make_push_key(&path), Err(SecretError::NoPushKey(_))));
    }
}
