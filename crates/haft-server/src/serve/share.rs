//! How many of the connections one peer may hold.

use std::net::IpAddr;

use super::failures::network;
use crate::shares::{Share, Shares};

/// The connections of each peer.
#[derive(Debug)]
pub(super) struct Peers(Shares<IpAddr>);

impl Peers {
    /// The peers of so many connections.
    pub(super) fn of(connections_max: usize) -> Self {
        Self(Shares::of(connections_max))
    }

    /// One more connection of `peer`, unless it has its share. What comes from this machine is not
    /// counted: a reverse proxy that speaks for everybody sits there.
    pub(super) fn take(&self, peer: IpAddr) -> Option<PeerShare> {
        if peer.to_canonical().is_loopback() {
            return Some(PeerShare(None));
        }
        self.0.take(network(peer)).ok().map(|share| PeerShare(Some(share)))
    }
}

/// One connection of a peer, given back when dropped.
#[derive(Debug)]
pub(super) struct PeerShare(
    #[expect(dead_code, reason = "held until dropped")] Option<Share<IpAddr>>,
);

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_peer_is_one_by_any_spelling() {
        let peers = Peers::of(4);
        let held = ["192.0.2.1", "::ffff:192.0.2.1"].map(|peer| peers.take(ip(peer)).unwrap());
        assert!(peers.take(ip("192.0.2.1")).is_none());
        assert!(peers.take(ip("192.0.2.2")).is_some());
        drop(held);
        assert!(peers.take(ip("192.0.2.1")).is_some());
    }

    #[test]
    fn a_network_of_ipv6_is_one_peer() {
        let peers = Peers::of(2);
        let _one = peers.take(ip("2001:db8::1")).unwrap();
        assert!(peers.take(ip("2001:db8::2")).is_none());
        assert!(peers.take(ip("2001:db8:0:1::2")).is_some());
    }

    #[test]
    fn this_machine_is_not_counted() {
        let peers = Peers::of(1);
        let local: Vec<_> = (0..3).map(|_| peers.take(ip("127.0.0.1")).unwrap()).collect();
        assert!(peers.take(ip("::1")).is_some());
        assert!(peers.take(ip("192.0.2.1")).is_some());
        drop(local);
    }
}
