//! The native key `shared`.

use super::choices::Migrate;
use super::node::Text;
use super::quantity::Span;
use super::read::record;

record! {
    /// `shared`.
    pub struct RawShared("`shared`", Reject) {
        /// The address of the database, such as `postgres://haft@db.example.com/haft`; write `${DATABASE_URL}`. It may name
        /// several hosts. A connection to another machine uses TLS and verifies the certificate; `sslmode=disable` turns that off.
        url("url"): Text,
        /// A PEM file with the certificates that sign the database's; by default those of this machine.
        ca("ca"): Text,
        /// The address at which other replicas reach this one, such as `http://${POD_IP}:7300`; by default the address
        /// that it listens on.
        advertise("advertise"): Text,
        /// The time at which tables are created and changed: `auto` (the default: at the start) or `manual` (by
        /// `haft shared migrate`).
        migrate("migrate"): Migrate,
        /// The longest time for which keys are accepted while the database does not respond; 15m by default. Then requests
        /// answer 503.
        stale_max("stale_max"): Span,
    }
}
