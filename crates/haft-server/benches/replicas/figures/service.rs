//! The services that are measured: `haft serve` with one tool behind a pipe, in file mode or on a database.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use serde_json::json;
use testkit::postgres::TestDatabase;
use testkit::{Program, Running, Workspace};
use tokio::time::sleep;

use super::http::Connection;
use super::{BACKEND, IN_FLIGHT};
use crate::Failure;
use crate::proxy::{Proxy, Upstream};

/// Longest time until a service serves, knows the others, or has shipped its log.
const READY_MAX: Duration = Duration::from_mins(3);
/// Interval between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A running `haft serve`. Ends when it is dropped.
pub(super) struct Service {
    pub(super) port: u16,
    pub(super) key: String,
    process: Running,
    workspace: Workspace,
}

/// Replicas on one database, each behind a proxy of its own.
pub(super) struct Replicas {
    pub(super) database: TestDatabase,
    pub(super) proxies: Vec<Proxy>,
    pub(super) services: Vec<Service>,
}

/// The shared state of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sharing {
    /// Everything, the log included.
    All,
    /// Registry and keys; the log stays in files.
    NoLog,
}

impl Service {
    /// Starts a service in file mode.
    pub(super) async fn of_files() -> Result<Self, Failure> {
        Self::start("", "{dir: ./logs}", None).await
    }

    /// `shared` are the lines of the configuration that make it a replica, with PORT for its port.
    async fn start(shared: &str, log: &str, key: Option<String>) -> Result<Self, Failure> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let shared = shared.replace("PORT", &port.to_string());
        let backend = json!({
            "command": std::env::current_exe()?,
            "args": ["figures", BACKEND],
            "on_connect_failure": "exit",
            "tool_prefix": "none",
            "default_tool_config": {"max_instances": IN_FLIGHT, "timeout": "30s"},
        });
        let config = format!(
            "{shared}defaults: {{max_concurrent: {IN_FLIGHT}}}\nservers: {}\n\
             builtin: {{enabled: false, request_human_input: {{}}}}\n\
             log: {log}\napi: {{listen: \"127.0.0.1:{port}\", drain_delay: 0s}}\n",
            json!({"behind": backend}),
        );
        let workspace = Workspace::with(&[("haft.yaml", config.as_str())]);
        fs::create_dir_all(workspace.path().join("tools"))?;
        let program = |args: &[&str]| {
            Program::new(env!("CARGO_BIN_EXE_haft"), &workspace).with_builtins().args(args)
        };
        let key = if let Some(key) = key {
            key
        } else {
            let created = program(&["keys", "create", "--scope", "admin", "--name", "bench"]).run();
            let key = created.stdout.split_whitespace().find(|it| it.starts_with("haft_"));
            key.ok_or(created.stderr)?.to_owned()
        };
        let process = program(&["serve"]).start();
        let service = Self { port, key, process, workspace };
        let ready = service.until("it serves", async || {
            let mut connection = Connection::open(port, &service.key).await.ok()?;
            connection.call().await.ok().map(drop)
        });
        ready.await?;
        Ok(service)
    }

    /// Waits for a condition.
    pub(super) async fn until<T>(
        &self,
        what: &str,
        probe: impl AsyncFn() -> Option<T>,
    ) -> Result<T, Failure> {
        let start = Instant::now();
        loop {
            if let Some(found) = probe().await {
                return Ok(found);
            }
            if start.elapsed() > READY_MAX {
                let stderr = self.process.stderr_so_far();
                return Err(format!("never happened: {what}\n{stderr}").into());
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// A connection to it.
    pub(super) async fn connect(&self) -> Result<Connection, Failure> {
        Connection::open(self.port, &self.key).await
    }

    /// The processor time of its threads so far, without the server behind it.
    pub(super) fn cpu(&self) -> Result<Duration, Failure> {
        let mut nanos = 0;
        for thread in fs::read_dir(format!("/proc/{}/task", self.process.id()))? {
            // A thread may end meanwhile.
            let text = fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
            nanos += text.split(' ').next().and_then(|it| it.parse::<u64>().ok()).unwrap_or(0);
        }
        Ok(Duration::from_nanos(nanos))
    }

    /// Number of entries in its log files.
    pub(super) fn entries(&self) -> Result<usize, Failure> {
        let mut lines = 0;
        for file in fs::read_dir(self.workspace.path().join("logs"))? {
            let path = file?.path();
            if path.extension().is_some_and(|extension| extension == "jsonl") {
                lines += fs::read_to_string(path)?.lines().count();
            }
        }
        Ok(lines)
    }
}

impl Replicas {
    /// Starts replicas on a database of their own, and waits until they know each other.
    pub(super) async fn start(count: usize, sharing: Sharing) -> Result<Self, Failure> {
        let database = testkit::postgres::database().ok_or("PostgreSQL is not installed")?;
        let upstream = SocketAddr::from((Ipv4Addr::LOCALHOST, database.port()));
        let (mut proxies, mut services) = (Vec::new(), Vec::<Service>::new());
        for _ in 0..count {
            let proxy = Proxy::start(Upstream::Postgres(upstream)).await?;
            let log = match sharing {
                Sharing::All => "{dir: ./logs, ship: shared}",
                Sharing::NoLog => "{dir: ./logs, ship: none}",
            };
            let shared = format!(
                "shared: {{url: \"{}\", advertise: \"http://127.0.0.1:PORT\"}}\n\
                 registry: {{store: shared, dir: ./tools}}\n",
                database.url_at(proxy.port)
            );
            let key = services.first().map(|first| first.key.clone());
            services.push(Service::start(&shared, log, key).await?);
            proxies.push(proxy);
        }
        for service in &services {
            let known = async || {
                let mut connection = service.connect().await.ok()?;
                let list =
                    connection.send("GET", "/api/v1/replicas", "").await.ok()?.json().ok()?;
                (list["replicas"].as_array()?.len() == count).then_some(())
            };
            service.until("the replicas know each other", known).await?;
        }
        Ok(Self { database, proxies, services })
    }

    /// Number of entries in the database.
    pub(super) fn rows(&self) -> Result<usize, Failure> {
        Ok(self.database.sql("select count(*) from haft.call").parse()?)
    }

    /// Waits until all entries are in the database.
    pub(super) async fn shipped(&self) -> Result<usize, Failure> {
        let mut entries = 0;
        for service in &self.services {
            entries += service.entries()?;
        }
        let all = async || (self.rows().ok()? >= entries).then_some(());
        self.services[0].until("the log is shipped", all).await?;
        Ok(entries)
    }
}
