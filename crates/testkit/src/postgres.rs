//! A real PostgreSQL in a temporary folder, one cluster for each test process, one database for each test.
//!
//! [`FailoverPair`] is a primary with a standby.
//!
//! Nothing stays behind, however the process ends: a small shell waits for the end of its standard input, which is a
//! pipe from this process, then stops the cluster and removes the folder.

mod failover;
mod pgbouncer;

use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;

pub use failover::{FailoverPair, Replication};
pub use pgbouncer::PgBouncer;

/// Where Debian's packages put the programs, beside the search path.
const DEBIAN: &str = "/usr/lib/postgresql";
/// A user and group without rights: PostgreSQL refuses to run as root.
const UNPRIVILEGED: u32 = 65534;
/// The superuser and its password.
const SUPERUSER: &str = "postgres";
/// The password of all users.
pub const PASSWORD: &str = "s3cret-of-tests";
/// Attempts to find a port that stays free until the cluster takes it.
const STARTS_MAX: usize = 5;
/// Set by `cargo xtask test`: without PostgreSQL its tests fail instead of being skipped.
const REQUIRED: &str = "HAFT_TEST_POSTGRES";

/// Stops the cluster and removes the folder when the test process is gone.
const KEEPER: &str =
    r#"read -r _; "$1/pg_ctl" -D "$2/data" -m immediate stop >/dev/null 2>&1; rm -rf "$2""#;

/// A cluster. It ends with the test process.
#[derive(Debug)]
pub struct Postgres {
    programs: PathBuf,
    folder: PathBuf,
    user: Option<u32>,
    port: u16,
    _keeper: Child,
}

/// A database of its own for one test, with a user of its own that owns it.
#[derive(Debug, Clone)]
pub struct TestDatabase {
    /// Its name, which is its user's too.
    pub name: String,
    /// Its address.
    pub url: String,
    cluster: &'static Postgres,
}

/// Creates a database, or reports that PostgreSQL is not installed and returns `None`: the test is skipped.
pub fn database() -> Option<TestDatabase> {
    static CLUSTER: OnceLock<Option<Postgres>> = OnceLock::new();
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let cluster = CLUSTER.get_or_init(|| find_programs().map(Postgres::start)).as_ref();
    let Some(cluster) = cluster else {
        skip("PostgreSQL", "postgresql");
        return None;
    };
    let name = format!("haft{}", NEXT.fetch_add(1, Ordering::Relaxed));
    cluster.sql("postgres", &format!("create role {name} login password '{PASSWORD}'"));
    cluster.sql("postgres", &format!("create database {name} owner {name}"));
    let url = format!("postgres://{name}:{PASSWORD}@127.0.0.1:{}/{name}", cluster.port);
    Some(TestDatabase { name, url, cluster })
}

/// Reports a skipped test, or fails it if nothing may be skipped.
fn skip(program: &str, package: &str) {
    let is_required = std::env::var_os(REQUIRED).is_some_and(|value| value == "required");
    assert!(!is_required, "{program} is not installed: `apt-get install {package}`");
    eprintln!("skipped: {program} is not installed");
}

impl TestDatabase {
    /// Runs SQL as the superuser. Returns the rows, columns separated by `|`.
    pub fn sql(&self, sql: &str) -> String {
        self.cluster.sql(&self.name, sql)
    }

    /// Runs SQL as the superuser in the background. Dropping it ends the session.
    pub fn background_sql(&self, sql: &str) -> BackgroundSql {
        let mut psql = self.cluster.psql(&self.name, sql);
        psql.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        BackgroundSql { client: psql.spawn().expect("psql"), database: self.clone() }
    }

    /// The cluster's port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.cluster.port
    }

    /// The cluster's data folder.
    pub fn data(&self) -> PathBuf {
        self.cluster.folder.join("data")
    }

    /// Writes a file into the data folder, owned by the user of the cluster.
    pub fn write(&self, name: &str, text: &str, mode: u32) {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.data().join(name);
        fs::write(&path, text).expect("a file of the cluster");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("its mode");
        chown(&path, self.cluster.user, self.cluster.user).expect("its owner");
    }

    /// Stops the cluster at once, as a crash does.
    pub fn stop(&self) {
        self.cluster.control(&["-m", "immediate", "stop"]).expect("the cluster stops");
    }

    /// Starts the cluster again, on the same port.
    pub fn start(&self) {
        self.cluster.run(self.cluster.port).expect("the cluster starts again");
    }

    /// The URL of another database of the cluster, which need not exist.
    pub fn url_of(&self, database: &str) -> String {
        let (server, _) = self.url.rsplit_once('/').expect("a path");
        format!("{server}/{database}")
    }

    /// The URL with another port, such as that of a proxy.
    pub fn url_at(&self, port: u16) -> String {
        self.url.replace(&format!(":{}/", self.cluster.port), &format!(":{port}/"))
    }
}

/// A statement in the background.
#[derive(Debug)]
pub struct BackgroundSql {
    client: Child,
    database: TestDatabase,
}

