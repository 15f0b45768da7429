//! Faults, one after another, chosen by a seed. Between two faults everything works again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use testkit::Random;
use tokio::time::sleep;

use crate::Failure;
use crate::cluster::{Cluster, REPLICAS};
use crate::proxy::Fault;

/// Duration of a fault and of the pause after it, in milliseconds.
const FAULT_MS: std::ops::Range<u64> = 1_000..8_000;
const PAUSE_MS: std::ops::Range<u64> = 2_000..5_000;

/// Durations of a suspended process, in milliseconds: other replicas count it as dead after 10 s.
const SUSPEND_MS: std::ops::Range<u64> = 1_000..20_000;
/// Time without a primary.
const PROMOTION_MS: std::ops::Range<u64> = 0..3_000;
const DELAY: Duration = Duration::from_millis(200);

/// A fault. A new kind needs an entry in `KINDS` and an arm in `cause`.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Kill,
    Suspend,
    /// Between a replica and the database.
    Database(Fault),
    /// Between the other replicas and one.
    Peers(Fault),
    RestartDatabase,
    Promote,
}

const KINDS: [Kind; 11] = [
    Kind::Kill,
    Kind::Suspend,
    Kind::Database(Fault::Delay(DELAY)),
    Kind::Database(Fault::HalfOpen),
    Kind::Database(Fault::Cut),
    Kind::Database(Fault::LoseNotifications),
    Kind::Peers(Fault::Delay(DELAY)),
    Kind::Peers(Fault::HalfOpen),
    Kind::Peers(Fault::Cut),
    Kind::RestartDatabase,
    Kind::Promote,
];

/// Causes faults until the run is over. Each kind happens once before any happens again. Returns how often each happened.
pub(crate) async fn run(
    cluster: Arc<Cluster>,
    mut random: Random,
    is_over: Arc<AtomicBool>,
) -> Result<BTreeMap<String, u64>, Failure> {
    let mut counts = BTreeMap::new();
    let mut left = Vec::new();
    loop {
        sleep(Duration::from_millis(random.within(PAUSE_MS))).await;
        if is_over.load(Ordering::Relaxed) {
            return Ok(counts);
        }
        if left.is_empty() {
            left = KINDS.to_vec();
        }
        let kind = left.swap_remove(usize::try_from(random.within(0..left.len() as u64))?);
        let replica = usize::try_from(random.within(0..REPLICAS as u64))?;
        let time = Duration::from_millis(random.within(kind.range()));
        println!("{:?}: {kind:?} of replica {replica} for {time:?}", cluster.health.now());
        *counts.entry(format!("fault: {kind:?}")).or_default() += 1;
        cause(&cluster, kind, replica, time).await?;
    }
}

impl Kind {
    fn range(self) -> std::ops::Range<u64> {
        match self {
            Self::Suspend => SUSPEND_MS,
            Self::Promote => PROMOTION_MS,
            Self::Kill | Self::Database(_) | Self::Peers(_) | Self::RestartDatabase => FAULT_MS,
        }
    }
}

async fn cause(
    cluster: &Cluster,
    kind: Kind,
    replica: usize,
    time: Duration,
) -> Result<(), Failure> {
    match kind {
        Kind::Kill => {
            cluster.kill_replica(replica);
            sleep(time).await;
            cluster.run_replica(replica).await?;
        }
        Kind::Suspend => {
            cluster.suspend_replica(replica, true);
            sleep(time).await;
            cluster.suspend_replica(replica, false);
        }
        Kind::Database(fault) => {
            cluster.set_fault(replica, fault);
            sleep(time).await;
            cluster.set_fault(replica, Fault::None);
        }
        Kind::Peers(fault) => {
            cluster.set_peer_fault(replica, fault);
            sleep(time).await;
            cluster.set_peer_fault(replica, Fault::None);
        }
        Kind::RestartDatabase => cluster.restart_database(time).await,
        Kind::Promote => cluster.promote(time).await,
    }
    Ok(())
}
