//! `haft shared approvals`: the answers `always` that hold at every replica.

use clap::Subcommand;
use haft::config::shared::SharedConfig;
use haft::human_input::StandingApproval;
use serde_json::{Value, json};

use super::serve::shared::failure;
use super::{EXIT_RUNTIME, Failure, Global, print_json, shared};
use crate::shared_approvals::{digest, load};
use crate::terminal::{self, Paint};

/// Characters of an id that a table shows.
const ID_SHOWN: usize = 12;

#[derive(Debug, Subcommand)]
pub(super) enum ApprovalsCommand {
    /// List them, the oldest first
    List,
    /// Remove some; the next such call asks again at every replica
    Rm {
        /// Their ids, or the beginnings of them
        #[arg(required = true)]
        ids: Vec<String>,
    },
}

pub(super) async fn run(
    global: &Global,
    settings: &SharedConfig,
    command: Option<&ApprovalsCommand>,
) -> anyhow::Result<()> {
    let database = shared::open(settings).await?;
    let (_, approvals) = load(&database).await.map_err(|error| failure(&error))?;
    let approvals: Vec<(String, StandingApproval)> =
        approvals.into_iter().map(|approval| (digest(&approval), approval)).collect();
    let Some(ApprovalsCommand::Rm { ids }) = command else { return list(global, &approvals) };
    // All of them are found before the first is removed.
    let ids: Vec<&str> =
        ids.iter().map(|id| find(&approvals, id)).collect::<Result<_, Failure>>()?;
    for id in ids {
        database.delete_approval(id).await.map_err(|error| failure(&error))?;
        if global.json {
            print_json(&json!({"id": id, "outcome": "removed"}))?;
        } else {
            terminal::line(&format!("removed {id}"));
        }
    }
    Ok(())
}

fn find<'a>(
    approvals: &'a [(String, StandingApproval)],
    beginning: &str,
) -> Result<&'a str, Failure> {
    let mut fitting = approvals.iter().filter(|(id, _)| id.starts_with(beginning));
    let problem = match (fitting.next(), fitting.next()) {
        (Some((id, _)), None) if !beginning.is_empty() => return Ok(id),
        (Some(_), _) => format!("`{beginning}` may mean any of several approvals"),
        (None, _) => format!("no approval `{beginning}` is stored"),
    };
    Err(Failure::new(EXIT_RUNTIME, problem, "`haft shared approvals` lists them"))
}

fn list(global: &Global, approvals: &[(String, StandingApproval)]) -> anyhow::Result<()> {
    if global.json {
        let entries: Vec<Value> = approvals.iter().map(|(id, it)| entry(id, it)).collect();
        return print_json(&entries);
    }
    if approvals.is_empty() {
        terminal::line("no call is approved for good");
        return Ok(());
    }
    let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let row = |(id, it): &(String, StandingApproval)| {
        let id = id.chars().take(ID_SHOWN).collect();
        let caller = [&it.owner, &it.session, &it.server, &it.rule].map(or_dash);
        [vec![id, it.tool.clone()], caller.to_vec()].concat()
    };
    let rows: Vec<Vec<String>> = approvals.iter().map(row).collect();
    let head = ["APPROVAL", "TOOL", "OWNER", "SESSION", "SERVER", "RULE"];
    terminal::table(Paint::stdout(global.color), &head, &rows);
    Ok(())
}

fn entry(id: &str, approval: &StandingApproval) -> Value {
    let StandingApproval { owner, session, server, tool, rule, definition } = approval;
    json!({
        "id": id, "tool": tool, "owner": owner, "session": session, "server": server, "rule": rule,
        "definition": definition,
    })
}
