//! The execution log of all replicas: its rows in the database, and the task that ships the entries of this one.

use std::sync::Arc;
use std::time::Duration;

use haft::Runtime;
use haft::config::choices::LogShip;
use haft::record::{Filter, LogDir, LogSink, ShipStatus, Shipper};
use haft_postgres::{Database, DatabaseError, FoundCall, PostgresLog};
use tokio_util::sync::CancellationToken;

/// Time for which a query waits until the entries of this replica are shipped, so that a caller finds its own calls.
const FLUSH_MAX: Duration = Duration::from_secs(1);

/// The log of all replicas.
pub struct SharedLog {
    runtime: Runtime,
    rows: PostgresLog,
    shipper: Arc<Shipper>,
}

impl SharedLog {
    pub(crate) fn new(database: Database, runtime: &Runtime) -> Self {
        let rows = PostgresLog::new(database);
        let sink: Arc<dyn LogSink> = Arc::new(rows.clone());
        let shipper = Arc::new(Shipper::new(sink, runtime.shipped_files().clone()));
        Self { runtime: runtime.clone(), rows, shipper }
    }

    /// Ships the entries of this replica until `stop`, and then what is left.
    pub(crate) async fn ship(&self, stop: CancellationToken) {
        let runtime = self.runtime.clone();
        let dir: LogDir = Arc::new(move || {
            let config = runtime.config();
            ships(config.log.ship.value).then(|| config.log.dir.value.clone())
        });
        Arc::clone(&self.shipper).run(dir, stop).await;
    }

    /// The rows, if the log is shipped.
    pub(crate) fn rows(&self) -> Option<&PostgresLog> {
        ships(self.runtime.config().log.ship.value).then_some(&self.rows)
    }

    /// The state of shipping, if the log is shipped.
    pub(crate) fn status(&self) -> Option<ShipStatus> {
        self.rows().map(|_| self.shipper.status())
    }

    /// Finds the newest calls of all replicas, newest first. `None` if the log is not shipped.
    pub(crate) async fn find(
        &self,
        filter: &Filter,
    ) -> Option<Result<Vec<FoundCall>, DatabaseError>> {
        let rows = self.rows()?;
        // Without it, the newest calls of this replica are missing for a moment.
        self.shipper.flush(FLUSH_MAX).await;
        Some(rows.find(filter).await)
    }
}

fn ships(ship: LogShip) -> bool {
    match ship {
        LogShip::Shared => true,
        LogShip::None => false,
    }
}
