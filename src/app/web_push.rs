//! Prepares Web Push from the settings.

use crate::app::secrets::{self, SecretError};
use crate::config::Settings;
use crate::notify::Notify;
use crate::notify::outgoing::Outgoing;
use crate::notify::web_push::PushOptions;
use crate::storage::Storage;

/// Prepares Web Push. A folder without write access stops no start: a server that ran before Web Push
/// existed goes on without it.
pub(super) fn start(settings: &Settings, storage: &Storage) -> Result<Notify, SecretError> {
    let push = &settings.push;
    let public_url = settings.server.public_url.as_ref().filter(|origin| origin.is_secure());
    let key = match push.enabled.then(|| secrets::find_or_make_push_key(&push.key_file)) {
        None => None,
        Some(Ok(key)) => Some(key),
        Some(Err(error @ SecretError::Io { .. })) => {
            tracing::warn!(
                error = %source_of(&error),
                "the server sends no pushes: see push.key_file, or set push.enabled = false"
            );
            None
        }
        Some(Err(error)) => return Err(error),
    };
    let options = key.map(|key| PushOptions {
        key,
        subject: push.subject.clone().or_else(|| public_url.map(ToString::to_string)),
        allow_private: push.allow_private,
        hosts: push.hosts.iter().map(|host| host.to_ascii_lowercase()).collect(),
    });
    Ok(Notify::new(storage.clone(), Outgoing::default(), options))
}

/// An error with its cause, in one line.
fn source_of(error: &SecretError) -> String {
    let cause = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    format!("{error}: {cause}")
}
