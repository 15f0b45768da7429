//! The shared database of a service: its settings, and what a replica reports about itself.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use haft::config::choices::{Migrate, StoreKind};
use haft::config::shared::SharedConfig;
use haft::live::Live;
use haft::{BoxFuture, Config, ReplicaNumber};
use haft_postgres::{
    Database, DatabaseError, OwnReplica, Replica, ReplicaSettings, ReplicaTable, Settings,
};
use haft_text::Secret;
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::serve::{ReplicaInfo, Replicas};

/// Time for which a start waits for the database.
const WAIT_MAX: Duration = Duration::from_secs(30);
const WAIT_STEP: Duration = Duration::from_millis(500);
/// Interval at which the reported state is compared with that of the service.
const REPORT_INTERVAL: Duration = Duration::from_millis(500);
/// The longest problem in the table of replicas.
const PROBLEM_BYTES_MAX: usize = 300;
/// Bytes of the digest of a configuration that are shown.
const DIGEST_BYTES: usize = 8;

/// The table of live replicas in the database.
pub(crate) struct SharedReplicas {
    database: Database,
    own: ReplicaNumber,
    table: watch::Receiver<Arc<ReplicaTable>>,
}

impl SharedReplicas {
    /// The replicas that this process has joined.
    pub(crate) fn of(database: &Database) -> Self {
        let own = ReplicaNumber::new(database.replica_number().unwrap_or_default());
        Self { database: database.clone(), own, table: database.replicas() }
    }

    fn table(&self) -> Arc<ReplicaTable> {
        Arc::clone(&self.table.borrow())
    }
}

impl Replicas for SharedReplicas {
    fn own(&self) -> ReplicaNumber {
        self.own
    }

    fn address_of(&self, number: ReplicaNumber) -> Option<Arc<str>> {
        let table = self.table();
        let replica = table.get(number.get()).filter(|_| number != self.own)?;
        Some(replica.address.as_str().into())
    }

    fn live(&self) -> Vec<ReplicaNumber> {
        let numbers = |replica: &Replica| ReplicaNumber::new(replica.number);
        let all = self.table().replicas.iter().map(numbers).collect::<Vec<_>>();
        all.into_iter().filter(|number| *number != self.own).collect()
    }

    fn list(&self) -> Vec<ReplicaInfo> {
        self.table().replicas.iter().cloned().map(info).collect()
    }

    fn refresh(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if let Err(error) = self.database.refresh_replicas().await {
                tracing::debug!(%error, "the table of replicas was not read");
            }
        })
    }
}

fn info(replica: Replica) -> ReplicaInfo {
    let Replica { number, id: _, address, version, revision, config, problem, age } = replica;
    let number = ReplicaNumber::new(number);
    ReplicaInfo { number, address, version, revision, config, problem, age }
}

/// The settings of the database.
pub(crate) fn settings(shared: &SharedConfig) -> Settings {
    Settings {
        url: Secret::new(shared.url.value.expose()),
        ca: shared.ca.as_ref().map(|ca| ca.value.clone()),
        migrates: shared.migrate.value == Migrate::Auto,
    }
}

/// Opens the database of a service. A database that is not there yet is waited for.
pub(crate) async fn open(shared: &SharedConfig) -> Result<Database, DatabaseError> {
    let (began, mut has_warned) = (Instant::now(), false);
    loop {
        match Database::open(settings(shared)).await {
            Err(error) if error.is_transient() && began.elapsed() < WAIT_MAX => {
                if !has_warned {
                    tracing::warn!("{error}; waiting for it for {} s", WAIT_MAX.as_secs());
                    has_warned = true;
                }
                sleep(WAIT_STEP).await;
            }
            opened => return opened,
        }
    }
}

/// The address at which other replicas reach this one; `None` if it listens on every address and none is configured.
pub(crate) fn advertised(config: &Config, listening: SocketAddr) -> Option<String> {
    let written = config.shared.as_ref().and_then(|shared| shared.advertise.as_ref());
    if let Some(advertise) = written {
        return Some(advertise.value.expose().as_str().trim_end_matches('/').to_owned());
    }
    let scheme = if config.api.tls.is_some() { "https" } else { "http" };
    (!listening.ip().is_unspecified()).then(|| format!("{scheme}://{listening}"))
}

/// This process as a replica.
pub(crate) fn replica(config: &Config, address: String) -> ReplicaSettings {
    ReplicaSettings {
        address,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        config: config_digest(config),
        retain_days: config.log.retain_days.value,
    }
}

/// A digest of the files of a configuration, without those of the registry. Values of variables do not count: they
/// differ between replicas.
pub(crate) fn config_digest(config: &Config) -> String {
    let mut hash = Sha256::new();
    for file in config.files.iter().filter(|file| !is_registrys(config, &file.name)) {
        hash.update(file.digest);
    }
    haft_text::hex(&hash.finalize()[..DIGEST_BYTES])
}

fn is_registrys(config: &Config, file: &str) -> bool {
    config.registry_store.value == StoreKind::Shared && config.is_registry_file(file)
}

/// Reports the state of the service with its heartbeats, and warns about replicas with another configuration.
pub(crate) async fn report(database: Database, live: Live, stop: CancellationToken) {
    let replicas = database.replicas();
    let mut warned: Vec<u16> = Vec::new();
    loop {
        let (status, config) = (live.status(), live.runtime().config());
        let digest = config_digest(&config);
        let problem = status.problem.map(|problem| first_line(&problem.text));
        let revision = status.revision.map(|revision| revision.to_string());
        database.report(OwnReplica { revision, config: digest.clone(), problem });
        let table = Arc::clone(&replicas.borrow());
        let differing: Vec<u16> = table
            .replicas
            .iter()
            .filter(|replica| replica.number != table.own && replica.config != digest)
            .map(|replica| replica.number)
            .collect();
        for number in differing.iter().filter(|number| !warned.contains(number)) {
            tracing::warn!(
                "replica {number} has another configuration: the digests of the files differ; `haft shared status` \
                 shows them"
            );
        }
        warned = differing;
        tokio::select! {
            () = stop.cancelled() => return,
            () = sleep(REPORT_INTERVAL) => {}
        }
    }
}

fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line[..line.floor_char_boundary(PROBLEM_BYTES_MAX)].to_owned()
}
