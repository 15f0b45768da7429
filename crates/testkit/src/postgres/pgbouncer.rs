//! PgBouncer in transaction mode: statements of one client may run on any connection to the database.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::{PASSWORD, TestDatabase, free_port, skip};

const PROGRAM: &str = "/usr/sbin/pgbouncer";
const START_MAX: Duration = Duration::from_secs(10);

/// A running PgBouncer in front of one database. Ends when it is dropped.
#[derive(Debug)]
pub struct PgBouncer {
    /// Its port on 127.0.0.1.
    pub port: u16,
    child: Child,
    folder: PathBuf,
}

impl PgBouncer {
    /// Starts one, or reports that it is not installed and returns `None`: the test is skipped.
    pub fn start(database: &TestDatabase) -> Option<Self> {
        if !Path::new(PROGRAM).is_file() {
            skip("PgBouncer", "pgbouncer");
            return None;
        }
        let port = free_port();
        let (name, upstream) = (&database.name, database.port());
        // Below the cluster's folder, so that it is removed with it even if the test is killed.
        let folder = database.cluster.folder.join(format!("pgbouncer-{port}"));
        fs::create_dir(&folder).expect("a folder");
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={upstream}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = plain\nauth_file = users\n\
             pool_mode = transaction\ndefault_pool_size = 3\nserver_reset_query =\n"
        );
        fs::write(folder.join("settings"), settings).expect("its settings");
        fs::write(folder.join("users"), format!("\"{name}\" \"{PASSWORD}\"\n")).expect("its users");
        let user = database.cluster.user;
        for path in [folder.clone(), folder.join("settings"), folder.join("users")] {
            chown(path, user, user).expect("its owner");
        }
        let mut command = Command::new(PROGRAM);
        command.arg("settings").current_dir(&folder).env_clear();
        if let Some(user) = user {
            use std::os::unix::process::CommandExt as _;
            command.uid(user).gid(user);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("PgBouncer");
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(start.elapsed() < START_MAX, "PgBouncer does not start");
            sleep(Duration::from_millis(20));
        }
        Some(Self { port, child, folder })
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        // Both fail if it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
