//! How many of the connections one peer may hold, so that it cannot keep everybody else out.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::failures::network;

/// One peer gets at most one in so many. Half is plenty for any client, also for a proxy on another
/// machine that speaks for many, and leaves as much for all others.
const SHARE: usize = 2;

/// The connections of each peer. Clones share the count.
#[derive(Debug, Clone)]
pub(super) struct Shares(Arc<State>);

#[derive(Debug)]
struct State {
    each_max: usize,
    /// Only peers that hold a connection are in here, so there are no more than connections.
    held: Mutex<HashMap<IpAddr, usize>>,
}

/// One connection of a peer, given back when dropped.
#[derive(Debug)]
pub(super) struct Share {
    shares: Shares,
    /// Nothing for a peer that is not counted.
    peer: Option<IpAddr>,
}

impl Shares {
    /// The shares of so many connections.
    pub(super) fn of(connections_max: usize) -> Self {
        let each_max = (connections_max / SHARE).max(1);
        Self(Arc::new(State { each_max, held: Mutex::default() }))
    }

    /// One more connection of `peer`, unless it has its share. What comes from this machine is not
    /// counted: a reverse proxy that speaks for everybody sits there.
    pub(super) fn take(&self, peer: IpAddr) -> Option<Share> {
        if peer.to_canonical().is_loopback() {
            return Some(Share { shares: self.clone(), peer: None });
        }
        let peer = network(peer);
        let mut held = self.held();
        let count = held.entry(peer).or_default();
        if *count >= self.0.each_max {
            return None;
        }
        *count += 1;
        drop(held);
        Some(Share { shares: self.clone(), peer: Some(peer) })
    }

    fn held(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let Some(peer) = self.peer else { return };
        let mut held = self.shares.held();
        if let Some(count) = held.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                held.remove(&peer);
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

    #[test]
    fn one_peer_gets_half_and_leaves_the_rest_to_others() {
        let shares = Shares::of(4);
        let held: Vec<_> = (0..3).map(|_| shares.take(ip("192.0.2.1"))).collect();
        assert_eq!(held.iter().map(Option::is_some).collect::<Vec<_>>(), [true, true, false]);
        assert!(shares.take(ip("192.0.2.2")).is_some());
        // The same peer by its other spelling.
        assert!(shares.take(ip("::ffff:192.0.2.1")).is_none());
        drop(held);
        assert!(shares.take(ip("192.0.2.1")).is_some());
        assert!(shares.held().is_empty(), "peers that are gone take no room");
    }

    #[test]
    fn a_network_of_ipv6_is_one_peer() {
        let shares = Shares::of(2);
        let _one = shares.take(ip("2001:db8::1")).unwrap();
        assert!(shares.take(ip("2001:db8::2")).is_none());
        assert!(shares.take(ip("2001:db8:0:1::2")).is_some());
    }

    #[test]
    fn this_machine_is_not_counted_and_a_single_connection_is_for_anybody() {
        let shares = Shares::of(1);
        let local: Vec<_> = (0..3).map(|_| shares.take(ip("127.0.0.1")).unwrap()).collect();
        assert!(shares.take(ip("::1")).is_some());
        assert!(shares.take(ip("192.0.2.1")).is_some());
        drop(local);
    }
}
