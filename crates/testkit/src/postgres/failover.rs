//! A primary with a standby, which takes its place when it dies.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};

use super::{PASSWORD, Postgres, SUPERUSER, checked, find_programs, free_port, skip};

/// The user and the database of the tests.
const NAME: &str = "haft";
/// Longest wait for a server, a standby or the end of a process.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// The time at which a commit is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replication {
    /// After the standby has it: a promotion loses nothing.
    Synchronous,
    /// Before: a promotion may lose it.
    Asynchronous,
}

/// Two servers. They end with the process.
#[derive(Debug)]
pub struct FailoverPair {
    nodes: [Postgres; 2],
    replication: Replication,
    primary: Mutex<usize>,
}

impl FailoverPair {
    /// Starts both, or reports that PostgreSQL is not installed and returns `None`: the test is skipped.
    pub fn start(replication: Replication) -> Option<Self> {
        let Some(programs) = find_programs() else {
            skip("PostgreSQL", "postgresql");
            return None;
        };
        let primary = Postgres::start(programs.clone());
        primary.sql("postgres", &format!("create role {NAME} login password '{PASSWORD}'"));
        primary.sql("postgres", &format!("create database {NAME} owner {NAME}"));
        let mut standby = Postgres::empty(programs);
        standby.port = free_port();
        let pair = Self { nodes: [primary, standby], replication, primary: Mutex::new(0) };
        pair.attach_standby();
        Some(pair)
    }

    /// The address of the database with both hosts, at other ports if there are proxies.
    pub fn url_at(&self, ports: [u16; 2]) -> String {
        let [one, other] = ports;
        format!(
            "postgres://{NAME}:{PASSWORD}@127.0.0.1:{one},127.0.0.1:{other}/{NAME}?target_session_attrs=read-write"
        )
    }

    /// The address of the database with both hosts.
    pub fn url(&self) -> String {
        self.url_at(self.ports())
    }

    /// The ports of both servers.
    pub fn ports(&self) -> [u16; 2] {
        self.nodes.each_ref().map(|node| node.port)
    }

    /// Runs SQL at the primary as the superuser.
    pub fn sql(&self, sql: &str) -> String {
        self.nodes[*self.primary.lock()].sql(NAME, sql)
    }

    /// Stops and starts the primary, as a crash does.
    pub fn stop_primary(&self) {
        self.node().control(&["-m", "immediate", "stop"]).expect("the primary stops");
    }

    /// Starts the primary again after [`stop_primary`](Self::stop_primary).
    pub fn start_primary(&self) {
        self.node().run(self.node().port).expect("the primary starts again");
    }

    /// Kills the primary, which cannot prevent it, and waits until none of its processes answers.
    pub fn kill_primary(&self) {
        let pid = fs::read_to_string(self.node().folder.join("data/postmaster.pid"));
        let pid = pid.expect("a running primary").lines().next().and_then(|it| it.parse().ok());
        let pid = pid.and_then(Pid::from_raw).expect("its process");
        kill_process(pid, Signal::KILL).expect("the primary is killed");
        until("its port is free", || {
            std::net::TcpStream::connect(("127.0.0.1", self.node().port)).is_err()
        });
    }

    /// Stops replication, so that later commits of an asynchronous primary are lost with it.
    pub fn detach_standby(&self) {
        let standby = &self.nodes[1 - *self.primary.lock()];
        // Without a source, what was received is replayed and nothing follows.
        standby.sql("postgres", "alter system set primary_conninfo = ''");
        standby.sql("postgres", "select pg_reload_conf()");
        until("the standby is detached", || {
            self.nodes[*self.primary.lock()]
                .sql("postgres", "select count(*) from pg_stat_replication")
                == "0"
        });
    }

    /// Makes the standby the primary.
    pub fn promote(&self) {
        let mut primary = self.primary.lock();
        *primary = 1 - *primary;
        let promoted = self.nodes[*primary].control(&["-w", "-t", "30", "promote"]);
        promoted.expect("the standby is promoted");
    }

    /// Replaces what is left of the other server by a standby of the primary.
    pub fn attach_standby(&self) {
        let (primary, standby) = (self.node(), &self.nodes[1 - *self.primary.lock()]);
        let data = standby.folder.join("data");
        // An old primary may still be ending.
        until("the old data are gone", || !data.exists() || fs::remove_dir_all(&data).is_ok());
        let mut backup = primary.command("pg_basebackup");
        backup.args(["-h", "127.0.0.1", "-p", &primary.port.to_string(), "-U", SUPERUSER]);
        backup.args(["-R", "-X", "stream", "-c", "fast", "--no-sync", "-D"]).arg(&data);
        checked(backup.env("PGPASSWORD", PASSWORD)).expect("a copy of the primary");
        standby.run(standby.port).expect("the standby starts");
        let state = match self.replication {
            Replication::Synchronous => {
                primary.sql("postgres", "alter system set synchronous_standby_names = '*'");
                primary.sql("postgres", "select pg_reload_conf()");
                "sync_state = 'sync'"
            }
            Replication::Asynchronous => "state = 'streaming'",
        };
        let sql = format!("select count(*) from pg_stat_replication where {state}");
        until("the standby follows", || primary.sql("postgres", &sql) == "1");
    }

    fn node(&self) -> &Postgres {
        &self.nodes[*self.primary.lock()]
    }
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < WAIT_MAX, "{what}: not within {WAIT_MAX:?}");
        sleep(Duration::from_millis(20));
    }
}
