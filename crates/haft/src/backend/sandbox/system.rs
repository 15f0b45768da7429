//! The files that programs need on every machine, none of which holds secrets.

use std::path::{Path, PathBuf};

/// Programs, libraries and their data.
const FOLDERS: [&str; 12] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    "/gnu/store",
    "/sys/devices/system/cpu",
    "/sys/fs/cgroup",
];

/// Single entries, because `/etc` also holds keys and passwords, which root can read.
const SETTINGS: [&str; 37] = [
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/crypto-policies",
    "/etc/fonts",
    "/etc/gai.conf",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hostname",
    "/etc/hosts",
    "/etc/inputrc",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/openssl.cnf",
    "/etc/protocols",
    "/etc/python3",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
    "/etc/xattr.conf",
    "/etc/zoneinfo",
];

/// Devices without state that programs read and write. `bwrap` makes its own.
pub(super) const DEVICES: [&str; 5] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Those that this machine has.
pub(super) fn paths() -> Vec<PathBuf> {
    let all = FOLDERS.iter().chain(&SETTINGS).map(Path::new);
    all.filter(|path| path.exists()).map(Path::to_owned).collect()
}

/// Folders whose files belong to many programs.
const SHARED: [&str; 10] =
    ["/etc", "/home", "/media", "/mnt", "/root", "/run", "/tmp", "/var", "/var/lib", "/var/tmp"];

/// Returns true for a folder that holds far more than one program's files: `/`, the home directory and
/// what is above it, the temporary folder and the like. A program that lies or works there does not
/// read the folder unless `read` lists it.
pub(super) fn is_shared(folder: &Path) -> bool {
    let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
    let folder = real(folder.to_owned());
    let home = std::env::var_os("HOME").map(|home| real(home.into()));
    folder.parent().is_none()
        || home.is_some_and(|home| home.starts_with(&folder))
        || folder == real(std::env::temp_dir())
        || SHARED.iter().any(|shared| folder == Path::new(shared))
}
