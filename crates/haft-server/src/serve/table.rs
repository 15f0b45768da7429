//! The table of connections: its limits, and which connection makes room for a new one.
//!
//! A connection is a newcomer until it presents a valid key. Newcomers share a part of the table, and the rest is
//! reserved for connections with a key. When there is no room, the oldest idle newcomer is closed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::activity::ConnectionActivity;
use super::failures::network;

/// One connection in `RESERVE` is reserved for those that have presented a key.
const RESERVE: usize = 4;

/// The connections of a listener. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct ConnectionTable(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    all_max: usize,
    newcomers_max: usize,
    state: Mutex<State>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct State {
    last_id: u64,
    /// By id, so the oldest comes first.
    newcomers: BTreeMap<u64, Arc<Entry>>,
    proven: HashSet<u64>,
    networks: HashMap<IpAddr, NetworkCount>,
}

/// The connections of one network.
#[derive(Debug, Default)]
struct NetworkCount {
    all: usize,
    newcomers: usize,
}

#[derive(Debug)]
struct Entry {
    id: u64,
    network: IpAddr,
    activity: ConnectionActivity,
    standing: AtomicU8,
    evicted: CancellationToken,
}

/// No request of the connection was let in.
const UNKNOWN: u8 = 0;
/// A request was let in without a key, as long as there are no keys.
const OPEN: u8 = 1;
/// A valid key was presented.
const PROVEN: u8 = 2;

/// A connection's place in the table, given back when dropped.
#[derive(Debug)]
pub(super) struct ConnectionSlot(Arc<Handle>);

/// Reports to the table that a connection has presented a key.
#[derive(Debug, Clone)]
pub(super) struct ConnectionStanding(Arc<Handle>);

#[derive(Debug)]
struct Handle {
    table: ConnectionTable,
    entry: Arc<Entry>,
}

impl ConnectionTable {
    pub(super) fn new(all_max: usize) -> Self {
        Self(Arc::new(Shared {
            all_max,
            newcomers_max: all_max - all_max / RESERVE,
            state: Mutex::default(),
            freed: Notify::new(),
        }))
    }

    /// Adds a connection of `peer`. Nothing if there is no room and no connection that could make room.
    pub(super) fn admit(&self, peer: IpAddr) -> Option<ConnectionSlot> {
        let network = network(peer);
        let mut state = self.state();
        while let Some(victims) = self.exceeded(&state, network) {
            let victim = state.victim(victims)?;
            state.evict(victim);
        }
        state.last_id += 1;
        let id = state.last_id;
        let entry = Arc::new(Entry {
            id,
            network,
            activity: ConnectionActivity::new(),
            standing: AtomicU8::new(UNKNOWN),
            evicted: CancellationToken::new(),
        });
        state.newcomers.insert(id, Arc::clone(&entry));
        let count = state.networks.entry(network).or_default();
        count.all += 1;
        count.newcomers += 1;
        drop(state);
        Some(ConnectionSlot(Arc::new(Handle { table: self.clone(), entry })))
    }

    /// Closes one connection that may be closed. The future ends when a connection is gone and its descriptor is
    /// free. None: there is no connection to close.
    pub(super) fn evict_one(&self) -> Option<impl Future<Output = ()>> {
        // Made before the eviction, so that it cannot miss the end of the connection.
        let freed = self.0.freed.notified();
        let mut state = self.state();
        let victim = state.victim(Victims::All)?;
        state.evict(victim);
        drop(state);
        Some(freed)
    }

    /// Which connections have to make room for one more of `network`. None: there is room.
    fn exceeded(&self, state: &State, network: IpAddr) -> Option<Victims> {
        let Shared { all_max, newcomers_max, .. } = *self.0;
        if let Some(own) = state.networks.get(&network)
            && (own.all >= share(all_max, network)
                || own.newcomers >= share(newcomers_max, network))
        {
            return Some(Victims::Of(network));
        }
        let newcomers = state.newcomers.len();
        let is_full = newcomers >= newcomers_max || newcomers + state.proven.len() >= all_max;
        is_full.then_some(Victims::All)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }
}

