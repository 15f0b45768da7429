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

#[derive(Debug, Clone, Copy)]
enum Kind {
    Kill,
    Suspend,
    Delay,
    HalfOpen,
    Cut,
    LoseNotifications,
    RestartDatabase,
}

const KINDS: [Kind; 7] = [
    Kind::Kill,
    Kind::Suspend,
    Kind::Delay,
    Kind::HalfOpen,
    Kind::Cut,
    Kind::LoseNotifications,
    Kind::RestartDatabase,
];

/// Causes faults until the run is over. Returns how often each happened.
pub(crate) async fn run(
    cluster: Arc<Cluster>,
    mut random: Random,
    is_over: Arc<AtomicBool>,
) -> Result<BTreeMap<String, u64>, Failure> {
    let mut counts = BTreeMap::new();
    while !is_over.load(Ordering::Relaxed) {
        sleep(Duration::from_millis(random.within(PAUSE_MS))).await;
        let kind = *random.choose(&KINDS);
        let replica = usize::try_from(random.within(0..REPLICAS as u64))?;
        let time = Duration::from_millis(random.within(FAULT_MS));
        println!("fault: {kind:?} of replica {replica} for {time:?}");
        *counts.entry(format!("fault: {kind:?}")).or_default() += 1;
        cause(&cluster, kind, replica, time).await?;
    }
    Ok(counts)
}

async fn cause(
    cluster: &Cluster,
    kind: Kind,
    replica: usize,
    time: Duration,
) -> Result<(), Failure> {
    let fault = match kind {
        Kind::Kill => {
            cluster.kill_replica(replica);
            sleep(time).await;
            return cluster.run_replica(replica).await;
        }
        Kind::Suspend => {
            cluster.suspend_replica(replica, true);
            sleep(time).await;
            cluster.suspend_replica(replica, false);
            return Ok(());
        }
        Kind::RestartDatabase => {
            cluster.restart_database(time).await;
            return Ok(());
        }
        Kind::Delay => Fault::Delay(Duration::from_millis(200)),
        Kind::HalfOpen => Fault::HalfOpen,
        Kind::Cut => Fault::Cut,
        Kind::LoseNotifications => Fault::LoseNotifications,
    };
    cluster.set_fault(replica, fault);
    sleep(time).await;
    cluster.set_fault(replica, Fault::None);
    Ok(())
}
