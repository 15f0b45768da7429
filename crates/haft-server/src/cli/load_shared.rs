//! The shared registry for commands that use tools without a running service.

use haft::Config;
use haft::config::choices::StoreKind;
use haft::config::shared::SharedConfig;
use haft::config::{LoadOptions, RegistryTexts};
use haft::live::{Documents, RegistryStore as _};
use haft_postgres::{Database, Settings};

use super::serve::shared::failure;
use super::{EXIT_CONNECT, Failure, block_on, load};
use crate::shared;

/// Adds the entries of the registry in the database, as they are now.
pub(super) fn with_registry(
    config: Config,
    options: LoadOptions<'static>,
) -> anyhow::Result<(Config, LoadOptions<'static>)> {
    let (Some(shared), Some(dir)) = (&config.shared, &config.registry_dir) else {
        return Ok((config, options));
    };
    if config.registry_store.value != StoreKind::Shared {
        return Ok((config, options));
    }
    // A thread of its own: a command may be inside a runtime already.
    let read = std::thread::scope(|scope| scope.spawn(|| block_on(read(shared))).join());
    let Documents { tools, servers } =
        read.unwrap_or_else(|_| Err(anyhow::anyhow!("reading the registry panicked")))?;
    let texts = RegistryTexts { dir: dir.value.clone(), tools, servers };
    load::load_with_registry(options, texts)
}

async fn read(settings: &SharedConfig) -> anyhow::Result<Documents> {
    let settings = Settings { migrates: false, ..shared::settings(settings) };
    let database = Database::open(settings).await.map_err(failure)?;
    let stored = database
        .registry("haft")
        .load()
        .await
        .map_err(|error| Failure::new(EXIT_CONNECT, error.to_string(), error.remedy()))?;
    Ok(stored.documents)
}
