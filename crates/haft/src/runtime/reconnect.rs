//! Connecting one server anew, because somebody wants it now.

use super::{Runtime, ServerInfo};
use crate::config::nearest;

/// Why a server cannot be connected anew.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReconnectError {
    /// No server of that name is configured.
    #[error("no server is named `{server}`")]
    UnknownServer {
        /// The name that was asked for.
        server: String,
        /// The nearest name that exists.
        nearest: Option<String>,
    },
    /// The server is configured not to be used.
    #[error("the server `{server}` is disabled")]
    Disabled {
        /// The server.
        server: String,
    },
}

impl ReconnectError {
    /// What to do next.
    pub fn remedy(&self) -> String {
        match self {
            Self::UnknownServer { nearest: Some(nearest), .. } => {
                format!("did you mean `{nearest}`?")
            }
            Self::UnknownServer { nearest: None, .. } => {
                "`haft servers list` shows the servers there are".to_owned()
            }
            Self::Disabled { server } => {
                format!("remove `disabled: true` of `{server}` from the configuration")
            }
        }
    }
}

impl Runtime {
    /// Drops the connection of one server, if there is one, and connects it anew at once, whatever
    /// pause it would have made. Waits for the first attempt and says how the server is doing then;
    /// if that attempt failed, others may follow in the background.
    ///
    /// A call under way over the old connection is sent again where that is harmless; otherwise it
    /// fails, because nobody knows whether it took effect. Calls that come meanwhile wait.
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
        #[cfg(feature = "mcp")]
        if let Some(connection) = snapshot.fleet.find(server) {
            connection.reconnect().await;
            // Whoever asks for its tools next finds those it has now.
            self.inner.refresh().await;
            return Ok(ServerInfo::connected(connection));
        }
        let mut infos = snapshot.fleet.infos(snapshot.config()).into_iter();
        Ok(infos.find(|it| it.name == server).unwrap_or_else(|| ServerInfo::configured(config)))
    }
}
