//! The root secret under which the installation makes its invites. The database has an HMAC under it.

use crate::domain::ids::{InviteId, PersonalLinkId, ShareLinkId};
use crate::storage::statement::{Row, json, sql};
use crate::storage::tx::run;
use crate::storage::tx_error::TxError;
use crate::storage::{Storage, StorageFuture};

/// The mark of a root: an HMAC under it.
pub type RootMark = [u8; 32];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootFound {
    /// The database has the mark, as from this call on if it had none.
    Same,
    Other,
}

/// The secrets in force that a root makes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RootedLinks {
    /// The share links, with the id of the invite in force.
    pub share_links: Vec<(ShareLinkId, Option<InviteId>)>,
    pub personal_links: Vec<PersonalLinkId>,
}

/// The hashes of those secrets under another root, in hexadecimal digits.
#[derive(Clone, Debug, Default)]
pub struct RootedHashes {
    pub share_links: Vec<(ShareLinkId, String)>,
    pub personal_links: Vec<(PersonalLinkId, String)>,
}

impl Storage {
    /// Stores the mark, if the database has none, and compares them.
    pub fn compare_root(&self, mark: RootMark) -> StorageFuture<'_, RootFound> {
        run!(self, Write, tx => {
            sql!(
                "INSERT INTO installation_root (id, mark) VALUES (1, {mark}) \
                 ON CONFLICT (id) DO NOTHING"
            )
            .run(tx)
            .await?;
            let found: RootMark = sql!("SELECT mark FROM installation_root").one(tx).await?.get(0)?;
            Ok(if found == mark { RootFound::Same } else { RootFound::Other })
        })
    }

    pub fn rooted_links(&self) -> StorageFuture<'_, RootedLinks> {
        run!(self, Snapshot, tx => {
            let rows =
                sql!("SELECT id, invite_id FROM share_links WHERE revoked_at IS NULL ORDER BY id");
            let rows = rows.rows(tx).await?;
            let link = |row: &Row| Ok::<_, TxError>((row.get("id")?, row.get("invite_id")?));
            let share_links = rows.iter().map(link).collect::<Result<_, _>>()?;
            let personal_links = sql!("SELECT link_id FROM personal_links").values(tx).await?;
            Ok(RootedLinks { share_links, personal_links })
        })
    }

    /// Replaces the root, and with it the hashes of all that it makes.
    pub fn replace_root<'a>(
        &'a self,
        mark: RootMark,
        hashes: &'a RootedHashes,
    ) -> StorageFuture<'a, ()> {
        run!(self, Write, tx => {
            sql!("UPDATE installation_root SET mark = {mark}").run(tx).await?;
            sql!(
                "UPDATE share_links SET invite_hash = {@hex:w.value ->> 1} \
                 FROM {@rows:{json(&hashes.share_links)?}} WHERE share_links.id = w.value ->> 0"
            )
            .run(tx)
            .await?;
            sql!(
                "UPDATE personal_links SET link_hash = {@hex:w.value ->> 1} \
                 FROM {@rows:{json(&hashes.personal_links)?}} \
                 WHERE personal_links.link_id = w.value ->> 0"
            )
            .run(tx)
            .await
            .map(drop)
        })
    }
}
