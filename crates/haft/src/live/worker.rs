//! Processes the queue of changes in order. Edits that wait together are checked and written
//! together.

use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use haft_bounds::heavy;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::edit::{Action, AppliedEdit, Edit, EditOutcome, RegistryEditError};
use super::permit::{permit, permit_scripts};
use super::store::{Documents, RegistryStore, Revision, StoreError, Stored};
use super::upload::{UploadedScript, WrittenScripts, invalid_at, remove_unused};
use super::{ReloadError, Shared};
use crate::backend::script_path;
use crate::config::model::{LocalProgram, LocalTool};
use crate::config::show;
use crate::config::{Config, ConfigError, Problem, Severity};

/// Maximum number of edits in one batch.
const TOGETHER_MAX: usize = 128;
/// Number of attempts at an edit without a delay when other processes write to the registry meanwhile.
const CONFLICTS_AT_ONCE: u32 = 3;
/// The longest delay between further attempts.
const CONFLICT_DELAY_MAX: Duration = Duration::from_millis(100);
/// Time after which an edit that meets other writers again and again is given up.
const CONFLICTS_FOR: Duration = Duration::from_secs(5);

/// An item of the queue.
pub(super) enum WorkItem {
    Edit(Edit, oneshot::Sender<Result<EditOutcome, RegistryEditError>>),
    Reload(oneshot::Sender<Result<(), ReloadError>>),
    /// Check for changes and reload.
    CheckForChanges(ChangeSource, oneshot::Sender<()>),
}

/// The possible source of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeSource {
    Files,
    Registry,
}

/// An edit and the channel for its result.
struct PendingEdit {
    edit: Edit,
    answer: oneshot::Sender<Result<EditOutcome, RegistryEditError>>,
}

/// Edits that are written together.
struct Batch {
    /// The documents with the edits.
    new: Documents,
    made: Vec<(PendingEdit, AppliedEdit)>,
    /// Edits that fail after those before them in the batch. They are tried again when those are written.
    deferred: Vec<PendingEdit>,
}

pub(super) async fn run(shared: Arc<Shared>, mut queue: mpsc::Receiver<WorkItem>) {
    let mut taken = Vec::new();
    loop {
        tokio::select! {
            biased;
            () = shared.stop.cancelled() => break,
            count = queue.recv_many(&mut taken, TOGETHER_MAX) => {
                if count == 0 {
                    break;
                }
            }
        }
        let mut edits = Vec::new();
        for item in taken.drain(..) {
            match item {
                WorkItem::Edit(edit, answer) => edits.push(PendingEdit { edit, answer }),
                WorkItem::Reload(answer) => {
                    shared.make(std::mem::take(&mut edits)).await;
                    // Fails only if the caller is gone.
                    let _ = answer.send(shared.reload().await);
                }
                WorkItem::CheckForChanges(source, looked) => {
                    shared.make(std::mem::take(&mut edits)).await;
                    shared.check_for_changes(source).await;
                    let _ = looked.send(());
                }
            }
        }
        shared.make(edits).await;
    }
}

impl Shared {
    /// Applies edits, in one batch if possible.
    async fn make(&self, pending: Vec<PendingEdit>) {
        let Some(store) = &self.store else {
            return answer(pending, || Err(RegistryEditError::NoRegistry));
        };
        let mut batches: Vec<Vec<PendingEdit>> = vec![pending];
        while let Some(pending) = batches.pop() {
            if !pending.is_empty() {
                batches.extend(self.make_together(&**store, pending).await);
            }
        }
    }

