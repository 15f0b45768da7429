//! Questions about definitions that differ from the lock file, in the inbox of a service.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use serde_json::value::to_raw_value;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Inner;
use super::lock_status::{DefinitionChoice, OpenDrifts};
use crate::human_input::{HumanInputError, HumanQuestion, ItemKind};
use haft_config::lock::{Drift, LockedKind};

const APPROVE: &str = "approve";
const DENY: &str = "deny";

/// Keeps one question open for each definition that is blocked, until the runtime is dropped.
pub(super) async fn run(inner: Weak<Inner>) {
    let Some((mut changes, stop)) =
        inner.upgrade().map(|inner| (inner.changes.subscribe(), inner.parts.stop_servers.clone()))
    else {
        return;
    };
    let mut open: BTreeMap<_, DropGuard> = BTreeMap::new();
    loop {
        {
            let Some(inner) = inner.upgrade() else { return };
            let drifts: OpenDrifts = inner.blocking_drifts();
            // A question is withdrawn as soon as its definition is approved or changes again.
            open.retain(|key, _| drifts.contains_key(key));
            for (key, drift) in drifts {
                open.entry(key).or_insert_with(|| ask(&inner, drift));
            }
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            received = changes.changed() => {
                if received.is_err() {
                    return;
                }
            }
        }
    }
}

/// Asks in the background while the guard lives.
fn ask(inner: &Arc<Inner>, drift: Drift) -> DropGuard {
    let withdrawn = CancellationToken::new();
    let (token, weak) = (withdrawn.clone(), Arc::downgrade(inner));
    inner.background.spawn(async move {
        token.run_until_cancelled(ask_until_answered(&weak, &drift)).await;
    });
    withdrawn.drop_guard()
}

async fn ask_until_answered(weak: &Weak<Inner>, drift: &Drift) {
    loop {
        let Some((question, inbox)) =
            weak.upgrade().map(|inner| (question(&inner, drift), inner.parts.inbox.clone()))
        else {
            return;
        };
        match inbox.post(question).await {
            Ok(answer) if answer == APPROVE => {}
            // Asked again if the definition changes, or at the next start.
            Ok(_) | Err(HumanInputError::Refused { .. }) => return,
            Err(HumanInputError::Expired { .. }) => continue,
            Err(
                error @ (HumanInputError::Full { .. }
                | HumanInputError::Unattended
                | HumanInputError::Formless
                | HumanInputError::Client { .. }
                | HumanInputError::Schema { .. }),
            ) => {
                tracing::warn!(item = drift.title(), %error, "a changed definition is not in the inbox");
                return;
            }
        }
        let choice = DefinitionChoice {
            server: drift.server.clone(),
            kind: Some(drift.kind),
            name: Some(drift.name.clone()),
            hash: drift.current.clone(),
        };
        let Some(inner) = weak.upgrade() else { return };
        // The approval ends this very question, and its task must not be dropped half way.
        let task = inner.background.spawn({
            let inner = Arc::clone(&inner);
            async move { inner.approve_definitions(&choice).await }
        });
        drop(inner);
        match task.await {
            Ok(Ok(_)) | Err(_) => return,
            Ok(Err(error)) => {
                let remedy = error.remedy();
                tracing::error!(
                    item = drift.title(), %error, %remedy, "a definition was approved and cannot be written"
                );
            }
        }
    }
}

fn question(inner: &Inner, drift: &Drift) -> HumanQuestion {
    let origin = inner.snapshot.load().config().policy.definitions.origin.to_string();
    let text = format!("Approve {}, which is {}?", drift.title(), drift.summary());
    let mut question = HumanQuestion::new(ItemKind::Definition, text)
        .options([APPROVE, DENY])
        .server(&drift.server)
        .rule(format!("policy.definitions: block, set by {origin}"));
    if drift.kind == LockedKind::Tool {
        question = question.tool(&drift.name);
    }
    // A drift consists of strings and JSON, so it can always be written.
    match to_raw_value(drift) {
        Ok(shown) => question.arguments(&shown),
        Err(_) => question,
    }
}
