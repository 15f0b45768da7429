//! A toolbox that changes while it runs: its files are followed, and its registry can be edited.
//!
//! Every change passes one queue, one after the other: the whole new configuration is checked, the
//! new state is built beside the old one, the registry is written, and then the new state takes the
//! old one's place in one step. Whatever fails on the way leaves everything as it was.

mod document;
mod edit;
mod folder;
mod permit;
mod stamp;
mod store;
mod watch;
mod worker;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haft_bounds::heavy;
use jiff::Timestamp;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::model::Origin;
use crate::config::{
    Config, ConfigError, ConfigFile, LoadOptions, Place, Problem, RegistryTexts, Severity,
};
use crate::runtime::{Runtime, StartError};
use document::Entries;
use worker::Order;

pub use document::{Document, entry_tag};
pub use edit::{Action, Condition, Edit, EditError, Edited, Happened};
pub use folder::FolderStore;
pub(crate) use permit::dry_run;
pub use store::{Documents, RegistryStore, Revision, StoreError, Stored};

/// How many changes may wait for their turn.
pub const WAITING_MAX: usize = 1024;

/// A toolbox that follows its files and its registry. Clones share it.
#[derive(Clone)]
pub struct Live {
    shared: Arc<Shared>,
    orders: mpsc::Sender<Order>,
}

struct Shared {
    runtime: Runtime,
    /// What the toolbox was started with.
    at_start: Arc<Config>,
    options: LoadOptions<'static>,
    store: Option<Arc<dyn RegistryStore>>,
    status: Mutex<LiveStatus>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// How following the files goes.
#[derive(Debug, Clone)]
pub struct LiveStatus {
    /// The registry's revision in use; nothing without a registry.
    pub revision: Option<Revision>,
    /// Since when the state in use is in use.
    pub since: Timestamp,
    /// Why the files as they are now are not in use.
    pub problem: Option<LoadProblem>,
    /// Settings that were changed and take effect at the next start only.
    pub waiting_for_restart: Vec<String>,
}

/// Why the files as they are now are not in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadProblem {
    /// Since when.
    pub since: Timestamp,
    /// What is wrong, in one text.
    pub text: String,
    /// What is wrong with the files, one by one, where it is that.
    pub problems: Vec<Problem>,
}

/// Why a reload was refused. The state before is still in use.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ReloadError {
    /// The files cannot be used.
    #[error("{0}")]
    Invalid(ConfigError),
    /// The toolbox would refuse to run like that.
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
    /// Follows the files that `runtime` was started with. A registry's folder, where one is
    /// configured, can then be edited. Nobody is asked for inputs any more: give what was answered
    /// as [`LoadOptions::inputs`].
    pub fn follow(runtime: Runtime, options: LoadOptions<'static>) -> Self {
        let folder = runtime.config().registry_dir.clone();
        let store = folder.map(|dir| Arc::new(FolderStore::new(dir.value)) as Arc<_>);
        Self::with_store(runtime, options, store)
    }

    /// Follows the files, with a registry that is kept anywhere. `runtime` was started with what
    /// the store says, as [`LoadOptions::registry`].
    pub fn with_store(
        runtime: Runtime,
        options: LoadOptions<'static>,
        store: Option<Arc<dyn RegistryStore>>,
    ) -> Self {
        let (orders, waiting) = mpsc::channel(WAITING_MAX);
        let status = LiveStatus {
            revision: None,
            since: Timestamp::now(),
            problem: None,
            waiting_for_restart: Vec::new(),
        };
        let shared = Arc::new(Shared {
            at_start: runtime.config(),
            runtime,
            options: LoadOptions { ask: None, ..options },
            store,
            status: Mutex::new(status),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        });
        shared.tasks.spawn(worker::run(Arc::clone(&shared), waiting));
        shared.tasks.spawn(watch::run(Arc::clone(&shared), orders.clone()));
        Self { shared, orders }
    }

    /// The toolbox itself.
    pub fn runtime(&self) -> &Runtime {
        &self.shared.runtime
    }

    /// How following the files goes.
    pub fn status(&self) -> LiveStatus {
        self.shared.status().clone()
    }

    /// Changes one entry of the registry. When this answers, the change is durable and in use.
    pub async fn edit(&self, edit: Edit) -> Result<Edited, EditError> {
        let (answer, answered) = oneshot::channel();
        let order = Order::Edit(edit, answer);
        self.orders.try_send(order).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => EditError::Busy,
            mpsc::error::TrySendError::Closed(_) => EditError::Stopping,
        })?;
        answered.await.unwrap_or(Err(EditError::Stopping))
    }

    /// What an entry of the registry says, with its tag. It may hold secrets.
    pub async fn entry(
        &self,
        document: Document,
        name: &str,
    ) -> Result<Option<(Box<RawValue>, String)>, EditError> {
        let Some(store) = &self.shared.store else { return Ok(None) };
        let Documents { tools, servers } = store.load().await?.documents;
        let text = match document {
            Document::Tools => tools,
            Document::Servers => servers,
        };
        let nodes_max = self.shared.runtime.config().limits.nodes_max();
        let parse = || Entries::parse(document, &text, nodes_max);
        let entries = heavy::in_place(text.len(), parse).map_err(|problem| EditError::Broken {
            file: document.file_name().to_owned(),
            problem,
        })?;
        Ok(entries.get(name).map(|entry| (entry.to_owned(), entry_tag(entry))))
    }

    /// Whether an entry in use comes from the registry, so that it can be edited.
    pub fn is_in_registry(&self, document: Document, name: &str) -> bool {
        let config = self.shared.runtime.config();
        let is_its = |place: &Place| config.is_registry_file(&place.file);
        self.shared.store.is_some()
            && match document {
                Document::Tools => {
                    config.local.iter().any(|it| it.definition.name == name && is_its(&it.place))
                }
                Document::Servers => {
                    config.servers.iter().any(|it| it.name == name && is_its(&it.place))
                }
            }
    }

    /// Loads the files again, whether they changed or not.
    pub async fn reload(&self) -> Result<(), ReloadError> {
        let (answer, answered) = oneshot::channel();
        if self.orders.send(Order::Reload(answer)).await.is_err() {
            return Err(ReloadError::Stopping);
        }
        answered.await.unwrap_or(Err(ReloadError::Stopping))
    }

    /// Stops following, when the change under way is done. The toolbox goes on.
    pub async fn stop(&self) {
        self.shared.stop.cancel();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }
}

