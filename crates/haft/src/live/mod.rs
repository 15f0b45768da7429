//! A runtime that follows its files and accepts edits of its registry.
//!
//! Every change passes one queue: the whole new configuration is checked, the new state is built
//! beside the old one, the registry is written, and the new state replaces the old one in one step.
//! A failure at any step leaves everything unchanged.

mod document;
mod edit;
mod fingerprint;
mod folder;
mod permit;
mod refresh;
mod store;
mod upload;
mod watch;
mod worker;

use std::sync::Arc;

use haft_bounds::heavy;
use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::choices::StoreKind;
use crate::config::model::Origin;
use crate::config::{
    Config, ConfigError, ConfigFile, EntryCache, LoadOptions, Place, Problem, RegistryTexts,
    Severity,
};
use crate::runtime::{Runtime, StartError};
use document::{Entries, ParsedTools};
use refresh::RegistryRefresher;
use worker::WorkItem;

pub use document::{RegistryDocument, entry_tag};
pub use edit::{Action, Condition, Edit, EditEffect, EditOutcome, RegistryEditError};
pub use folder::FolderStore;
pub(crate) use permit::dry_run;
pub use store::{Documents, RegistryStore, Revision, StoreError, Stored};

/// Maximum number of queued changes.
pub const WAITING_MAX: usize = 1024;

/// A runtime that follows its files and its registry. Clones share it.
#[derive(Clone)]
pub struct Live {
    shared: Arc<Shared>,
    queue: mpsc::Sender<WorkItem>,
    refresher: Option<Arc<RegistryRefresher>>,
}

struct Shared {
    runtime: Runtime,
    /// The configuration at the start.
    at_start: Arc<Config>,
    options: LoadOptions<'static>,
    store: Option<Arc<dyn RegistryStore>>,
    status: Mutex<LiveStatus>,
    parsed_tools: Mutex<ParsedTools>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// The status of following the files.
#[derive(Debug, Clone)]
pub struct LiveStatus {
    /// The registry's revision in use; `None` without a registry.
    pub revision: Option<Revision>,
    /// The time at which the current state was published.
    pub since: Timestamp,
    /// The reason why the current files are not in use.
    pub problem: Option<LoadProblem>,
    /// Changed settings that take effect at the next start only.
    pub waiting_for_restart: Vec<String>,
}

/// The reason why the current files are not in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadProblem {
    /// The time of the first failure.
    pub since: Timestamp,
    /// The problem, in one text.
    pub text: String,
    /// The problems of the files, if the files are invalid.
    pub problems: Vec<Problem>,
}

/// Reasons why a reload is refused. The previous state stays in use.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ReloadError {
    /// The files are invalid.
    #[error("{0}")]
    Invalid(ConfigError),
    /// The toolbox cannot start with them.
    #[error("{0}")]
    Refused(Arc<StartError>),
    /// The registry cannot be read.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The toolbox is shutting down.
    #[error("Haft is shutting down")]
    Stopping,
}

impl Live {
    /// Follows the files that `runtime` was started with, and accepts edits of the registry folder,
    /// if configured. Inputs are no longer prompted for: pass the answers as
    /// [`LoadOptions::inputs`].
    pub fn follow(runtime: Runtime, options: LoadOptions<'static>) -> Self {
        let config = runtime.config();
        // The folder of a registry that is not in files holds scripts only.
        let is_of_files = config.registry_store.value == StoreKind::Files;
        let folder = config.registry_dir.clone().filter(|_| is_of_files);
        let store = folder.map(|dir| Arc::new(FolderStore::new(dir.value)) as Arc<_>);
        Self::with_store(runtime, options, store)
    }

