//! Watches the files and the registry for changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::Shared;
use super::fingerprint::{POLL_INTERVAL, WatchedFiles};
use super::worker::{ChangeSource, WorkItem};
use crate::config::model::Endpoint;
use crate::config::{Config, SERVERS_FILE, TOOLS_FILE};

/// Invalid files are retried after this many polls, changed or not: the cause may be outside the
/// files.
const POLLS_PER_RETRY: u32 = 4;

pub(super) async fn run(shared: Arc<Shared>, queue: mpsc::Sender<WorkItem>) {
    let stop = shared.stop.clone();
    tokio::select! {
        () = stop.cancelled() => {}
        () = watch_files(&shared, &queue) => {}
        () = watch_registry(&shared, &queue) => {}
    }
}

async fn watch_files(shared: &Shared, queue: &mpsc::Sender<WorkItem>) {
    let mut looks: u32 = 0;
    loop {
        let config = shared.runtime.config();
        let mut files = WatchedFiles::new(files(shared, &config));
        // A lock file that was not there is noticed once; an invalid one is retried like any other file.
        let mut is_lock_new = config.lock.loaded.is_none();
        // A new configuration may consist of other files.
        while Arc::ptr_eq(&config, &shared.runtime.config()) {
            tokio::time::sleep(POLL_INTERVAL).await;
            looks = if shared.status().problem.is_some() { looks.wrapping_add(1) } else { 0 };
            let is_retry = looks > 0 && looks.is_multiple_of(POLLS_PER_RETRY);
            let has_lock = is_lock_new && config.lock.path.exists();
            is_lock_new &= !has_lock;
            if files.have_changed() || is_retry || has_lock {
                notify(ChangeSource::Files, queue).await;
            }
        }
    }
}

async fn watch_registry(shared: &Shared, queue: &mpsc::Sender<WorkItem>) {
    let Some(store) = &shared.store else { return std::future::pending().await };
    loop {
        store.changed().await;
        notify(ChangeSource::Registry, queue).await;
        // An unreadable file counts as changed at every poll.
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Notifies the queue and waits until it has checked, so that a change is not reported twice.
async fn notify(source: ChangeSource, queue: &mpsc::Sender<WorkItem>) {
    let (looked, has_looked) = oneshot::channel();
    if queue.send(WorkItem::CheckForChanges(source, looked)).await.is_ok() {
        // A closed channel means shutdown.
        let _ = has_looked.await;
    }
}

/// The files of a configuration except those of its registry, with their digests.
fn files(shared: &Shared, config: &Config) -> Vec<(PathBuf, Option<[u8; 32]>)> {
    let registry = config.registry_dir.as_ref().filter(|_| shared.store.is_some());
    let is_registrys = |path: &PathBuf| {
        let is_in = |folder: &Path| {
            [TOOLS_FILE, SERVERS_FILE].iter().any(|name| *path == folder.join(name))
        };
        registry.is_some_and(|registry| is_in(&registry.value))
    };
    let read = config.files.iter().map(|file| (file.path.clone(), Some(file.digest)));
    let env_files = config.servers.iter().filter_map(|server| match &server.endpoint {
        Endpoint::Stdio(stdio) => Some((stdio.env_file.clone()?, None)),
        Endpoint::Http(_) | Endpoint::Sse(_) | Endpoint::Websocket(_) => None,
    });
    let lock = config.lock.loaded.iter().map(|it| (config.lock.path.clone(), Some(it.digest)));
    read.filter(|(path, _)| !is_registrys(path)).chain(env_files).chain(lock).collect()
}