impl Shared {
    fn status(&self) -> MutexGuard<'_, LiveStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a state is in use. Nothing is wrong with the files then.
    fn in_use(&self, revision: Option<Revision>) {
        let mut status = self.status();
        (status.revision, status.since, status.problem) = (revision, Timestamp::now(), None);
    }

    /// Notes which settings wait for the next start.
    fn note_waiting(&self, paths: Vec<String>) {
        let mut status = self.status();
        if !paths.is_empty() && status.waiting_for_restart != paths {
            tracing::warn!("takes effect at the next start only: {}", paths.join(", "));
        }
        status.waiting_for_restart = paths;
    }

    /// Notes why the files are not in use. True if that is news.
    fn not_in_use(&self, text: String, problems: Vec<Problem>) -> bool {
        let mut status = self.status();
        let is_news = status.problem.as_ref().is_none_or(|problem| problem.text != text);
        if is_news {
            status.problem = Some(LoadProblem { since: Timestamp::now(), text, problems });
        }
        is_news
    }

    /// The configuration with what the registry says.
    async fn load(&self, documents: Option<Documents>) -> Result<Config, ConfigError> {
        let dir = self.runtime.config().registry_dir.clone();
        let registry = documents.zip(dir).map(|(documents, dir)| RegistryTexts {
            dir: dir.value,
            tools: documents.tools,
            servers: documents.servers,
        });
        let options = LoadOptions { registry, ..self.options.clone() };
        let loaded = tokio::task::spawn_blocking(move || Config::load(&options)).await;
        let loaded = loaded.unwrap_or_else(|_| Err(ConfigError { problems: Vec::new() }))?;
        let mut problems = emptied(&self.runtime.config(), &loaded);
        problems.extend(self.moved(&loaded));
        if problems.is_empty() { Ok(loaded) } else { Err(ConfigError { problems }) }
    }
}

impl Shared {
    /// A registry that is somewhere else now: changes would go to the folder of the start.
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
            remedy: "put `registry.dir` back, or start Haft anew".to_owned(),
        })
    }
}

/// Files that said something and are empty now. Whoever writes a file anew begins with an empty one, and a full
/// disk ends with one: nobody means that everything is to go.
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
        remedy: "put its content back; to begin with nothing, start Haft anew".to_owned(),
    };
    is_emptied.map(problem).collect()
}