    /// Follows the files, with a registry in any store. `runtime` was started with the contents of
    /// the store, as [`LoadOptions::registry`].
    pub fn with_store(
        runtime: Runtime,
        options: LoadOptions<'static>,
        store: Option<Arc<dyn RegistryStore>>,
    ) -> Self {
        let (queue, waiting) = mpsc::channel(WAITING_MAX);
        let status = LiveStatus {
            revision: None,
            since: Timestamp::now(),
            problem: None,
            waiting_for_restart: Vec::new(),
        };
        let shared = Arc::new(Shared {
            at_start: runtime.config(),
            runtime,
            options: LoadOptions { ask: None, entries: Some(EntryCache::default()), ..options },
            store,
            status: Mutex::new(status),
            parsed_tools: Mutex::default(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        });
        shared.tasks.spawn(worker::run(Arc::clone(&shared), waiting));
        shared.tasks.spawn(watch::run(Arc::clone(&shared), queue.clone()));
        let is_shared = shared.store.as_ref().is_some_and(|store| store.is_shared());
        let refresher = is_shared.then(|| Arc::new(RegistryRefresher::new(queue.clone())));
        if let Some(refresher) = &refresher {
            let refresher = Arc::clone(refresher);
            shared.runtime.refresh_unknown_with(move || {
                let refresher = Arc::clone(&refresher);
                Box::pin(async move { refresher.refresh().await })
            });
        }
        Self { shared, queue, refresher }
    }

    /// The runtime.
    pub fn runtime(&self) -> &Runtime {
        &self.shared.runtime
    }

    /// The status of following the files.
    pub fn status(&self) -> LiveStatus {
        self.shared.status().clone()
    }

    /// Changes one entry of the registry. On success the change is durable and in use.
    pub async fn edit(&self, edit: Edit) -> Result<EditOutcome, RegistryEditError> {
        let (answer, answered) = oneshot::channel();
        let item = WorkItem::Edit(edit, answer);
        self.queue.try_send(item).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => RegistryEditError::Busy,
            mpsc::error::TrySendError::Closed(_) => RegistryEditError::Stopping,
        })?;
        answered.await.unwrap_or(Err(RegistryEditError::Stopping))
    }

    /// Waits until the registry in use has every change that was made before, if other services edit it too.
    pub async fn refresh_registry(&self) {
        if let Some(refresher) = &self.refresher {
            refresher.refresh().await;
        }
    }

    /// The text of a registry entry, with its tag. It may hold secrets.
    pub async fn entry(
        &self,
        document: RegistryDocument,
        name: &str,
    ) -> Result<Option<(Box<RawValue>, String)>, RegistryEditError> {
        let Some(store) = &self.shared.store else { return Ok(None) };
        let Documents { tools, servers } = store.load().await?.documents;
        let text = match document {
            RegistryDocument::Tools => tools,
            RegistryDocument::Servers => servers,
        };
        let nodes_max = self.shared.runtime.config().limits.nodes_max();
        let tagged =
            |entries: &Entries| entries.get(name).map(|entry| (entry.to_owned(), entry_tag(entry)));
        let find = || match document {
            RegistryDocument::Tools => {
                self.shared.parsed_tools.lock().of(&text, nodes_max).map(|entries| tagged(entries))
            }
            RegistryDocument::Servers => {
                Entries::parse(document, &text, nodes_max).map(|entries| tagged(&entries))
            }
        };
        heavy::in_place(text.len(), find).map_err(|problem| RegistryEditError::Broken {
            file: document.file_name().to_owned(),
            problem,
        })
    }

    /// Returns true if an entry in use comes from the registry and can be edited.
    pub fn is_in_registry(&self, document: RegistryDocument, name: &str) -> bool {
        let config = self.shared.runtime.config();
        let is_its = |place: &Place| config.is_registry_file(&place.file);
        self.shared.store.is_some()
            && match document {
                RegistryDocument::Tools => {
                    config.local.iter().any(|it| it.definition.name == name && is_its(&it.place))
                }
                RegistryDocument::Servers => {
                    config.servers.iter().any(|it| it.name == name && is_its(&it.place))
                }
            }
    }

    /// Reloads the files, changed or not.
    pub async fn reload(&self) -> Result<(), ReloadError> {
        let (answer, answered) = oneshot::channel();
        if self.queue.send(WorkItem::Reload(answer)).await.is_err() {
            return Err(ReloadError::Stopping);
        }
        answered.await.unwrap_or(Err(ReloadError::Stopping))
    }

    /// Stops following, after the current change. The runtime keeps running.
    pub async fn stop(&self) {
        self.shared.stop.cancel();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }
}

