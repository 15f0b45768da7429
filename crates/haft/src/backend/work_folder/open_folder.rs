//! Opens a folder inside another one, but not a link to one, and restores the owner's permissions, which the code may
//! have removed.

use rustix::fs::OFlags;

#[cfg(target_os = "linux")]
pub(super) use by_descriptor::open;
#[cfg(not(target_os = "linux"))]
pub(super) use by_name::open;

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Linux: the folder is held by a descriptor that needs no permission, and its mode is changed through `/proc`.
#[cfg(target_os = "linux")]
mod by_descriptor {
    use std::fs::{Permissions, set_permissions};
    use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
    use std::os::unix::fs::PermissionsExt as _;

    use rustix::fs::{Mode, OFlags, openat};
    use rustix::io::Errno;

    use super::FOLDER;

    pub(in super::super) fn open(
        above: impl AsFd,
        name: impl rustix::path::Arg,
    ) -> Result<OwnedFd, Errno> {
        let found = openat(above, name, OFlags::PATH | FOLDER, Mode::empty())?;
        // By descriptor, because the name may refer to something else by now.
        let itself = format!("/proc/self/fd/{}", found.as_raw_fd());
        // A folder that stays closed fails when it is opened.
        let _ = set_permissions(itself, Permissions::from_mode(0o700));
        openat(&found, c".", OFlags::RDONLY | FOLDER, Mode::empty())
    }
}

/// Elsewhere: the mode is changed by name, which does not follow links, and the folder is opened by name. Tests compile
/// it on Linux too.
#[cfg(any(not(target_os = "linux"), test))]
mod by_name {
    use std::os::fd::{AsFd, OwnedFd};

    use rustix::fs::{AtFlags, Mode, OFlags, chmodat, openat};
    use rustix::io::Errno;

    use super::FOLDER;

    pub(in super::super) fn open(
        above: impl AsFd,
        name: impl rustix::path::Arg,
    ) -> Result<OwnedFd, Errno> {
        name.into_with_c_str(|name| {
            // A folder that stays closed fails when it is opened.
            let _ = chmodat(&above, name, Mode::RWXU, AtFlags::SYMLINK_NOFOLLOW);
            openat(&above, name, OFlags::RDONLY | FOLDER, Mode::empty())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use rustix::fs::CWD;

    #[test]
    fn both_ways_open_folders_and_refuse_links_and_files() {
        let parent = tempfile::tempdir().unwrap();
        let [folder, link, file] = ["folder", "link", "file"].map(|name| parent.path().join(name));
        fs::create_dir(&folder).unwrap();
        symlink(&folder, &link).unwrap();
        fs::write(&file, "").unwrap();
        super::open(CWD, &folder).unwrap();
        super::by_name::open(CWD, &folder).unwrap();
        for path in [&link, &file] {
            super::open(CWD, path).unwrap_err();
            super::by_name::open(CWD, path).unwrap_err();
        }
    }
}
