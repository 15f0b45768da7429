//! The log of all replicas, for `haft log`, `haft why` and `haft learn`.

use haft::Config;
use haft::config::choices::LogShip;
use haft::record::{Filter, LoggedCall};
use haft_postgres::{PostgresLog, chunks};

use super::serve::shared::failure;
use super::{Global, block_on, load, shared};

/// The configuration, if its log is shipped to the database that replicas share.
pub(super) fn shared_configuration(global: &Global) -> Option<Config> {
    if !load::is_named(global) {
        return None;
    }
    // A configuration with problems is reported by the command itself.
    let config = load::load_without_registry(global).ok()?;
    (config.log.ship.value == LogShip::Shared).then_some(config)
}

/// The newest calls of all replicas, in the order of their start. Also the number of rows that are not entries.
pub(super) fn find(config: &Config, filter: &Filter) -> anyhow::Result<(Vec<LoggedCall>, u64)> {
    block_on(async {
        let Some(settings) = &config.shared else { return Ok((Vec::new(), 0)) };
        let log = PostgresLog::new(shared::open(settings).await?);
        let mut found = log.find(filter).await.map_err(|error| failure(&error))?;
        found.reverse();
        let (mut calls, mut malformed) = (Vec::new(), 0);
        for chunk in chunks(&found) {
            for (_, entry) in log.entries(chunk).await.map_err(|error| failure(&error))? {
                match serde_json::from_str(&entry) {
                    Ok(call) => calls.push(call),
                    Err(_) => malformed += 1,
                }
            }
        }
        Ok((calls, malformed))
    })
}
