//! A load test: hostile clients and servers beside honest calls, against the real binary.
//!
//! Honest calls start at a fixed rate, whatever becomes of earlier ones, and each latency counts from the
//! time at which its call was due. A service that stalls therefore shows in every call of the stall.

mod bodies;
mod clients;
mod honest;
mod http;
mod log;
mod report;
mod servers;
mod service;
mod tally;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::Random;
use clients::{Attacker, CLIENT_KINDS};
use service::Service;
use tally::Tally;

pub use report::{Limits, Report};

/// Interval between checks of memory and log.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A log beyond this ends the run early: the machine's disk is not part of the test.
const LOG_BYTES_MAX: u64 = 8 << 30;
/// The threads that send hostile traffic.
const HOSTILE_THREADS: usize = 2;

/// Settings of the load test.
#[derive(Debug, Clone)]
pub struct Options {
    /// Length of the run.
    pub duration: Duration,
    /// Number of hostile clients; the kinds take turns.
    pub clients: usize,
    /// Honest calls started per second.
    pub calls_per_second: u32,
    /// Seed of the random choices.
    pub seed: u64,
    /// Only the kinds with these names, of clients and servers; all if empty.
    pub only: Vec<String>,
}

impl Default for Options {
    /// The load at full length.
    fn default() -> Self {
        Self {
            duration: Duration::from_mins(5),
            clients: 50,
            calls_per_second: 100,
            seed: 1,
            only: Vec::new(),
        }
    }
}

impl Options {
    fn wants(&self, kind: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|wanted| wanted == kind)
    }

    /// The names that [`Options::only`] takes.
    pub fn kinds() -> Vec<&'static str> {
        let clients = CLIENT_KINDS.iter().map(|kind| kind.name());
        clients.chain(servers::KINDS.iter().map(|kind| kind.name)).collect()
    }
}

/// Starts `haft`, puts it under load and ends it.
pub fn run(haft: &Path, options: &Options) -> Report {
    let service = Service::start(haft);
    let tallies = tallies(options);
    let hostile = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(HOSTILE_THREADS)
        .enable_all()
        .build()
        .expect("a runtime");
    let until = Instant::now() + options.duration;
    let attacks = hostile.spawn(attack(&service, options, &tallies));
    // A thread of its own: what hostile clients do to this process must not count as the service's latency.
    let is_over = Arc::new(AtomicBool::new(false));
    let honest = {
        let (address, rate, is_over) =
            (service.address(), options.calls_per_second, Arc::clone(&is_over));
        std::thread::spawn(move || honest::run(&address, rate, &is_over))
    };
    let stopped_early = watch(&service, until);
    is_over.store(true, Ordering::Relaxed);
    let honest = honest.join().expect("the honest clients end");
    attacks.abort();
    hostile.shutdown_timeout(LOOK_EVERY);
    let memory_peak = service.memory_peak();
    let ended = service.end();
    Report { options: options.clone(), honest, tallies, memory_peak, ended, stopped_early }
}

/// A tally for each kind that takes part, with the number of its clients.
fn tallies(options: &Options) -> Vec<Arc<Tally>> {
    let clients = CLIENT_KINDS.iter().map(|kind| kind.name()).filter(|name| options.wants(name));
    let mut tallies: Vec<Arc<Tally>> = clients.map(|name| Arc::new(Tally::of(name))).collect();
    let kinds = tallies.len();
    for (at, tally) in tallies.iter().enumerate() {
        // The first kinds take what is left over.
        tally.set_clients((options.clients + kinds - 1 - at) / kinds);
    }
    let servers = servers::KINDS.iter().map(|kind| kind.name).filter(|name| options.wants(name));
    tallies.extend(servers.map(|name| Arc::new(Tally::of(name))));
    tallies
}

/// Every hostile client, and a caller for every hostile tool.
fn attack(
    service: &Service,
    options: &Options,
    tallies: &[Arc<Tally>],
) -> impl Future<Output = ()> + Send + use<> {
    let mut random = Random::new(options.seed);
    let bodies = Arc::new(bodies::Bodies::new());
    let mut attackers = Vec::new();
    let find = |name: &str| tallies.iter().find(|tally| tally.name == name).cloned();
    let mut number = 0_u8;
    for kind in CLIENT_KINDS {
        let Some(tally) = find(kind.name()) else { continue };
        for _ in 0..tally.clients() {
            number = number.wrapping_add(1);
            let (tally, bodies) = (Arc::clone(&tally), Arc::clone(&bodies));
            let attacker = Attacker::new(service, number, random.fork(), tally, bodies);
            attackers.push((kind, attacker));
        }
    }
    let callers: Vec<_> = servers::KINDS
        .iter()
        .filter_map(|kind| {
            number = number.wrapping_add(1);
            let bodies = Arc::clone(&bodies);
            let tally = find(kind.name)?;
            Some((kind, Attacker::new(service, number, random.fork(), tally, bodies)))
        })
        .collect();
    async move {
        let mut tasks = JoinSet::new();
        for (kind, attacker) in attackers {
            tasks.spawn(clients::run(kind, attacker));
        }
        for (kind, attacker) in callers {
            tasks.spawn(servers::call(kind, attacker));
        }
        // They never end by themselves.
        tasks.join_all().await;
    }
}

/// Waits for the end. Returns why it came early, if it did.
fn watch(service: &Service, until: Instant) -> Option<String> {
    while Instant::now() < until {
        std::thread::sleep(LOOK_EVERY.min(until.saturating_duration_since(Instant::now())));
        if !service.is_running() {
            return Some("the service ended".to_owned());
        }
        let bytes = service.log_bytes();
        if bytes > LOG_BYTES_MAX {
            return Some(format!("the log has {} MB", bytes >> 20));
        }
    }
    None
}
