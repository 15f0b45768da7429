//! Start of a service that shares its state with other replicas.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use haft::config::choices::StoreKind;
use haft::config::{LoadOptions, RegistryTexts};
use haft::live::{Documents, Live, RegistryStore, Stored};
use haft::mcp_server::SigningKeys;
use haft::{Config, HumanInbox, Runtime};
use haft_postgres::{Database, DatabaseError};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::signals::Signals;
use crate::api::Service;
use crate::cli::toolbox::Interrupted;
use crate::cli::{EXIT_CONFIG, EXIT_CONNECT, Failure, load};
use crate::gateway::{Hub, Mount};
use crate::keys::{self, KeyError, KeyFile, Keyring, SharedKeys};
use crate::serve::Peers;
use crate::shared::{self, SharedReplicas};
use crate::shared_approvals::SharedApprovals;

/// Time to ship the last entries of the log.
const SHIPPED_MAX: Duration = Duration::from_secs(6);

/// Opens the database, if one is configured. A signal ends the wait for it.
pub(super) async fn open(
    config: &Config,
    signals: &mut Signals,
) -> anyhow::Result<Option<Database>> {
    let Some(settings) = &config.shared else { return Ok(None) };
    tokio::select! {
        opened = shared::open(settings) => Ok(Some(opened.map_err(|error| failure(&error))?)),
        () = signals.end() => Err(Interrupted.into()),
    }
}

/// An error of the database as the exit of a command.
pub(in crate::cli) fn failure(error: &DatabaseError) -> Failure {
    let code = if error.is_transient() { EXIT_CONNECT } else { EXIT_CONFIG };
    Failure::new(code, error.to_string(), error.remedy())
}

/// The keys of the service, from the database if there is one.
pub(super) async fn keyring(
    config: &Config,
    database: Option<&Database>,
) -> anyhow::Result<Keyring> {
    let opened = match (database, &config.shared) {
        (Some(database), Some(settings)) => {
            let stale_max = settings.stale_max.value;
            Keyring::open_shared(SharedKeys::new(database.clone()), stale_max).await
        }
        (Some(_) | None, _) => Keyring::open(KeyFile::new(config.api.keys_file.value.clone())),
    };
    let failed = |error: KeyError| Failure::new(EXIT_CONFIG, keys::chain(&error), error.remedy());
    Ok(opened.map_err(failed)?)
}

/// The configuration of a service, with the registry if it is in the database.
pub(super) struct SharedStart {
    pub(super) config: Config,
    pub(super) options: LoadOptions<'static>,
    pub(super) store: Option<Arc<dyn RegistryStore>>,
}

/// Joins the replicas of a shared service, and loads the configuration again with its registry.
pub(super) async fn join(
    database: Option<&Database>,
    config: Config,
    options: LoadOptions<'static>,
    listening: SocketAddr,
) -> anyhow::Result<SharedStart> {
    let Some(database) = database else { return Ok(SharedStart { config, options, store: None }) };
    let number = take_number(database, &config, listening).await?;
    let dir = config.registry_dir.as_ref().filter(|_| is_shared(&config));
    let Some(dir) = dir.map(|dir| dir.value.clone()) else {
        return Ok(SharedStart { config, options, store: None });
    };
    let store = database.registry(format!("replica {number}"));
    let stored = store.load().await;
    let Stored { documents: Documents { tools, servers }, .. } =
        stored.map_err(|error| Failure::new(EXIT_CONNECT, error.to_string(), error.remedy()))?;
    let known = config.warnings;
    let texts = RegistryTexts { dir, tools, servers };
    let (config, options) = load::load_with_registry(options, texts)?;
    for warning in config.warnings.iter().filter(|warning| !known.contains(warning)) {
        tracing::warn!("{warning}; {}", warning.remedy);
    }
    Ok(SharedStart { config, options, store: Some(Arc::new(store)) })
}

fn is_shared(config: &Config) -> bool {
    config.registry_store.value == StoreKind::Shared
}

