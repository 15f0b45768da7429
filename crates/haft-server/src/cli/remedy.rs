//! Remedies of the library, as commands and options of this program.

use haft::config::ConfigError;
use haft::{Config, Envelope, Remedy};
use haft_text::printable;

/// A remedy for the user of a terminal.
pub(super) fn command(remedy: &Remedy) -> String {
    match remedy {
        Remedy::Text(text) => text.clone(),
        Remedy::FindTool { nearest } => {
            format!("{}`haft tools list` shows every tool", did_you_mean(nearest.as_deref()))
        }
        Remedy::ReadInputSchema { tool } => {
            format!("`haft tools show {tool}` shows the input schema")
        }
        Remedy::FixOutput { tool } => format!(
            "fix the tool or its `output_schema`; `haft log --tool {tool}` shows what it answered"
        ),
        Remedy::RaiseTimeout { tool, server } => {
            let look = server
                .as_ref()
                .map(|server| format!(", or look at its server: `haft servers show {server}`"));
            format!(
                "raise `timeout` for `{tool}` (`haft explain {tool}` shows where it is set){}",
                look.unwrap_or_default()
            )
        }
        Remedy::FindServer { nearest } => {
            format!("{}`haft servers list` shows every server", did_you_mean(nearest.as_deref()))
        }
        Remedy::InspectServer { server } => {
            format!("`haft servers show {server}` shows how it is doing")
        }
        Remedy::SignIn { server } => format!(
            "log in with `haft login {server}`, or set `oauth` or an `Authorization` header for it"
        ),
        Remedy::FindResource => {
            "say which `server` has it; `haft resources list` shows what there is".to_owned()
        }
        Remedy::ReadExecution { id } => format!("`haft log show {id} --output` prints the result"),
        Remedy::FindRule { is_faulty: false } => {
            "change the arguments or do without it; the operator finds the rule with `haft why`"
                .to_owned()
        }
        Remedy::FindRule { is_faulty: true } => {
            "the operator finds the rule with `haft why`, and its mistakes with `haft check --connect`"
                .to_owned()
        }
        Remedy::CheckSandbox { alternative } => {
            let or = alternative.as_ref().map(|it| format!(", or {it}")).unwrap_or_default();
            format!("see `haft doctor`: it checks what this machine offers for sandboxes{or}")
        }
        Remedy::CreateRegistry => format!("start `haft serve`, which creates it, or {remedy}"),
        Remedy::UseInbox { alternative } => {
            format!("{alternative}, or use `haft serve`, whose inbox people can see and answer")
        }
        Remedy::ClearInbox => {
            "answer or refuse what waits in the inbox; `haft console` shows it".to_owned()
        }
        Remedy::SetInput { input, variable } => {
            format!("give it with `--input {input}=VALUE`, or set {variable}")
        }
        Remedy::NameFormat { formats } => {
            format!("force a format with `--config-format`: {formats}")
        }
        Remedy::SplitFile => "put it into a file of its own and give both with `-c`".to_owned(),
        Remedy::UseFile => "use it as it is, with `-c`".to_owned(),
        Remedy::ApproveDefinition { server, name } => {
            let (server, name) = (printable(server), printable(name));
            format!(
                "review it with `haft lock diff`, then accept it with `haft lock approve {server}/{name}` or in the inbox"
            )
        }
        Remedy::ApproveServer { server } => {
            format!("approve the server as a whole: `haft lock approve {}`", printable(server))
        }
        Remedy::ReviewDrift => "`haft lock diff` shows what differs".to_owned(),
        Remedy::WriteLock => "write it with `haft lock`".to_owned(),
        Remedy::RestoreLock => {
            "take the file from version control again; or delete it, run `haft lock` and review the result"
                .to_owned()
        }
    }
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map(|nearest| format!("did you mean `{nearest}`? ")).unwrap_or_default()
}

/// Renders the remedy of a failed call, and the way to the rest of a result that was cut.
pub(super) fn render(envelope: &mut Envelope) {
    envelope.render_cuts(command);
    if let Some(remedy) = envelope.error.as_mut().and_then(|error| error.remedy.as_mut()) {
        *remedy = command(remedy).into();
    }
}

/// Renders the remedies of a configuration's warnings.
pub(super) fn in_warnings(mut config: Config) -> Config {
    for warning in &mut config.warnings {
        warning.remedy = command(&warning.remedy).into();
    }
    config
}

/// Renders the remedies of an invalid configuration.
pub(super) fn in_problems(mut error: ConfigError) -> ConfigError {
    for problem in &mut error.problems {
        problem.remedy = command(&problem.remedy).into();
    }
    error
}