impl Shared {
    fn status(&self) -> MutexGuard<'_, LiveStatus> {
        self.status.lock()
    }

    /// Records that a state is in use, so the files have no problem.
    fn in_use(&self, revision: Option<Revision>) {
        let mut status = self.status();
        (status.revision, status.since, status.problem) = (revision, Timestamp::now(), None);
    }

    /// Records the settings that wait for the next start.
    fn note_waiting(&self, paths: Vec<String>) {
        let mut status = self.status();
        if !paths.is_empty() && status.waiting_for_restart != paths {
            tracing::warn!("takes effect at the next start only: {}", paths.join(", "));
        }
        status.waiting_for_restart = paths;
    }

    /// Records why the files are not in use. Returns true if the reason is new.
    fn not_in_use(&self, text: String, problems: Vec<Problem>) -> bool {
        let mut status = self.status();
        let is_news = status.problem.as_ref().is_none_or(|problem| problem.text != text);
        if is_news {
            status.problem = Some(LoadProblem { since: Timestamp::now(), text, problems });
        }
        is_news
    }

    /// Loads the configuration with the given registry documents.
    async fn load(&self, documents: Option<Documents>) -> Result<Config, ConfigError> {
        let dir = self.runtime.config().registry_dir.clone();
        let registry = documents.zip(dir).map(|(documents, dir)| RegistryTexts {
            dir: dir.value,
            tools: documents.tools,
            servers: documents.servers,
        });
        let mut options = self.options.clone();
        options.registry = registry.or(options.registry);
        let loaded = tokio::task::spawn_blocking(move || Config::load(&options)).await;
        let loaded = loaded.unwrap_or_else(|_| Err(ConfigError { problems: Vec::new() }))?;
        let mut problems = emptied(&self.runtime.config(), &loaded);
        problems.extend(self.moved(&loaded));
        problems.extend(unlocked(&self.runtime.config(), &loaded));
        if problems.is_empty() { Ok(loaded) } else { Err(ConfigError { problems }) }
    }
}

impl Shared {
    /// Detects a moved registry: changes would go to the folder of the start.
    fn moved(&self, new: &Config) -> Option<Problem> {
        let dir = |config: &Config| config.registry_dir.as_ref().map(|dir| dir.value.clone());
        if dir(&self.at_start) == dir(new) {
            return None;
        }
        let place = new.registry_dir.as_ref().and_then(|dir| match &dir.origin {
            Origin::Explicit(place) => Some(place.clone()),
            _ => None,
        });
        let file = new.files.first().map(|file| Arc::clone(&file.name)).unwrap_or_default();
        Some(Problem {
            severity: Severity::Error,
            place: place.unwrap_or_else(|| Place::whole(file)),
            problem: "the registry is another than at the start".to_owned(),
            remedy: "put `registry.dir` back, or restart Haft".into(),
        })
    }
}

/// Detects a lock file that is gone. An editor may replace it in two steps, and nothing is unlocked by accident.
fn unlocked(old: &Config, new: &Config) -> Option<Problem> {
    let is_gone = old.lock.loaded.is_some() && new.lock.loaded.is_none();
    is_gone.then(|| Problem {
        severity: Severity::Error,
        place: Place::whole(old.lock.path.display().to_string()),
        problem: "the lock file is gone, and it was there when it was last used".to_owned(),
        remedy: "put it back; to work without one, restart Haft".into(),
    })
}

/// Detects files that became empty. An editor truncates a file before it writes, and a full disk
/// leaves an empty one, so an empty file does not mean that everything was removed.
fn emptied(old: &Config, new: &Config) -> Vec<Problem> {
    let nothing: [u8; 32] = Sha256::digest(b"").into();
    let had_text = |file: &&ConfigFile| {
        old.files.iter().any(|before| before.path == file.path && before.digest != nothing)
    };
    let is_emptied = new.files.iter().filter(|file| file.digest == nothing).filter(had_text);
    let problem = |file: &ConfigFile| Problem {
        severity: Severity::Error,
        place: Place::whole(Arc::clone(&file.name)),
        problem: "the file is empty, and it was not when it was last used".to_owned(),
        remedy: "put its content back; to begin with nothing, restart Haft".into(),
    };
    is_emptied.map(problem).collect()
}
