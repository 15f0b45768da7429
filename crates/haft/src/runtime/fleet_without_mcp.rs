//! What is left of the servers in a build without the `mcp` feature: none can be reached.

use std::collections::HashSet;
use std::sync::Arc;

use super::servers::ServerInfo;
use super::{ConnectFailed, Parts, Purpose, StartError};
use crate::config::choices::{ConnectFailure, Start};
use crate::config::model::Config;
use crate::error::ToolFailure;
use crate::registry::{KnownTools, Level, Record, connect_failure, skipped};
use crate::server_state::ServerState;
use crate::tool::{Tool, ToolDefinition};

/// Why no server is reached.
const NO_TRANSPORT: &str = "this build of Haft has no MCP (feature `mcp`)";

/// The servers of one configuration.
#[derive(Clone, Default)]
pub(crate) struct Fleet {
    config: Option<Config>,
}

impl Fleet {
    pub(super) fn new(config: &Config, _: &Parts, _: Option<&Self>) -> Self {
        Self { config: Some(config.clone()) }
    }

    #[expect(clippy::unused_async, reason = "the other build waits here")]
    pub(super) async fn connect(
        &self,
        parts: &Parts,
        _: Option<&KnownTools>,
    ) -> Result<(), StartError> {
        if parts.purpose == Purpose::Inspect {
            return Ok(());
        }
        for server in self.config.iter().flat_map(|config| &config.servers) {
            if server.disabled.value || server.start.value == Start::Lazy {
                continue;
            }
            let name = &server.name;
            match server.on_connect_failure.value {
                ConnectFailure::Exit => {
                    let text = connect_failure(name, &server.endpoint, NO_TRANSPORT);
                    Record { level: Level::Error, text: text.clone() }.emit();
                    let failed = vec![ConnectFailed { server: name.clone(), text }];
                    return Err(StartError::Connect { failed });
                }
                ConnectFailure::Skip => {
                    skipped(name, NO_TRANSPORT).emit();
                }
            }
        }
        Ok(())
    }

    #[expect(clippy::unused_self, reason = "the other build connects its servers")]
    pub(super) fn begin(&self, _: &Self) {}

    #[expect(clippy::unused_self, clippy::unused_async, reason = "the other build waits here")]
    pub(super) async fn first_attempt(&self, _: &str) {}

    pub(super) fn with_current_lists(&self) -> Self {
        self.clone()
    }

    #[expect(clippy::unused_self, reason = "the other build looks at its servers")]
    pub(super) fn is_current(&self) -> bool {
        true
    }

    #[expect(clippy::unused_self, reason = "the other build looks at its servers")]
    pub(super) fn discovered(&self) -> Vec<(String, Vec<ToolDefinition>)> {
        Vec::new()
    }

    #[expect(clippy::unused_self, reason = "the other build looks at its servers")]
    pub(super) fn app_only(&self) -> HashSet<(&str, &str)> {
        HashSet::new()
    }

    pub(super) fn backend(
        &self,
        _: &str,
        _: &Arc<ToolDefinition>,
        _: &HashSet<(&str, &str)>,
    ) -> Option<Arc<dyn Tool>> {
        None
    }

    #[expect(clippy::unused_self, reason = "the other build looks at its servers")]
    pub(super) fn infos(&self, config: &Config) -> Vec<ServerInfo> {
        let info = |server| match ServerInfo::configured(server) {
            info if info.state == ServerState::Disabled => info,
            info => ServerInfo {
                state: ServerState::Unavailable,
                reason: Some(NO_TRANSPORT.to_owned()),
                ..info
            },
        };
        config.servers.iter().map(info).collect()
    }

    #[expect(clippy::unused_self, clippy::unused_async, reason = "the other build waits here")]
    pub(super) async fn ask_unlisted(&self) -> bool {
        false
    }

    #[expect(clippy::unused_self, clippy::unused_async, reason = "the other build waits here")]
    pub(super) async fn ask_late(&self) -> bool {
        false
    }

    #[expect(clippy::unused_self, clippy::unused_async, reason = "the other build waits here")]
    pub(super) async fn refresh_stale(&self) {}

    #[expect(clippy::unused_self, reason = "the other build looks at its servers")]
    pub(super) fn missing(
        &self,
        _: &str,
        _: &Config,
        _: &KnownTools,
        _: impl Fn(&str) -> bool,
    ) -> Option<ToolFailure> {
        None
    }

    #[expect(clippy::unused_self, clippy::unused_async, reason = "the other build waits here")]
    pub(super) async fn retire(&self, _: &Self) {}

    #[expect(clippy::unused_self, clippy::unused_async, reason = "the other build waits here")]
    pub(super) async fn stop(&self) {}
}