    /// Applies edits in one batch. Returns the batches that are still to be made, the next one last.
    async fn make_together(
        &self,
        store: &dyn RegistryStore,
        mut pending: Vec<PendingEdit>,
    ) -> Vec<Vec<PendingEdit>> {
        let began = Instant::now();
        for attempt in 1.. {
            let stored = match store.load().await {
                Ok(stored) => stored,
                Err(error) => {
                    answer(pending, || Err(RegistryEditError::Store(error.clone())));
                    return Vec::new();
                }
            };
            let Batch { new, made, deferred } = self.apply(&stored, pending);
            if made.is_empty() {
                return Vec::new();
            }
            let edits: Vec<&Edit> = made.iter().map(|(pending, _)| &pending.edit).collect();
            let scripts: Vec<UploadedScript> =
                made.iter().filter_map(|(_, applied)| applied.script.clone()).collect();
            let Stored { documents: old, revision } = &stored;
            let kept = self.keep(store, (revision, old), new, &edits, &scripts).await;
            let error = match kept {
                Ok(revision) => {
                    for (PendingEdit { answer, .. }, AppliedEdit { what, tag, .. }) in made {
                        // Fails only if the caller is gone.
                        let _ =
                            answer.send(Ok(EditOutcome { what, revision: revision.clone(), tag }));
                    }
                    return vec![deferred];
                }
                Err(error) => error,
            };
            let mut made: Vec<PendingEdit> = made.into_iter().map(|(pending, _)| pending).collect();
            match error {
                RegistryEditError::Store(StoreError::Conflict) => {
                    made.extend(deferred);
                    pending = made;
                    if began.elapsed() > CONFLICTS_FOR {
                        break;
                    }
                    if attempt >= CONFLICTS_AT_ONCE {
                        tokio::time::sleep(conflict_delay()).await;
                    }
                }
                // The cause is not one of the edits, and a second attempt could make a change that was made.
                RegistryEditError::Store(
                    error @ (StoreError::Unavailable { .. } | StoreError::Unknown { .. }),
                ) => {
                    answer(made, || Err(RegistryEditError::Store(error.clone())));
                    return vec![deferred];
                }
                // One edit fails the whole batch: each is retried on its own, in order.
                _ if made.len() > 1 => {
                    let alone = made.into_iter().rev().map(|pending| vec![pending]);
                    return std::iter::once(deferred).chain(alone).collect();
                }
                error => {
                    if let Some(PendingEdit { answer, .. }) = made.pop() {
                        let _ = answer.send(Err(error));
                    }
                    return vec![deferred];
                }
            }
        }
        answer(pending, || Err(RegistryEditError::Store(StoreError::Conflict)));
        Vec::new()
    }

    /// Applies edits to a copy of the documents.
    fn apply(&self, stored: &Stored, pending: Vec<PendingEdit>) -> Batch {
        let nodes_max = self.runtime.config().limits.nodes_max();
        let new = stored.documents.clone();
        let mut batch = Batch { new, made: Vec::new(), deferred: Vec::new() };
        let mut parsed = self.parsed_tools.lock();
        for PendingEdit { edit, answer } in pending {
            // After the first edit the documents differ from the stored revision.
            let at = batch.made.is_empty().then_some(&stored.revision);
            let bytes = batch.new.tools.len() + batch.new.servers.len();
            let edited = || edit.make(&mut batch.new, at, nodes_max, &mut parsed);
            match self.may_touch(&edit).and_then(|()| heavy::in_place(bytes, edited)) {
                Ok(applied) => batch.made.push((PendingEdit { edit, answer }, applied)),
                // Fails only if the caller is gone.
                Err(error) if batch.made.is_empty() => drop(answer.send(Err(error))),
                // The cause may be an edit of this batch, which is not written yet and may never be.
                Err(_) => batch.deferred.push(PendingEdit { edit, answer }),
            }
        }
        batch
    }

    /// An entry of the registry would hide a file's entry of the same name, so the edit is refused.
    fn may_touch(&self, edit: &Edit) -> Result<(), RegistryEditError> {
        let config = self.runtime.config();
        let place = match edit.document {
            super::RegistryDocument::Tools => config
                .local
                .iter()
                .find(|tool| tool.definition.name == edit.name)
                .map(|tool| &tool.place),
            super::RegistryDocument::Servers => config
                .servers
                .iter()
                .find(|server| server.name == edit.name)
                .map(|server| &server.place)
                .or_else(|| {
                    let mut broken = config.misconfigured.iter();
                    broken.find(|server| server.name == edit.name).map(|server| &server.place)
                }),
        };
        match place.filter(|place| !config.is_registry_file(&place.file)) {
            None => Ok(()),
            Some(place) => {
                let (name, file) = (edit.name.clone(), place.file.to_string());
                Err(RegistryEditError::ReadOnly { name, file })
            }
        }
    }

