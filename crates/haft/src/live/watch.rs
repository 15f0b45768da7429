//! Notices that the files, or the registry, say something else than before.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::Shared;
use super::stamp::{LOOK_EVERY, Watched};
use super::worker::{News, Order};
use crate::config::model::Endpoint;
use crate::config::{Config, SERVERS_FILE, TOOLS_FILE};

/// While the files cannot be used they are tried again after this many looks, changed or not: what was wrong
/// may have passed before anybody looked.
const LOOKS_PER_RETRY: u32 = 4;

pub(super) async fn run(shared: Arc<Shared>, orders: mpsc::Sender<Order>) {
    let stop = shared.stop.clone();
    tokio::select! {
        () = stop.cancelled() => {}
        () = watch_files(&shared, &orders) => {}
        () = watch_registry(&shared, &orders) => {}
    }
}

async fn watch_files(shared: &Shared, orders: &mpsc::Sender<Order>) {
    let mut looks: u32 = 0;
    loop {
        let config = shared.runtime.config();
        let mut files = Watched::new(files(shared, &config));
        // A new configuration may be made from other files.
        while Arc::ptr_eq(&config, &shared.runtime.config()) {
            tokio::time::sleep(LOOK_EVERY).await;
            looks = if shared.status().problem.is_some() { looks.wrapping_add(1) } else { 0 };
            let is_retry = looks > 0 && looks.is_multiple_of(LOOKS_PER_RETRY);
            if files.have_changed() || is_retry {
                tell(News::Files, orders).await;
            }
        }
    }
}

async fn watch_registry(shared: &Shared, orders: &mpsc::Sender<Order>) {
    let Some(store) = &shared.store else { return std::future::pending().await };
    loop {
        store.changed().await;
        tell(News::Registry, orders).await;
        // What cannot be read counts as changed at every look.
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Tells the queue, and waits until it has looked: then there is nothing to tell twice.
async fn tell(news: News, orders: &mpsc::Sender<Order>) {
    let (looked, has_looked) = oneshot::channel();
    if orders.send(Order::Look(news, looked)).await.is_ok() {
        // Gone without an answer means that everything is ending.
        let _ = has_looked.await;
    }
}

/// The files of a configuration but for its registry's, with what they said.
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
    read.filter(|(path, _)| !is_registrys(path)).chain(env_files).collect()
}
