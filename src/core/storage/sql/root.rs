//! The statements of the root secret.

use crate::storage::root::{RootFound, RootMark, RootedHashes, RootedLinks};
use crate::storage::statement::{Row, json, sql};
use crate::storage::tx::run;
use crate::storage::tx_error::TxError;
use crate::storage::{Storage, StorageFuture};

impl Storage {
    /// Stores the mark, if the database has none, and compares them.
    pub fn compare_root(&self, mark: RootMark) -> StorageFuture<'_, RootFound> {
        run!(self, Write, tx => {
            sql!("INSERT INTO installation_root (id, mark) VALUES (1, $1) ON CONFLICT (id) DO NOTHING", mark)
                .run(tx)
                .await?;
            let found: RootMark = sql!("SELECT mark FROM installation_root").one(tx).await?.get(0)?;
            Ok(if found == mark { RootFound::Same } else { RootFound::Other })
        })
    }

    pub fn rooted_links(&self) -> StorageFuture<'_, RootedLinks> {
        run!(self, Snapshot, tx => {
            let rows = sql!("SELECT id, invite_id FROM share_links WHERE revoked_at IS NULL ORDER BY id");
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
            sql!("UPDATE installation_root SET mark = $1", mark).run(tx).await?;
            sql!(
                "UPDATE share_links SET invite_hash = {hex:w.value ->> 1} FROM {rows:$1} \
                 WHERE share_links.id = w.value ->> 0",
                json(&hashes.share_links)?
            )
            .run(tx)
            .await?;
            sql!(
                "UPDATE personal_links SET link_hash = {hex:w.value ->> 1} FROM {rows:$1} \
                 WHERE personal_links.link_id = w.value ->> 0",
                json(&hashes.personal_links)?
            )
            .run(tx)
            .await
            .map(drop)
        })
    }
}
