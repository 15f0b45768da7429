//! Start of a service that shares its state with other replicas.

use std::net::SocketAddr;
use std::sync::Arc;

use haft::Config;
use haft::config::choices::StoreKind;
use haft::config::{LoadOptions, RegistryTexts};
use haft::live::{RegistryStore, Stored};
use haft::mcp_server::SigningKeys;
use haft_postgres::{Database, DatabaseError};

use crate::cli::{EXIT_CONFIG, EXIT_CONNECT, Failure, load};
use crate::serve::Peers;
use crate::shared::{self, SharedReplicas};

/// Opens the database, if one is configured.
pub(super) async fn open(config: &Config) -> anyhow::Result<Option<Database>> {
    let Some(settings) = &config.shared else { return Ok(None) };
    Ok(Some(shared::open(settings).await.map_err(failure)?))
}

/// An error of the database as the exit of a command.
pub(in crate::cli) fn failure(error: DatabaseError) -> Failure {
    let code = if error.is_transient() { EXIT_CONNECT } else { EXIT_CONFIG };
    Failure::new(code, error.to_string(), error.remedy())
}

/// Joins the replicas. Ids of this process carry the number from then on.
pub(super) async fn join(
    database: &Database,
    config: &Config,
    listening: SocketAddr,
) -> anyhow::Result<u16> {
    let Some(address) = shared::advertised(config, listening) else {
        let problem = format!("other replicas cannot reach this one at {listening}");
        let remedy =
            "set `shared.advertise` to the address of this replica, such as http://${POD_IP}:7300";
        return Err(Failure::new(EXIT_CONFIG, problem, remedy).into());
    };
    let joined = database.join(shared::replica(config, address.clone())).await;
    let number = joined.map_err(failure)?;
    tracing::info!("this is replica {number}, which others reach at {address}");
    Ok(number)
}

/// The way to the other replicas, and the keys that all of them sign with.
pub(super) async fn peers(database: &Database) -> anyhow::Result<(Peers, SigningKeys)> {
    let keys = database.signing_keys().await.map_err(failure)?;
    let keys = SigningKeys::new(keys).map_err(|error| {
        let problem = format!("the table `haft.signing_key` cannot be used: {error}");
        Failure::new(EXIT_CONFIG, problem, "restore the rows that `haft shared migrate` created")
    })?;
    let replicas = SharedReplicas::of(database);
    let peers = Peers::new(Arc::new(replicas)).map_err(|error| {
        let problem = format!("there is no HTTP client for the other replicas: {error}");
        Failure::new(EXIT_CONFIG, problem, "see that the certificates of the system can be read")
    })?;
    Ok((peers, keys))
}

/// A registry in the database and the configuration with its entries.
pub(super) struct SharedRegistry {
    pub(super) store: Arc<dyn RegistryStore>,
    pub(super) config: Config,
    pub(super) options: LoadOptions<'static>,
}

/// Loads the configuration again, with the entries of the registry in the database.
pub(super) async fn registry(
    database: &Database,
    config: &Config,
    options: LoadOptions<'static>,
) -> anyhow::Result<Option<SharedRegistry>> {
    let Some(dir) = &config.registry_dir else { return Ok(None) };
    if config.registry_store.value != StoreKind::Shared {
        return Ok(None);
    }
    let number = database.replica_number().unwrap_or_default();
    let store = database.registry(format!("replica {number}"));
    let Stored { documents, .. } = store
        .load()
        .await
        .map_err(|error| Failure::new(EXIT_CONNECT, error.to_string(), error.remedy()))?;
    let texts = RegistryTexts {
        dir: dir.value.clone(),
        tools: documents.tools,
        servers: documents.servers,
    };
    let known = config.warnings.clone();
    let (config, options) = load::load_with_registry(options, texts)?;
    for warning in config.warnings.iter().filter(|warning| !known.contains(warning)) {
        tracing::warn!("{warning}; {}", warning.remedy);
    }
    Ok(Some(SharedRegistry { store: Arc::new(store), config, options }))
}
