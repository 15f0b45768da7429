//! The queue of changes, worked off one after the other. Edits that wait together are checked and
//! written together.

use std::sync::Arc;

use haft_bounds::heavy;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::edit::{Edit, EditError, Edited, Made};
use super::permit::permit;
use super::store::{Documents, RegistryStore, Revision, StoreError, Stored};
use super::{ReloadError, Shared};
use crate::config::show;
use crate::config::{Config, ConfigError, Problem, Severity};

/// How many edits are checked and written in one step.
const TOGETHER_MAX: usize = 128;
/// How often an edit is made anew because somebody else wrote to the registry meanwhile.
const CONFLICTS_MAX: usize = 5;

/// What waits in the queue.
pub(super) enum Order {
    Edit(Edit, oneshot::Sender<Result<Edited, EditError>>),
    Reload(oneshot::Sender<Result<(), ReloadError>>),
    /// Look whether there is something to reload.
    Look(News, oneshot::Sender<()>),
}

/// What may say something else than before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    Files,
    Registry,
}

/// An edit and whoever waits for it.
struct Asked {
    edit: Edit,
    answer: oneshot::Sender<Result<Edited, EditError>>,
}

pub(super) async fn run(shared: Arc<Shared>, mut orders: mpsc::Receiver<Order>) {
    let mut taken = Vec::new();
    loop {
        tokio::select! {
            biased;
            () = shared.stop.cancelled() => break,
            count = orders.recv_many(&mut taken, TOGETHER_MAX) => {
                if count == 0 {
                    break;
                }
            }
        }
        let mut edits = Vec::new();
        for order in taken.drain(..) {
            match order {
                Order::Edit(edit, answer) => edits.push(Asked { edit, answer }),
                Order::Reload(answer) => {
                    shared.make(std::mem::take(&mut edits)).await;
                    // Whoever went away wants no answer.
                    let _ = answer.send(shared.reload().await);
                }
                Order::Look(news, looked) => {
                    shared.make(std::mem::take(&mut edits)).await;
                    shared.look(news).await;
                    let _ = looked.send(());
                }
            }
        }
        shared.make(edits).await;
    }
}

impl Shared {
    /// Makes edits, all of them in one step if they can be.
    async fn make(&self, asked: Vec<Asked>) {
        let Some(store) = &self.store else {
            return answer(asked, || Err(EditError::NoRegistry));
        };
        let mut alone: Vec<Vec<Asked>> = vec![asked];
        while let Some(asked) = alone.pop().filter(|asked| !asked.is_empty()) {
            match self.make_together(&**store, asked).await {
                Ok(()) => {}
                // One of them spoils it for all: each for itself, in their order.
                Err(asked) => alone.extend(asked.into_iter().rev().map(|asked| vec![asked])),
            }
        }
    }

    /// Makes edits in one step. Hands them back if they cannot be made together.
    async fn make_together(
        &self,
        store: &dyn RegistryStore,
        mut asked: Vec<Asked>,
    ) -> Result<(), Vec<Asked>> {
        let nodes_max = self.runtime.config().limits.nodes_max();
        for _ in 0..CONFLICTS_MAX {
            let Stored { documents: old, revision } = match store.load().await {
                Ok(stored) => stored,
                Err(error) => {
                    answer(asked, || Err(EditError::Store(error.clone())));
                    return Ok(());
                }
            };
            let mut new = old.clone();
            let mut made = Vec::new();
            for Asked { edit, answer } in asked {
                // After the first edit the registry is no longer at its revision.
                let at = made.is_empty().then_some(&revision);
                let bytes = new.tools.len() + new.servers.len();
                let edited = || edit.make(&mut new, at, nodes_max);
                match self.may_touch(&edit).and_then(|()| heavy::in_place(bytes, edited)) {
                    Ok(it) => made.push((Asked { edit, answer }, it)),
                    // Whoever went away wants no answer.
                    Err(error) => drop(answer.send(Err(error))),
                }
            }
            if made.is_empty() {
                return Ok(());
            }
            let edits: Vec<&Edit> = made.iter().map(|(asked, _)| &asked.edit).collect();
            match self.keep(store, &revision, &old, new, &edits).await {
                Ok(revision) => {
                    for (Asked { answer, .. }, Made { what, tag }) in made {
                        let _ = answer.send(Ok(Edited { what, revision: revision.clone(), tag }));
                    }
                    return Ok(());
                }
                Err(EditError::Store(StoreError::Conflict)) => {
                    asked = made.into_iter().map(|(asked, _)| asked).collect();
                }
                Err(error) => {
                    let mut asked: Vec<Asked> = made.into_iter().map(|(asked, _)| asked).collect();
                    if asked.len() > 1 {
                        return Err(asked);
                    }
                    if let Some(Asked { answer, .. }) = asked.pop() {
                        let _ = answer.send(Err(error));
                    }
                    return Ok(());
                }
            }
        }
        answer(asked, || Err(EditError::Store(StoreError::Conflict)));
        Ok(())
    }

