//! Remedies of the library, as endpoints of the API and settings.

use haft::{Envelope, Remedy};

/// A remedy for a client of the API.
pub(in crate::api) fn endpoint(remedy: &Remedy) -> String {
    match remedy {
        Remedy::FindTool { nearest: Some(nearest) } => {
            format!("did you mean `{nearest}`? `GET /api/v1/tools` lists every tool")
        }
        Remedy::FindTool { nearest: None } => "`GET /api/v1/tools` lists every tool".to_owned(),
        Remedy::ReadInputSchema { tool } => {
            format!("`GET /api/v1/tools/{tool}` has the input schema")
        }
        Remedy::FixOutput { tool } => format!(
            "fix the tool or its `output_schema`; `GET /api/v1/log?tool={tool}` has its answers"
        ),
        Remedy::RaiseTimeout { tool, server: None } => {
            format!("raise `timeout` for `{tool}`; `GET /api/v1/tools/{tool}` has its settings")
        }
        Remedy::RaiseTimeout { tool, server: Some(server) } => format!(
            "raise `timeout` for `{tool}`, or look at its server: `GET /api/v1/servers/{server}`"
        ),
        Remedy::FindServer { nearest: Some(nearest) } => {
            format!("did you mean `{nearest}`? `GET /api/v1/servers` lists every server")
        }
        Remedy::FindServer { nearest: None } => {
            "`GET /api/v1/servers` lists every server".to_owned()
        }
        Remedy::InspectServer { server } => {
            format!("`GET /api/v1/servers/{server}` has its state")
        }
        Remedy::SignIn { server } => format!(
            "sign in with `POST /api/v1/servers/{server}/sign-in`, or set `oauth` or an `Authorization` header for it"
        ),
        Remedy::FindResource => {
            "name the `server` that has it; `GET /api/v1/resources` lists what there is".to_owned()
        }
        Remedy::ReadExecution { id } => format!("`GET /api/v1/log/{id}` has the result"),
        Remedy::FindRule { .. } => {
            format!("{remedy}: `GET /api/v1/log/{{execution_id}}/why`")
        }
        Remedy::UseInbox { alternative } => {
            format!("{alternative}, or let people answer at `GET /api/v1/inbox`")
        }
        Remedy::ClearInbox => {
            "answer or refuse what waits: `GET /api/v1/inbox` lists it".to_owned()
        }
        Remedy::ApproveDefinition { .. } => {
            "let an admin review it at `GET /api/v1/lock` and approve it with `POST /api/v1/lock/approve` or in the inbox"
                .to_owned()
        }
        Remedy::ApproveServer { .. } => {
            "approve the server as a whole: leave `name` out".to_owned()
        }
        Remedy::ReviewDrift => "`GET /api/v1/lock` has what differs".to_owned(),
        // These name a setting, a variable or a file, and no endpoint changes it.
        Remedy::Text(_)
        | Remedy::CheckSandbox { .. }
        | Remedy::CreateRegistry
        | Remedy::SetInput { .. }
        | Remedy::NameFormat { .. }
        | Remedy::SplitFile
        | Remedy::UseFile
        | Remedy::WriteLock
        | Remedy::RestoreLock => remedy.to_string(),
    }
}

/// Renders the remedy of a failed call, and the way to the rest of a result that was cut.
pub(super) fn render(envelope: &mut Envelope) {
    envelope.render_cuts(endpoint);
    if let Some(remedy) = envelope.error.as_mut().and_then(|error| error.remedy.as_mut()) {
        *remedy = endpoint(remedy).into();
    }
}
