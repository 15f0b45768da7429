//! `haft shared import`: the keys.

use haft::Config;
use haft_postgres::Database;

use super::keys::failed;
use crate::keys::{KeyError, KeyFile, SharedKeys};
use crate::stderr::say;

/// Copies the keys of the file into the database. Keys that it has already stay as they are.
pub(super) async fn import(config: &Config, database: Database) -> anyhow::Result<()> {
    let file = KeyFile::new(config.api.keys_file.value.clone());
    let keys = SharedKeys::new(database);
    let mut imported = 0;
    for entry in file.list().map_err(failed)? {
        match keys.import(&entry).await {
            Ok(is_new) => imported += usize::from(is_new),
            Err(KeyError::Taken { name }) => tracing::warn!(
                "the database has another key `{name}`, which stays; rotate or revoke it to use the one of the file"
            ),
            Err(error) => return Err(failed(error)),
        }
    }
    if imported > 0 {
        let path = file.path().display();
        say!(
            "imported {} of `{path}`; replicas do not read the file",
            super::count(imported, "key")
        );
    }
    Ok(())
}