/// The share of `max` connections of one network: half of them, which leaves as many for all others. This machine may
/// hold more, because reverse proxies run there.
fn share(max: usize, network: IpAddr) -> usize {
    let share = if network.is_loopback() { max - max / 8 } else { max / 2 };
    share.max(1)
}

#[derive(Clone, Copy)]
enum Victims {
    All,
    Of(IpAddr),
}

#[derive(Clone, Copy)]
enum Pool {
    Newcomers,
    Proven,
}

impl State {
    /// Returns the newcomer to close: the oldest idle one, or else the oldest one without an admitted request. If
    /// any network may lose one, the networks with the most newcomers come first.
    fn victim(&self, victims: Victims) -> Option<u64> {
        match victims {
            Victims::Of(network) => self.oldest(|it| it.network == network),
            Victims::All => {
                let held = |network: &IpAddr| {
                    self.networks.get(network).map_or(0, |count| count.newcomers)
                };
                let most = self.networks.keys().map(held).max().unwrap_or(0);
                let greediest = self.oldest(|it| held(&it.network) == most);
                greediest.or_else(|| self.oldest(|_| true))
            }
        }
    }

    fn oldest(&self, is_candidate: impl Fn(&Entry) -> bool) -> Option<u64> {
        let candidates = || self.newcomers.values().filter(|it| is_candidate(it));
        let is_unknown = |it: &&Arc<Entry>| it.standing.load(Ordering::Relaxed) == UNKNOWN;
        let idle = candidates().find(|it| it.activity.is_idle());
        idle.or_else(|| candidates().find(is_unknown)).map(|it| it.id)
    }

    fn evict(&mut self, victim: u64) {
        if let Some(entry) = self.newcomers.remove(&victim) {
            self.leave(entry.network, Pool::Newcomers);
            tracing::debug!(network = %entry.network, "closed a connection without a key to make room");
            entry.evicted.cancel();
        }
    }

    fn leave(&mut self, network: IpAddr, pool: Pool) {
        let Some(count) = self.networks.get_mut(&network) else { return };
        count.all -= 1;
        match pool {
            Pool::Newcomers => count.newcomers -= 1,
            Pool::Proven => {}
        }
        if count.all == 0 {
            self.networks.remove(&network);
        }
    }
}

impl ConnectionSlot {
    /// The connection's activity.
    pub(super) fn activity(&self) -> &ConnectionActivity {
        &self.0.entry.activity
    }

    /// Waits until the connection has to make room for another one.
    pub(super) async fn evicted(&self) {
        self.0.entry.evicted.cancelled().await;
    }

    pub(super) fn standing(&self) -> ConnectionStanding {
        ConnectionStanding(Arc::clone(&self.0))
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let Handle { table, entry } = &*self.0;
        let mut state = table.state();
        if state.newcomers.remove(&entry.id).is_some() {
            state.leave(entry.network, Pool::Newcomers);
        } else if state.proven.remove(&entry.id) {
            state.leave(entry.network, Pool::Proven);
        }
        drop(state);
        // After an eviction the table has room already, and the descriptor is free only now.
        table.0.freed.notify_waiters();
    }
}

impl ConnectionStanding {
    /// A request was let in without a key: the connection is not closed while it is being answered.
    pub(super) fn let_in(&self) {
        let standing = &self.0.entry.standing;
        if standing.load(Ordering::Relaxed) == UNKNOWN {
            let change = (Ordering::Relaxed, Ordering::Relaxed);
            let _ = standing.compare_exchange(UNKNOWN, OPEN, change.0, change.1);
        }
    }

