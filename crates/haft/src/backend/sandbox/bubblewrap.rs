//! `bwrap`: a view of the machine in which only the granted files exist, with its own processes and `/tmp`.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use haft_config::config::sandbox::SandboxNetwork;

use super::grants::{Access, Grant};
use super::own_program;

/// The program, looked up on `PATH`.
pub const PROGRAM: &str = "bwrap";

/// Kernel settings that the owner of the files can write, even without capabilities, if the program
/// runs as root. No namespace has its own copy.
const KERNEL: [&str; 3] = ["/proc/sys", "/proc/sysrq-trigger", "/proc/fs"];
/// The folder of name servers, behind `/etc/resolv.conf`.
const RESOLVER: &str = "/run/systemd/resolve";

/// The file of `bwrap`, found with Haft's own `PATH`.
pub fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH");
    own_program::find(OsStr::new(PROGRAM), path.as_deref()).ok()
}

/// The arguments of `bwrap` before those of the program.
pub(super) fn arguments(
    grants: &[Grant],
    folder: &Path,
    network: &SandboxNetwork,
    needs_user_namespace: bool,
) -> Vec<OsString> {
    let mut args = Args(Vec::new());
    args.words(&["--unshare-all"]);
    if needs_user_namespace {
        args.words(&["--unshare-user"]);
    }
    let has_network = match network {
        SandboxNetwork::All => true,
        // A list of ports does not compile with this kind.
        SandboxNetwork::None | SandboxNetwork::Ports(_) => false,
    };
    if has_network {
        args.words(&["--share-net"]);
    }
    args.words(&["--die-with-parent", "--new-session", "--cap-drop", "ALL"]);
    let root = Path::new("/");
    let reads_all = grants.iter().any(|grant| grant.path == root && grant.access == Access::Read);
    if reads_all {
        args.words(&["--ro-bind", "/", "/"]);
    }
    args.words(&["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]);
    for kernel in KERNEL {
        args.words(&["--ro-bind-try", kernel, kernel]);
    }
    if reads_all && Path::new("/run").is_dir() {
        // Hides sockets of services, which a read-only mount does not close.
        args.words(&["--tmpfs", "/run"]);
        if has_network {
            args.words(&["--ro-bind-try", RESOLVER, RESOLVER]);
        }
    }
    // After `/tmp`, because they may lie in it.
    for (at, Grant { path, access }) in grants.iter().enumerate() {
        if path == root {
            continue;
        }
        match access {
            Access::Read if reads_all && !is_hidden(path) => {}
            // Mounting over a link, such as the Python of a virtual environment, fails if its target is not there yet.
            Access::Read if is_read_with_folder(path, &grants[..at]) => {}
            Access::Read => args.paths("--ro-bind", path, path),
            Access::Write | Access::Device => args.paths("--bind", path, path),
            Access::List => args.path("--dir", path),
            Access::Link => {
                if let Ok(target) = path.read_link() {
                    args.paths("--symlink", &target, path);
                }
            }
        }
    }
    if !reads_all {
        args.path("--dir", folder);
        args.words(&["--remount-ro", "/"]);
    }
    args.path("--chdir", folder);
    args.words(&["--"]);
    args.0
}

/// Returns true if the nearest folder of a path that was granted before is readable as a whole.
fn is_read_with_folder(path: &Path, before: &[Grant]) -> bool {
    let folder = before.iter().rev().find(|grant| {
        let is_mounted = match grant.access {
            Access::Read | Access::Write | Access::Device => true,
            Access::List | Access::Link => false,
        };
        is_mounted && grant.path != Path::new("/") && path.starts_with(&grant.path)
    });
    folder.is_some_and(|grant| grant.access == Access::Read)
}

/// Returns true for paths that the view of the whole machine does not have.
fn is_hidden(path: &Path) -> bool {
    path.starts_with("/tmp") || path.starts_with("/run")
}

struct Args(Vec<OsString>);

impl Args {
    fn words(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(OsString::from));
    }

    fn path(&mut self, option: &str, path: &Path) {
        self.0.extend([OsString::from(option), path.into()]);
    }

    fn paths(&mut self, option: &str, from: &Path, to: &Path) {
        self.0.extend([OsString::from(option), from.into(), to.into()]);
    }
}
