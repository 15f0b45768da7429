//! Three replicas on a PostgreSQL with a synchronous standby, and a balancer in front. Each replica reaches the two servers
//! through proxies of its own, and the other replicas reach it through one more.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use testkit::postgres::{FailoverPair, Replication};
use testkit::{Program, Running, Workspace};

use crate::Failure;
use crate::balancer::Balancer;
use crate::client::{RunClock, Target};
use crate::health::{Health, Trouble};
use crate::proxy::{Fault, Proxy, Upstream};

/// Number of replicas.
pub(crate) const REPLICAS: usize = 3;
/// Longest time until a replica serves.
const START_MAX: Duration = Duration::from_secs(30);

/// The service as a whole. Everything ends when it is dropped.
pub(crate) struct Cluster {
    pub(crate) database: FailoverPair,
    pub(crate) balancer: Balancer,
    pub(crate) replicas: Vec<Replica>,
    pub(crate) health: Arc<Health>,
    haft: PathBuf,
    pub(crate) key: String,
}

/// One replica. Its port and folder stay when it is started again.
pub(crate) struct Replica {
    pub(crate) port: u16,
    /// In front of the two servers of the database.
    pub(crate) databases: [Proxy; 2],
    /// In front of this replica, for the other ones.
    peers: Proxy,
    workspace: Workspace,
    process: Mutex<Option<Running>>,
}

impl Cluster {
    /// Starts everything. `script` is the tool of the calls.
    pub(crate) async fn start(haft: &Path, script: &str) -> Result<Self, Failure> {
        let database = FailoverPair::start(Replication::Synchronous);
        let database = database.ok_or("PostgreSQL is not installed")?;
        let mut replicas = Vec::new();
        for _ in 0..REPLICAS {
            replicas.push(Replica::new(&database, script).await?);
        }
        let addresses = replicas.iter().map(|it| (Ipv4Addr::LOCALHOST, it.port).into()).collect();
        let balancer = Balancer::start(addresses).await?;
        let mut cluster = Self {
            database,
            balancer,
            replicas,
            haft: haft.to_owned(),
            health: Arc::new(Health::new(REPLICAS, RunClock::start())),
            key: String::new(),
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
        self.health.started(index, self.number_of(index)?);
        Ok(())
    }

    /// The number that a replica has in ids.
    fn number_of(&self, index: usize) -> Result<u16, Failure> {
        let port = self.replicas[index].peers.port;
        let sql = format!(
            "select number from haft.replica where address like '%:{port}' order by started desc limit 1"
        );
        Ok(self.database.sql(&sql).parse()?)
    }

    /// Kills a replica, which cannot prevent it.
    pub(crate) fn kill_replica(&self, index: usize) {
        self.health.begin(index, Trouble::Killed);
        drop(self.replicas[index].process.lock().take());
    }

    /// Suspends or resumes a replica.
    pub(crate) fn suspend_replica(&self, index: usize, is_suspended: bool) {
        if is_suspended {
            self.health.begin(index, Trouble::Suspended);
        }
        if let Some(process) = &*self.replicas[index].process.lock() {
            if is_suspended { process.suspend() } else { process.resume() }
        }
        if !is_suspended {
            self.health.end(index, Trouble::Suspended);
        }
    }

    /// Changes the behaviour of a replica's connections to the database.
    pub(crate) fn set_fault(&self, index: usize, fault: Fault) {
        if !matches!(fault, Fault::None | Fault::LoseNotifications) {
            self.health.begin(index, Trouble::Database);
        }
        self.replicas[index].databases.iter().for_each(|proxy| proxy.set(fault));
        if fault == Fault::None {
            self.health.end(index, Trouble::Database);
        }
    }

    /// Changes the behaviour of the connections from other replicas to one.
    pub(crate) fn set_peer_fault(&self, index: usize, fault: Fault) {
        if fault != Fault::None {
            self.health.begin(index, Trouble::Peers);
        }
        self.replicas[index].peers.set(fault);
        if fault == Fault::None {
            self.health.end(index, Trouble::Peers);
        }
    }

    /// Restarts the primary.
    pub(crate) async fn restart_database(&self, down: Duration) {
        self.without_database(async {
            tokio::task::block_in_place(|| self.database.stop_primary());
            tokio::time::sleep(down).await;
            tokio::task::block_in_place(|| self.database.start_primary());
        })
        .await;
    }

    /// Kills the primary and promotes its standby. Then the other server becomes the standby.
    pub(crate) async fn promote(&self, down: Duration) {
        self.without_database(async {
            tokio::task::block_in_place(|| self.database.kill_primary());
            tokio::time::sleep(down).await;
            tokio::task::block_in_place(|| self.database.promote());
        })
        .await;
        // The new primary acknowledges commits by itself until it has a standby, and is not killed before.
        tokio::task::block_in_place(|| self.database.attach_standby());
    }

    async fn without_database(&self, fault: impl Future<Output = ()>) {
        (0..REPLICAS).for_each(|index| self.health.begin(index, Trouble::Database));
        fault.await;
        (0..REPLICAS).for_each(|index| self.health.end(index, Trouble::Database));
    }

    /// Ends all replicas as an operator does. Returns the output of those that do not end well.
    pub(crate) fn shut_down(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let processes: Vec<_> = self.replicas.iter().map(|it| it.process.lock().take()).collect();
        processes.iter().flatten().for_each(Running::terminate);
        for (index, process) in processes.into_iter().enumerate() {
            let Some(process) = process else { continue };
            let finished = process.finish();
            if finished.code != 0 {
                let text =
                    format!("replica {index} ends with {}:\n{}", finished.code, finished.stderr);
                problems.push(text);
            }
        }
        problems
    }

    /// The folders of all replicas.
    pub(crate) fn folders(&self) -> Vec<&Path> {
        self.replicas.iter().map(|it| it.workspace.path()).collect()
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

impl Replica {
    async fn new(database: &FailoverPair, script: &str) -> Result<Self, Failure> {
        let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let [one, other] = database.ports();
        let databases = [
            Proxy::start(Upstream::Postgres(local(one))).await?,
            Proxy::start(Upstream::Postgres(local(other))).await?,
        ];
        let peers = Proxy::start(Upstream::Replica(local(port))).await?;
        let url = database.url_at(databases.each_ref().map(|proxy| proxy.port));
        let advertised = peers.port;
        let config = format!(
            "shared: {{url: \"{url}\", advertise: \"http://127.0.0.1:{advertised}\"}}\n\
             registry: {{store: shared, dir: ./tools}}\n\
             log: {{dir: ./log, ship: shared}}\n\
             api: {{listen: \"127.0.0.1:{port}\", drain_delay: 0s}}\n\
             builtin: {{enabled: false, request_human_input: {{}}}}\n"
        );
        let files = [("haft.yaml", config.as_str()), ("tools/record.py", script)];
        let workspace = Workspace::with(&files);
        Ok(Self { port, databases, peers, workspace, process: Mutex::default() })
    }

    fn program(&self, haft: &Path, args: &[&str]) -> Program {
        Program::new(haft, &self.workspace).args(args)
    }

    /// The standard error of the replica.
    pub(crate) fn stderr(&self) -> String {
        self.process.lock().as_ref().map(Running::stderr_so_far).unwrap_or_default()
    }
}