    /// A valid key was presented: the connection is no newcomer any more.
    pub(super) fn prove(&self) {
        let Handle { table, entry } = &*self.0;
        if entry.standing.load(Ordering::Relaxed) == PROVEN
            || entry.standing.swap(PROVEN, Ordering::Relaxed) == PROVEN
        {
            return;
        }
        let mut state = table.state();
        // One that was evicted at the same time stays evicted.
        if state.newcomers.remove(&entry.id).is_some() {
            state.proven.insert(entry.id);
            if let Some(count) = state.networks.get_mut(&entry.network) {
                count.newcomers -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn is_evicted(slot: &ConnectionSlot) -> bool {
        slot.0.entry.evicted.is_cancelled()
    }

    #[test]
    fn a_network_makes_room_for_itself() {
        // Twelve for newcomers, of which one network holds six.
        let table = ConnectionTable::new(16);
        let held: Vec<_> = (0..6).map(|_| table.admit(ip("192.0.2.1")).unwrap()).collect();
        let other = table.admit(ip("192.0.2.2")).unwrap();
        let next = table.admit(ip("::ffff:192.0.2.1")).unwrap();
        let evicted: Vec<bool> = held.iter().map(is_evicted).collect();
        assert_eq!(evicted, [true, false, false, false, false, false]);
        assert!(!is_evicted(&other) && !is_evicted(&next));
        drop((held, other, next));
        assert!(table.state().networks.is_empty() && table.state().newcomers.is_empty());
    }

    #[test]
    fn a_network_of_ipv6_is_one_peer() {
        let table = ConnectionTable::new(4);
        let first = table.admit(ip("2001:db8::1")).unwrap();
        let other = table.admit(ip("2001:db8:0:1::2")).unwrap();
        let _second = table.admit(ip("2001:db8::2")).unwrap();
        assert!(is_evicted(&first) && !is_evicted(&other));
    }

    #[test]
    fn this_machine_is_counted() {
        let table = ConnectionTable::new(16);
        // All but one of the twelve.
        let held: Vec<_> = (0..11).map(|_| table.admit(ip("127.0.0.1")).unwrap()).collect();
        assert!(!held.iter().any(is_evicted));
        let _next = table.admit(ip("127.0.0.1")).unwrap();
        assert!(is_evicted(&held[0]) && !is_evicted(&held[1]));
    }

    #[test]
    fn the_reserve_is_for_those_with_a_key() {
        let table = ConnectionTable::new(8);
        let proven: Vec<_> = (1..=6).map(|host| ip(&format!("192.0.2.{host}"))).collect();
        let proven: Vec<_> = proven.into_iter().map(|peer| table.admit(peer).unwrap()).collect();
        for slot in &proven {
            slot.standing().prove();
        }
        let first = table.admit(ip("198.51.100.1")).unwrap();
        let second = table.admit(ip("198.51.100.2")).unwrap();
        // Eight are there; a newcomer takes the place of the oldest newcomer, and of no other.
        let third = table.admit(ip("198.51.100.3")).unwrap();
        assert!(is_evicted(&first) && !is_evicted(&second) && !is_evicted(&third));
        assert!(!proven.iter().any(is_evicted));
        for slot in [&second, &third] {
            slot.standing().prove();
        }
        assert!(table.admit(ip("198.51.100.4")).is_none());
        drop(second);
        assert!(table.admit(ip("198.51.100.4")).is_some());
    }

    #[test]
    fn busy_connections_stay_if_their_request_was_let_in() {
        let table = ConnectionTable::new(1);
        let open = table.admit(ip("127.0.0.1")).unwrap();
        open.standing().let_in();
        let request = open.activity().begin_request();
        assert!(table.admit(ip("127.0.0.1")).is_none());
        drop(request);
        let unknown = table.admit(ip("127.0.0.1")).unwrap();
        assert!(is_evicted(&open));
        let _request = unknown.activity().begin_request();
        assert!(table.admit(ip("127.0.0.1")).is_some());
        assert!(is_evicted(&unknown), "a request that was not let in keeps no connection");
    }
}
