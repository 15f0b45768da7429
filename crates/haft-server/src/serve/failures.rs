//! Counts recent wrong keys per address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Wrong keys that an address may present within [`WINDOW`] before it has to wait.
const FAILURES_MAX: u32 = 10;
/// The time they are counted over.
const WINDOW: Duration = Duration::from_mins(1);
/// Largest number of remembered addresses. When it is full, the address with the oldest failure is dropped.
const ADDRESSES_MAX: usize = 4096;

/// Addresses and their failures, bounded.
#[derive(Debug, Default)]
pub(super) struct Failures(Mutex<HashMap<IpAddr, Count>>);

#[derive(Debug)]
struct Count {
    since: Instant,
    failures: u32,
}

impl Failures {
    /// Counts a failure. `Err`: there were too many, and when to come again.
    pub(super) fn count(&self, peer: IpAddr) -> Result<(), Duration> {
        let now = Instant::now();
        let mut counts = self.0.lock();
        let peer = network(peer);
        if !counts.contains_key(&peer) && counts.len() >= ADDRESSES_MAX {
            make_room(&mut counts, now);
        }
        let count = counts.entry(peer).or_insert(Count { since: now, failures: 0 });
        if now.duration_since(count.since) >= WINDOW {
            *count = Count { since: now, failures: 0 };
        }
        count.failures = count.failures.saturating_add(1);
        if count.failures > FAILURES_MAX {
            return Err(WINDOW.saturating_sub(now.duration_since(count.since)));
        }
        Ok(())
    }
}

impl Failures {
    /// Takes one counted failure back: the key turned out to be right.
    pub(super) fn forgive(&self, peer: IpAddr) {
        let mut counts = self.0.lock();
        if let Some(count) = counts.get_mut(&network(peer)) {
            count.failures = count.failures.saturating_sub(1);
        }
    }
}

fn make_room(counts: &mut HashMap<IpAddr, Count>, now: Instant) {
    counts.retain(|_, count| now.duration_since(count.since) < WINDOW);
    if counts.len() >= ADDRESSES_MAX {
        let oldest = counts.iter().min_by_key(|(_, count)| count.since).map(|(peer, _)| *peer);
        oldest.map(|oldest| counts.remove(&oldest));
    }
}

/// One household of IPv6 has 2^64 addresses to fail from, so its network counts as one.
pub(super) fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => {
            let prefix = address.to_bits() & !u128::from(u64::MAX);
            Ipv6Addr::from_bits(prefix).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}