/// Takes a number in the table of replicas.
async fn take_number(
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
    let number = joined.map_err(|error| failure(&error))?;
    tracing::info!("this is replica {number}, which others reach at {address}");
    Ok(number)
}

/// Follows the files, and the registry in its store.
pub(super) fn follow(
    runtime: Runtime,
    options: LoadOptions<'static>,
    store: Option<Arc<dyn RegistryStore>>,
) -> Live {
    match store {
        Some(store) => Live::with_store(runtime, options, Some(store)),
        None => Live::follow(runtime, options),
    }
}

/// The endpoint for MCP clients, with the way to the other replicas if there are some.
pub(super) async fn gateway(
    database: Option<&Database>,
    runtime: &Runtime,
    hub: &Hub,
) -> anyhow::Result<(Mount, Option<Peers>)> {
    let (runtime, hub) = (runtime.clone(), hub.clone());
    let Some(database) = database else { return Ok((Mount::new(runtime, hub), None)) };
    let (peers, signing_keys) = peers(database).await?;
    Ok((Mount::of_replica(runtime, hub, peers.clone(), signing_keys), Some(peers)))
}

/// The way to the other replicas, and the keys that all of them sign with.
async fn peers(database: &Database) -> anyhow::Result<(Peers, SigningKeys)> {
    let keys = database.signing_keys().await.map_err(|error| failure(&error))?;
    let keys = SigningKeys::new(keys).map_err(|error| {
        let problem = format!("the table `haft.signing_key` cannot be used: {error}");
        Failure::new(EXIT_CONFIG, problem, "restore the rows that `haft shared migrate` created")
    })?;
    let replicas = SharedReplicas::of(database);
    let peers = Peers::new(Arc::new(replicas)).map_err(|error| {
        let problem = format!("the HTTP client for the other replicas cannot be built: {error}");
        Failure::new(EXIT_CONFIG, problem, "see that the certificates of the system can be read")
    })?;
    Ok((peers, keys))
}

/// Shares the standing approvals of the inbox, if there is a database.
pub(super) async fn approvals(
    database: Option<&Database>,
    inbox: &HumanInbox,
) -> anyhow::Result<Option<SharedApprovals>> {
    let Some(database) = database else { return Ok(None) };
    let opened = SharedApprovals::open(database.clone(), inbox.clone()).await;
    Ok(Some(opened.map_err(|error| failure(&error))?))
}

/// Follows the standing approvals until `stop`.
pub(super) async fn follow_approvals(approvals: Option<SharedApprovals>, stop: CancellationToken) {
    if let Some(approvals) = approvals {
        approvals.follow(stop).await;
    }
}

/// Reports the state of a replica until `stop`.
pub(super) async fn report(database: Option<Database>, live: Live, stop: CancellationToken) {
    if let Some(database) = database {
        shared::report(database, live, stop).await;
    }
}

/// The task that ships the log to the database, if it is shipped.
pub(super) struct Shipping {
    task: TaskTracker,
    stop: CancellationToken,
}

impl Shipping {
    pub(super) fn start(service: &Arc<Service>) -> Self {
        let (task, stop) = (TaskTracker::new(), CancellationToken::new());
        if service.log.is_some() {
            let (service, stop) = (Arc::clone(service), stop.clone());
            task.spawn(async move {
                if let Some(log) = &service.log {
                    log.ship(stop).await;
                }
            });
        }
        task.close();
        Self { task, stop }
    }

    /// Ships what is left. To be called when the last call has written its entry.
    pub(super) async fn end(self) {
        self.stop.cancel();
        if timeout(SHIPPED_MAX, self.task.wait()).await.is_err() {
            tracing::warn!("the last entries of the log are shipped after the next start");
        }
    }
}

/// Leaves the table of replicas.
pub(super) async fn leave(database: Option<&Database>) {
    if let Some(database) = database {
        database.close().await;
    }
}
