//! Tools that send log messages and progress before they answer.
#![expect(deprecated, reason = "the suite still tests logging")]

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam};
use rmcp::service::{RequestContext, ServiceError};
use serde_json::json;

/// Long enough for a client to see each message on its own.
const PAUSE: Duration = Duration::from_millis(50);

/// Sends three log messages, if the caller wants them.
pub(crate) async fn log(
    context: &RequestContext<RoleServer>,
    level_min: Option<LoggingLevel>,
) -> Result<(), ServiceError> {
    // The variants stand in the order of their severity.
    let wanted = level_min.is_some_and(|level| level as u8 <= LoggingLevel::Info as u8);
    for text in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        if wanted {
            let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(text));
            context.peer.notify_logging_message(message.with_logger("conformance-server")).await?;
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

/// Reports progress three times, if the caller gave a token.
pub(crate) async fn progress(context: &RequestContext<RoleServer>) -> Result<(), ServiceError> {
    let token = context.meta.get_progress_token();
    for progress in [0.0, 50.0, 100.0] {
        if let Some(token) = &token {
            let report = ProgressNotificationParam::new(token.clone(), progress).with_total(100.0);
            context.peer.notify_progress(report).await?;
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}