    /// What a file configures is that file's: an entry of the registry would hide it.
    fn may_touch(&self, edit: &Edit) -> Result<(), EditError> {
        let config = self.runtime.config();
        let place = match edit.document {
            super::Document::Tools => config
                .local
                .iter()
                .find(|tool| tool.definition.name == edit.name)
                .map(|tool| &tool.place),
            super::Document::Servers => config
                .servers
                .iter()
                .find(|server| server.name == edit.name)
                .map(|server| &server.place),
        };
        match place.filter(|place| !config.is_registry_file(&place.file)) {
            None => Ok(()),
            Some(place) => {
                let (name, file) = (edit.name.clone(), place.file.to_string());
                Err(EditError::ReadOnly { name, file })
            }
        }
    }

    /// Checks the documents as a whole, builds the new state, makes it durable, puts it in use.
    async fn keep(
        &self,
        store: &dyn RegistryStore,
        revision: &Revision,
        old: &Documents,
        new: Documents,
        edits: &[&Edit],
    ) -> Result<Revision, EditError> {
        let config = self.load(Some(new.clone())).await.map_err(|error| self.refusal(error))?;
        for edit in edits {
            permit(edit, &config)?;
        }
        let change = Box::pin(self.runtime.prepare(config)).await?;
        let revision =
            if new == *old { revision.clone() } else { store.commit(revision, &new).await? };
        change.publish().await;
        self.in_use(Some(revision.clone()));
        Ok(revision)
    }

    /// A problem of another file is not the edit's.
    fn refusal(&self, error: ConfigError) -> EditError {
        let config = self.runtime.config();
        let is_error = |problem: &&Problem| problem.severity == Severity::Error;
        let mut errors = error.problems.iter().filter(is_error);
        match errors.find(|problem| !config.is_registry_file(&problem.place.file)) {
            None => EditError::Invalid(error),
            Some(other) => {
                EditError::Broken { file: other.place.file.to_string(), problem: other.to_string() }
            }
        }
    }

    async fn look(&self, news: News) {
        if news == News::Registry && self.status().problem.is_none() && self.is_current().await {
            return;
        }
        // How it went is in the status, and in the log if that is news.
        let _ = self.reload().await;
    }

    /// Whether the registry is the one in use.
    async fn is_current(&self) -> bool {
        let Some(store) = &self.store else { return true };
        let in_use = self.status().revision.clone();
        store.load().await.is_ok_and(|stored| Some(stored.revision) == in_use)
    }

    /// Loads everything again. What cannot be used changes nothing but the status.
    async fn reload(&self) -> Result<(), ReloadError> {
        let reloaded = self.try_reload().await;
        match &reloaded {
            Ok(()) => {}
            Err(error) => {
                let problems = match error {
                    ReloadError::Invalid(ConfigError { problems }) => problems.clone(),
                    ReloadError::Refused(_) | ReloadError::Store(_) | ReloadError::Stopping => {
                        Vec::new()
                    }
                };
                if self.not_in_use(error.to_string(), problems) {
                    tracing::error!(
                        "the files changed and cannot be used, the state before stays: {error}"
                    );
                }
            }
        }
        reloaded
    }

    async fn try_reload(&self) -> Result<(), ReloadError> {
        let stored = match &self.store {
            Some(store) => Some(store.load().await?),
            None => None,
        };
        let (documents, revision) =
            stored.map(|stored| (stored.documents, stored.revision)).unzip();
        let config = self.load(documents).await.map_err(ReloadError::Invalid)?;
        let is_first = self.status().revision.is_none() && self.status().problem.is_none();
        let waiting = waiting_for_restart(&self.at_start, &config);
        let refused = |error| ReloadError::Refused(Arc::new(error));
        let change = Box::pin(self.runtime.prepare(config)).await.map_err(refused)?;
        change.publish().await;
        self.in_use(revision);
        if !is_first {
            tracing::info!("the configuration was loaded again");
        }
        self.note_waiting(waiting);
        Ok(())
    }
}

/// Settings that are read only at the start and say something else now.
fn waiting_for_restart(at_start: &Config, now: &Config) -> Vec<String> {
    let service = |config| show::service_rows(config).into_iter().map(|row| (row.path, row.value));
    let (before, now): (Vec<_>, Vec<_>) = (service(at_start).collect(), service(now).collect());
    let missing = |of: &[(String, Value)], row: &(String, Value)| !of.contains(row);
    let changed = now.iter().filter(|row| missing(&before, row));
    let gone = before.iter().filter(|row| missing(&now, row));
    let mut paths: Vec<String> = changed.chain(gone).map(|(path, _)| path.clone()).collect();
    paths.sort_unstable();
    paths.dedup();
    paths
}

fn answer(asked: Vec<Asked>, error: impl Fn() -> Result<Edited, EditError>) {
    for Asked { answer, .. } in asked {
        // Whoever went away wants no answer.
        let _ = answer.send(error());
    }
}
