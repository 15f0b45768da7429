//! `haft sessions list|show|rm`: the conversations that are kept.

use std::process::ExitCode;

use clap::Subcommand;
use haft_agent::model::ChatMessage;
use haft_agent::{Saved, SessionStore, SessionStoreError};
use haft_text::printable_block;
use serde_json::json;

use super::agent::unknown;
use super::content::shown;
use super::{EXIT_RUNTIME, Failure, Global, load, print_json};
use crate::terminal::{self, Paint};
use crate::timestamp;

#[derive(Debug, Subcommand)]
pub(super) enum SessionsCommand {
    /// List the conversations, the one used last first
    List,
    /// Show the messages of a conversation
    Show {
        /// Its id, or the beginning of it
        id: String,
    },
    /// Delete conversations
    Rm {
        /// Their ids, or the beginnings of them
        #[arg(required = true)]
        ids: Vec<String>,
    },
}

pub(super) fn run(global: &Global, command: &SessionsCommand) -> anyhow::Result<ExitCode> {
    let (config, _) = load::load_if_any(global)?;
    let store = SessionStore::of(&config);
    match command {
        SessionsCommand::List => list(global, &store.list())?,
        SessionsCommand::Show { id } => {
            let (saved, messages) = store.show(id).map_err(|error| unknown(&error))?;
            if global.json {
                print_json(&json!({"session": saved, "messages": messages}))?;
            } else {
                print(global, &messages);
            }
        }
        SessionsCommand::Rm { ids } => {
            for id in ids {
                let id = store.remove(id).map_err(|error| kept(&error))?;
                if global.json {
                    print_json(&json!({"id": id, "outcome": "deleted"}))?;
                } else {
                    terminal::line(&format!("deleted {id}"));
                }
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Why a conversation cannot be deleted.
fn kept(error: &SessionStoreError) -> Failure {
    match error {
        SessionStoreError::InUse(_) => {
            let remedy = "end the program that uses it, or wait for it";
            Failure::new(EXIT_RUNTIME, error.to_string(), remedy)
        }
        SessionStoreError::Unknown(_)
        | SessionStoreError::Ambiguous(_)
        | SessionStoreError::Empty
        | SessionStoreError::Unreadable { .. }
        | SessionStoreError::Unavailable { .. } => unknown(error),
    }
}

fn list(global: &Global, saved: &[Saved]) -> anyhow::Result<()> {
    if global.json {
        return print_json(&saved);
    }
    if saved.is_empty() {
        terminal::line("no conversations are kept yet; `haft chat` begins one");
        return Ok(());
    }
    let row = |it: &Saved| {
        let when = timestamp::shown(it.updated);
        vec![it.id.clone(), when, it.messages.to_string(), it.model.clone(), it.title.clone()]
    };
    let rows: Vec<Vec<String>> = saved.iter().map(row).collect();
    let head = ["SESSION", "LAST USED", "MESSAGES", "MODEL", "BEGINS WITH"];
    terminal::table(Paint::stdout(global.color), &head, &rows);
    Ok(())
}

fn print(global: &Global, messages: &[ChatMessage]) {
    let paint = Paint::stdout(global.color);
    for message in messages {
        match message {
            ChatMessage::User { content } => {
                for block in content {
                    terminal::line(&format!("{} {}", paint.bold("you:"), shown(block)));
                }
            }
            ChatMessage::Assistant { text, calls, .. } => {
                if !text.is_empty() {
                    terminal::line(&format!("{} {}", paint.bold("model:"), printable_block(text)));
                }
                for call in calls {
                    let line = format!("> {} {}", call.name, call.arguments);
                    terminal::line(&paint.dim(&printable_block(&line)));
                }
            }
            ChatMessage::Tools { results } => {
                for result in results {
                    let mark = if result.is_error { "!" } else { "<" };
                    for block in &result.content {
                        terminal::line(&paint.dim(&format!("{mark} {}", shown(block))));
                    }
                }
            }
        }
    }
}