impl Drop for BackgroundSql {
    fn drop(&mut self) {
        // Both fail if it has ended.
        let _ = self.client.kill();
        let _ = self.client.wait();
        // A killed client is noticed at the end of its statement only.
        let end = "select pg_terminate_backend(pid) from pg_stat_activity \
                   where usename = 'postgres' and pid <> pg_backend_pid() and backend_type = 'client backend'";
        self.database.sql(end);
    }
}

impl Postgres {
    fn start(programs: PathBuf) -> Self {
        let mut cluster = Self::empty(programs);
        cluster.initialize();
        cluster.run_at_free_port();
        cluster
    }

    /// A cluster without data.
    fn empty(programs: PathBuf) -> Self {
        // Below the folder for temporary files as a whole: that of the test may be closed for other users.
        let folder = TempDir::with_prefix("haft-postgres-").expect("a temporary folder").keep();
        let user = (fs::metadata(&folder).expect("the folder").uid() == 0).then_some(UNPRIVILEGED);
        chown(&folder, user, user).expect("a folder of the cluster's user");
        let keeper = keeper(&programs, &folder, user);
        Self { programs, folder, user, port: 0, _keeper: keeper }
    }

    fn run_at_free_port(&mut self) {
        let mut last = None;
        for _ in 0..STARTS_MAX {
            let port = free_port();
            match self.run(port) {
                Ok(()) => {
                    self.port = port;
                    return;
                }
                Err(error) => last = Some(error),
            }
        }
        panic!("PostgreSQL does not start: {last:?}");
    }

    fn initialize(&self) {
        let password = self.folder.join("password");
        fs::write(&password, PASSWORD).expect("the file with the password");
        chown(&password, self.user, self.user).expect("its owner");
        let mut initdb = self.command("initdb");
        initdb.args(["--no-sync", "--encoding=UTF8", "--locale=C", "--auth=scram-sha-256"]);
        initdb.arg("--username").arg(SUPERUSER).arg("--pwfile").arg(password);
        checked(initdb.arg("-D").arg(self.folder.join("data"))).expect("a new cluster");
    }

    fn run(&self, port: u16) -> io::Result<()> {
        // Durability does not matter: the folder is removed anyway.
        let options = format!(
            "-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off \
             -c full_page_writes=off -c shared_buffers=16MB -c max_connections=60"
        );
        let log = self.folder.join("log");
        let log = log.to_str().expect("a path in UTF-8");
        self.control(&["-w", "-t", "30", "-l", log, "-o", &options, "start"])
    }

    fn control(&self, args: &[&str]) -> io::Result<()> {
        let mut command = self.command("pg_ctl");
        command.arg("-D").arg(self.folder.join("data")).args(args);
        // The cluster inherits the output, which must not keep the test open.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let status = command.status()?;
        if status.success() {
            return Ok(());
        }
        let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        Err(io::Error::other(format!("pg_ctl {args:?}: {status}\n{log}")))
    }

    fn sql(&self, database: &str, sql: &str) -> String {
        self.try_sql(database, sql).expect("a statement that works")
    }

    fn try_sql(&self, database: &str, sql: &str) -> io::Result<String> {
        let output = checked(&mut self.psql(database, sql))?;
        Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    }

    fn psql(&self, database: &str, sql: &str) -> Command {
        let mut psql = self.command("psql");
        let port = self.port.to_string();
        psql.args(["-h", "127.0.0.1", "-p", &port, "-U", SUPERUSER, "-d", database]);
        psql.args(["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-c", sql]);
        psql.env("PGPASSWORD", PASSWORD);
        psql
    }

    fn command(&self, program: &str) -> Command {
        command(&self.programs, &self.folder, self.user, program)
    }
}

fn keeper(programs: &Path, folder: &Path, user: Option<u32>) -> Child {
    let mut shell = Command::new("sh");
    shell.args(["-c", KEEPER, "keeper"]).arg(programs).arg(folder).current_dir("/");
    if let Some(user) = user {
        shell.uid(user).gid(user);
    }
    // A group of its own: what kills the test's group must leave it.
    shell.process_group(0);
    shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    shell.spawn().expect("a shell")
}

fn command(programs: &Path, folder: &Path, user: Option<u32>, program: &str) -> Command {
    let mut command = Command::new(programs.join(program));
    command.current_dir(folder).env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C");
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
    command
}

fn checked(command: &mut Command) -> io::Result<Output> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(io::Error::other(format!("{command:?}: {said}")))
}

/// The folder with `initdb` and the others: on the search path, otherwise the newest of Debian's.
fn find_programs() -> Option<PathBuf> {
    let on_path = std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect());
    let on_path: Vec<PathBuf> = on_path.unwrap_or_default();
    let mut versions: Vec<PathBuf> = fs::read_dir(DEBIAN)
        .into_iter()
        .flatten()
        .flatten()
        .map(|it| it.path().join("bin"))
        .collect();
    versions.sort();
    let folders = on_path.into_iter().chain(versions.into_iter().rev());
    let programs = ["initdb", "pg_ctl", "psql"];
    folders.into_iter().find(|folder| programs.iter().all(|name| folder.join(name).is_file()))
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").port()
}
