//! Three replicas on one PostgreSQL, each behind a proxy of its own, and a balancer in front.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use testkit::postgres::TestDatabase;
use testkit::{Program, Running, Workspace};

use crate::Failure;
use crate::balancer::Balancer;
use crate::client::Target;
use crate::keys::Reachable;
use crate::proxy::{Fault, Proxy, Upstream};

/// Number of replicas.
pub(crate) const REPLICAS: usize = 3;
/// Longest time until a replica serves.
const START_MAX: Duration = Duration::from_secs(30);

/// The service as a whole. Everything ends when it is dropped.
pub(crate) struct Cluster {
    pub(crate) database: TestDatabase,
    pub(crate) balancer: Balancer,
    pub(crate) replicas: Vec<Replica>,
    haft: PathBuf,
    pub(crate) key: String,
    /// The time since which each replica reaches the database.
    connected: Mutex<Vec<Option<Instant>>>,
}

/// One replica. Its port and folder stay when it is started again.
pub(crate) struct Replica {
    pub(crate) port: u16,
    pub(crate) proxy: Proxy,
    workspace: Workspace,
    process: Mutex<Option<Running>>,
}

impl Cluster {
    /// Starts everything. `script` is the tool of the calls.
    pub(crate) async fn start(haft: &Path, script: &str) -> Result<Self, Failure> {
        let database = testkit::postgres::database().ok_or("PostgreSQL is not installed")?;
        let upstream = SocketAddr::from((Ipv4Addr::LOCALHOST, database.port()));
        let mut replicas = Vec::new();
        for _ in 0..REPLICAS {
            let proxy = Proxy::start(Upstream(upstream)).await?;
            replicas.push(Replica::new(proxy, &database, script)?);
        }
        let addresses = replicas.iter().map(|it| (Ipv4Addr::LOCALHOST, it.port).into()).collect();
        let balancer = Balancer::start(addresses).await?;
        let mut cluster = Self {
            database,
            balancer,
            replicas,
            haft: haft.to_owned(),
            key: String::new(),
            connected: Mutex::new(vec![None; REPLICAS]),
        };
        cluster.key = cluster.create_key()?;
        for index in 0..REPLICAS {
            cluster.run_replica(index).await?;
        }
        Ok(cluster)
    }

    /// The replicas as targets of requests.
    pub(crate) fn targets(&self) -> Vec<Target> {
        self.replicas.iter().map(|replica| Target::new(replica.port, &self.key)).collect()
    }

    /// The balancer as a target of requests.
    pub(crate) fn balanced(&self) -> Target {
        Target::new(self.balancer.port, &self.key)
    }

    /// Starts a replica and waits until it serves.
    pub(crate) async fn run_replica(&self, index: usize) -> Result<(), Failure> {
        let replica = &self.replicas[index];
        *replica.process.lock() = Some(replica.program(&self.haft, &["serve"]).start());
        let target = Target::new(replica.port, &self.key);
        let start = Instant::now();
        while !target.get("/tools").await.is_ok_and(|answer| answer.status.is_success()) {
            if start.elapsed() > START_MAX {
                return Err(format!("replica {index} does not serve:\n{}", replica.stderr()).into());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        self.set_connected(index, true);
        Ok(())
    }

    /// Kills a replica, which cannot prevent it.
    pub(crate) fn kill_replica(&self, index: usize) {
        self.set_connected(index, false);
        drop(self.replicas[index].process.lock().take());
    }

    /// Suspends or resumes a replica.
    pub(crate) fn suspend_replica(&self, index: usize, is_suspended: bool) {
        self.set_connected(index, !is_suspended);
        if let Some(process) = &*self.replicas[index].process.lock() {
            if is_suspended { process.suspend() } else { process.resume() }
        }
    }

    /// Changes the behaviour of a replica's connection to the database.
    pub(crate) fn set_fault(&self, index: usize, fault: Fault) {
        self.set_connected(index, matches!(fault, Fault::None | Fault::LoseNotifications));
        self.replicas[index].proxy.set(fault);
    }

    /// Restarts the database.
    pub(crate) async fn restart_database(&self, down: Duration) {
        (0..REPLICAS).for_each(|index| self.set_connected(index, false));
        self.database.stop();
        tokio::time::sleep(down).await;
        self.database.start();
        (0..REPLICAS).for_each(|index| self.set_connected(index, true));
    }

    fn set_connected(&self, index: usize, is_connected: bool) {
        self.connected.lock()[index] = is_connected.then(Instant::now);
    }

    fn create_key(&self) -> Result<String, Failure> {
        let replica = &self.replicas[0];
        let args = ["keys", "create", "--scope", "admin", "--name", "chaos"];
        let finished = replica.program(&self.haft, &args).run();
        if finished.code != 0 {
            return Err(format!("no key: {}", finished.stderr).into());
        }
        let words = finished.stdout.split_whitespace();
        let key = words.map(str::to_owned).find(|word| word.starts_with("haft_"));
        key.ok_or_else(|| format!("no key in `{}`", finished.stdout).into())
    }
}

impl Reachable for Cluster {
    fn is_connected_for(&self, replica: usize, time: Duration) -> bool {
        self.connected.lock()[replica].is_some_and(|since| since.elapsed() > time)
    }
}

impl Replica {
    fn new(proxy: Proxy, database: &TestDatabase, script: &str) -> Result<Self, Failure> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let url = database.url_at(proxy.port);
        let config = format!(
            "shared: {{url: \"{url}\", advertise: \"http://127.0.0.1:{port}\"}}\n\
             registry: {{store: shared, dir: ./tools}}\n\
             log: {{dir: ./log, ship: shared}}\n\
             api: {{listen: \"127.0.0.1:{port}\"}}\n"
        );
        let files = [("haft.yaml", config.as_str()), ("tools/record.py", script)];
        Ok(Self { port, proxy, workspace: Workspace::with(&files), process: Mutex::default() })
    }

    fn program(&self, haft: &Path, args: &[&str]) -> Program {
        Program::new(haft, &self.workspace).args(args)
    }

    /// The standard error of the replica.
    pub(crate) fn stderr(&self) -> String {
        self.process.lock().as_ref().map(Running::stderr_so_far).unwrap_or_default()
    }
}
