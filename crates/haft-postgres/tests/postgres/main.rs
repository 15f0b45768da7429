//! The shared state on a real PostgreSQL.
#![allow(clippy::unwrap_used, reason = "a test that fails to set itself up has failed")]

mod approvals;
mod conversations;
mod open;
mod registry;
mod replicas;
mod tls;

use haft_postgres::{Database, ReplicaSettings, Settings};
use haft_text::Secret;

/// Settings of a database, with tables that are created as needed.
fn settings(url: &str) -> Settings {
    Settings { url: Secret::new(url), ca: None, migrates: true }
}

async fn open(url: &str) -> Database {
    Database::open(settings(url)).await.unwrap()
}

fn replica(address: &str) -> ReplicaSettings {
    ReplicaSettings {
        address: address.to_owned(),
        version: "1.0.0".to_owned(),
        config: "c0ffee".to_owned(),
        retain_days: 30,
    }
}
