//! Reconnects one server on demand.

use super::{Runtime, ServerInfo};
use haft_config::Remedy;
use haft_text::nearest;

/// Reasons why a server cannot be reconnected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReconnectError {
    /// No server of that name is configured.
    #[error("no server is named `{server}`")]
    UnknownServer {
        /// The requested name.
        server: String,
        /// The nearest existing name.
        nearest: Option<String>,
    },
    /// The server is disabled in the configuration.
    #[error("the server `{server}` is disabled")]
    Disabled {
        /// The server.
        server: String,
    },
}

impl ReconnectError {
    /// The remedy for the operator.
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::UnknownServer { nearest, .. } => Remedy::FindServer { nearest: nearest.clone() },
            Self::Disabled { server } => {
                format!("remove `disabled: true` of `{server}` from the configuration").into()
            }
        }
    }
}

impl Runtime {
    /// Drops the connection of one server, if present, and reconnects at once, without any backoff.
    /// Waits for the first attempt and returns the server's state. If that attempt fails, the
    /// supervisor keeps retrying in the background.
    ///
    /// Calls in flight over the old connection are retried if that is safe; otherwise they fail
    /// with an unknown outcome. New calls wait meanwhile.
    pub async fn reconnect(&self, server: &str) -> Result<ServerInfo, ReconnectError> {
        let snapshot = self.inner.snapshot.load_full();
        let servers = &snapshot.config().servers;
        let Some(config) = servers.iter().find(|it| it.name == server) else {
            let names = servers.iter().map(|it| it.name.as_str());
            return Err(ReconnectError::UnknownServer {
                server: server.to_owned(),
                nearest: nearest(server, names).map(ToOwned::to_owned),
            });
        };
        if config.disabled.value {
            return Err(ReconnectError::Disabled { server: server.to_owned() });
        }
        if let Some(connection) = snapshot.server_pool.find(server) {
            connection.reconnect().await;
            // The next caller sees the tools of the new connection.
            self.inner.refresh().await;
            return Ok(ServerInfo::connected(connection));
        }
        let mut infos = snapshot.server_pool.infos(snapshot.config()).into_iter();
        Ok(infos.find(|it| it.name == server).unwrap_or_else(|| ServerInfo::configured(config)))
    }
}
