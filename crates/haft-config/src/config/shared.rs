//! The database that several replicas share.

use std::path::PathBuf;
use std::time::Duration;

use super::choices::Migrate;
use super::model::Setting;
use super::secret::{Masked, ServerUrl};

/// `shared`.
#[derive(Debug, Clone)]
pub struct SharedConfig {
    /// The address of the database.
    pub url: Setting<Masked>,
    /// The certificates that sign the database's, as PEM.
    pub ca: Option<Setting<PathBuf>>,
    /// The address at which other replicas reach this one.
    pub advertise: Option<Setting<ServerUrl>>,
    /// The time at which tables are created and changed.
    pub migrate: Setting<Migrate>,
    /// The longest time for which keys are accepted while the database does not respond.
    pub stale_max: Setting<Duration>,
}