    /// Validates the documents as a whole, builds the new state, makes it durable, and publishes
    /// it.
    async fn keep(
        &self,
        store: &dyn RegistryStore,
        (revision, old): (&Revision, &Documents),
        new: Documents,
        edits: &[&Edit],
        scripts: &[UploadedScript],
    ) -> Result<Revision, RegistryEditError> {
        let config = self.load(Some(new.clone())).await.map_err(|error| self.refusal(error))?;
        permit_scripts(scripts, &config)?;
        for edit in edits {
            permit(edit, &config)?;
        }
        let dir = config.registry_dir.as_ref().map(|dir| dir.value.clone()).unwrap_or_default();
        let written = WrittenScripts::write(&dir, scripts)
            .map_err(|error| RegistryEditError::Store(unwritten(&dir, &error)))?;
        for tool in edited_tools(edits, &config) {
            check_script(tool)?;
        }
        let before = self.runtime.config();
        let change = Box::pin(self.runtime.prepare(config)).await?;
        for tool in edited_tools(edits, change.config()) {
            check_prepared(tool)?;
        }
        let after = Arc::clone(change.config());
        let revision =
            if new == *old { revision.clone() } else { store.commit(revision, &new).await? };
        written.keep();
        change.publish().await;
        remove_unused(&dir, &before, &after);
        self.in_use(Some(revision.clone()));
        Ok(revision)
    }

    /// A problem in another file is not a problem of the edit.
    fn refusal(&self, error: ConfigError) -> RegistryEditError {
        let config = self.runtime.config();
        let is_error = |problem: &&Problem| problem.severity == Severity::Error;
        let mut errors = error.problems.iter().filter(is_error);
        match errors.find(|problem| !config.is_registry_file(&problem.place.file)) {
            None => RegistryEditError::Invalid(error),
            Some(other) => RegistryEditError::Broken {
                file: other.place.file.to_string(),
                problem: other.to_string(),
            },
        }
    }

    async fn check_for_changes(&self, source: ChangeSource) {
        if source == ChangeSource::Registry
            && self.status().problem.is_none()
            && self.is_current().await
        {
            return;
        }
        // The status holds the result, and the log if it changed.
        let _ = self.reload().await;
    }

    /// Returns true if the stored registry is the one in use.
    async fn is_current(&self) -> bool {
        let Some(store) = &self.store else { return true };
        let in_use = self.status().revision.clone();
        store.load().await.is_ok_and(|stored| Some(stored.revision) == in_use)
    }

    /// Reloads everything. An invalid configuration changes only the status.
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

/// A random delay, so that replicas which met do not meet again.
fn conflict_delay() -> Duration {
    let random = RandomState::new().hash_one(());
    CONFLICT_DELAY_MAX * u32::try_from(random % 1000).unwrap_or(500) / 1000
}

/// The local tools that edits add or replace.
fn edited_tools<'c>(edits: &[&Edit], config: &'c Config) -> Vec<&'c LocalTool> {
    let is_edited = |tool: &&LocalTool| {
        let is_of = |edit: &&&Edit| {
            matches!(edit.action, Action::Add(_) | Action::Put(_))
                && edit.document == super::RegistryDocument::Tools
                && edit.name == tool.definition.name
        };
        edits.iter().any(|edit| is_of(&edit))
    };
    let tools = config.local.iter().map(|tool| &**tool).filter(is_edited);
    tools.filter(|tool| config.is_registry_file(&tool.place.file)).collect()
}

/// Refuses a tool whose script is missing: every call of it would fail.
fn check_script(tool: &LocalTool) -> Result<(), RegistryEditError> {
    let script = match &tool.program {
        LocalProgram::Python { script_path, .. } => Some(script_path),
        LocalProgram::Command { script_path, .. } => script_path.as_ref(),
    };
    let Some(script) = script else { return Ok(()) };
    match script_path::resolve(&tool.tools_dir, script) {
        Ok(_) => Ok(()),
        Err(failure) => Err(invalid_at(
            tool.place.below("config").below("script_path"),
            failure.to_string(),
            "put the script into the registry's folder first, or send its text in `config.source`",
        )),
    }
}

/// Refuses a tool whose signature or packages are not usable.
fn check_prepared(tool: &LocalTool) -> Result<(), RegistryEditError> {
    match &tool.prepared.problem {
        None => Ok(()),
        Some(problem) => Err(invalid_at(
            tool.place.below("config"),
            problem.clone(),
            "fix the script or its requirements, or write `input_schema` as a JSON Schema",
        )),
    }
}

fn unwritten(dir: &Path, error: &std::io::Error) -> StoreError {
    StoreError::Write { what: dir.display().to_string(), cause: error.to_string() }
}

/// Changed settings that are read only at the start.
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

fn answer(pending: Vec<PendingEdit>, error: impl Fn() -> Result<EditOutcome, RegistryEditError>) {
    for PendingEdit { answer, .. } in pending {
        // Fails only if the caller is gone.
        let _ = answer.send(error());
    }
}
