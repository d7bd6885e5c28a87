//! The root secret (`auth.secret_file`) and the database: a server whose root is not the database's does not start.

use futures_util::future::BoxFuture;
use secrecy::ExposeSecret as _;

use crate::app::secrets::{SecretFile, find_or_make};
use crate::app::{AppError, open};
use crate::config::Settings;
use crate::sharing::invite::Invites;
use crate::storage::Storage;
use crate::storage::root::{RootFound, RootMark, RootedHashes};

/// Separates this use of the root from all others.
const PURPOSE: &[u8] = b"galley root\0";
/// Share links that the log names after a replacement.
const LINKS_SHOWN: usize = 100;

fn mark_of(root: &Invites) -> RootMark {
    root.authenticate(&[PURPOSE])
}

pub(super) async fn demand(
    storage: &Storage,
    root: &Invites,
    settings: &Settings,
) -> Result<(), AppError> {
    match storage.compare_root(mark_of(root)).await? {
        RootFound::Same => Ok(()),
        RootFound::Other => Err(AppError::OtherRoot(settings.auth.secret_file.clone())),
    }
}

/// Replaces the root of the database by that of the settings. No other server may run.
pub fn replace(settings: &Settings) -> BoxFuture<'_, Result<(), AppError>> {
    Box::pin(async {
        let secret = find_or_make(SecretFile("auth.secret_file", &settings.auth.secret_file))?;
        let root = Invites::new(secret.expose_secret().as_bytes());
        let storage = open(&settings.database.url).await?;
        if storage.compare_root(mark_of(&root)).await? == RootFound::Other {
            replace_in(&storage, &root).await?;
        } else {
            tracing::info!("the database has this root secret already; no invite ends");
        }
        storage.close().await;
        Ok(())
    })
}

async fn replace_in(storage: &Storage, root: &Invites) -> Result<(), AppError> {
    let links = storage.rooted_links().await?;
    let share_links = links.share_links.iter();
    let share_links =
        share_links.map(|(id, invite)| (*id, hex(root.in_force(*id, *invite).hash())));
    let personal_links = links.personal_links.iter();
    let personal_links = personal_links.map(|id| (*id, hex(root.personal(*id).hash())));
    let hashes = RootedHashes {
        share_links: share_links.collect(),
        personal_links: personal_links.collect(),
    };
    storage.replace_root(mark_of(root), &hashes).await?;
    let shown = hashes.share_links.iter().take(LINKS_SHOWN).map(|(id, _)| id.to_string());
    tracing::warn!(
        share_links = hashes.share_links.len(),
        personal_links = hashes.personal_links.len(),
        first = %shown.collect::<Vec<_>>().join(" "),
        "the root secret is replaced: the invites of these share links and all personal links end; their \
         owners find new ones on the page"
    );
    Ok(())
}

fn hex(hash: [u8; 32]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
