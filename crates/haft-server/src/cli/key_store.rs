//! The storage of the keys for commands: the file, or the database that replicas share.

use haft::Config;
use haft_postgres::Database;

use super::serve::shared::failure;
use crate::keys::{KeyFile, KeyStore, SharedKeys};
use crate::shared;

/// Opens the storage of the keys of a configuration.
pub(super) async fn open(config: &Config) -> anyhow::Result<Box<dyn KeyStore>> {
    match &config.shared {
        // The first key may be created before the service starts, so the tables are created as needed.
        Some(settings) => {
            let database = Database::open(shared::settings(settings)).await.map_err(failure)?;
            Ok(Box::new(SharedKeys::new(database)))
        }
        None => Ok(Box::new(KeyFile::new(config.api.keys_file.value.clone()))),
    }
}
