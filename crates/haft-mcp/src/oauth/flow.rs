//! rmcp's state machine, made quiet and with our errors.

use std::sync::Arc;

use rmcp::transport::auth::{
    AuthError as FlowError, AuthorizationManager, AuthorizationMetadata,
    AuthorizationMetadataSource, OAuthClientConfig,
};
use tracing::{instrument::WithSubscriber, subscriber::NoSubscriber};

use super::{AuthError, http::GuardedHttp};

/// One run of rmcp's state machine.
pub(crate) struct Flow {
    pub(crate) manager: AuthorizationManager,
    pub(crate) metadata: AuthorizationMetadata,
    pub(crate) source: AuthorizationMetadataSource,
    pub(crate) http: Arc<GuardedHttp>,
    pub(crate) server: String,
}

impl Flow {
    /// Runs a step without its log lines, one of which is the authorization code.
    pub(crate) async fn quietly<T>(
        &self,
        step: impl Future<Output = Result<T, FlowError>>,
    ) -> Result<T, AuthError> {
        step.with_subscriber(NoSubscriber::default()).await.map_err(|error| self.problem(error))
    }

    pub(crate) fn configure(&mut self, config: OAuthClientConfig) -> Result<(), AuthError> {
        self.manager.configure_client(config).map_err(|error| self.problem(error))
    }

    pub(crate) fn problem(&self, error: FlowError) -> AuthError {
        self.http.take_problem().unwrap_or_else(|| AuthError::from_flow(&self.server, error))
    }

    pub(crate) fn unusable(&self, problem: &str) -> AuthError {
        AuthError::Discovery { server: self.server.clone(), problem: problem.into() }
    }

    pub(crate) fn issuer(&self) -> Option<String> {
        self.metadata.issuer.clone()
    }

    pub(crate) fn takes_metadata_document(&self) -> bool {
        let announced =
            self.metadata.additional_fields.get("client_id_metadata_document_supported");
        announced.and_then(serde_json::Value::as_bool) == Some(true)
    }
}
