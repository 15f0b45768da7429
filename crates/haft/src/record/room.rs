//! Checks that a file can take an entry, without changing the log.

use std::fs::File;
use std::io::{self, Write};

/// The size of an ordinary entry. Longer ones may still meet a full disk.
pub(super) const ROOM_BYTES: u64 = 4096;

/// Fails where the next entry would. Nothing that a reader could see is written to a regular file,
/// because many short processes may each open it.
pub(super) fn prove_room(mut file: &File) -> io::Result<()> {
    let metadata = file.metadata()?;
    if metadata.is_file() {
        return reserve(file, metadata.len());
    }
    // A device or a pipe reserves nothing; an empty line, which readers skip, is the only proof.
    file.write_all(b"\n")
}

/// Asks for blocks behind the end of the file. Unlike the count of free blocks this knows of
/// quotas and of what is kept back for root, and the next entry uses the very blocks.
#[cfg(target_os = "linux")]
fn reserve(file: &File, length: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::Errno;
    match fallocate(file, FallocateFlags::KEEP_SIZE, length, ROOM_BYTES) {
        // Some network file systems cannot reserve.
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => count_free(file),
        reserved => Ok(reserved?),
    }
}

#[cfg(not(target_os = "linux"))]
fn reserve(file: &File, _: u64) -> io::Result<()> {
    count_free(file)
}

fn count_free(file: &File) -> io::Result<()> {
    let disk = rustix::fs::fstatvfs(file)?;
    let free_bytes = disk.f_bavail.saturating_mul(disk.f_frsize);
    // A file system that reports no blocks at all is not full.
    if disk.f_blocks > 0 && free_bytes < ROOM_BYTES {
        return Err(io::ErrorKind::StorageFull.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_proof_leaves_nothing_in_a_regular_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        fs::write(&path, "{}\n").unwrap();
        let file = File::options().append(true).open(&path).unwrap();
        for check in [prove_room, count_free] {
            check(&file).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), "{}\n");
        }
    }

    #[test]
    fn a_device_without_room_is_found_out() {
        let full = File::options().append(true).open("/dev/full").unwrap();
        assert_eq!(prove_room(&full).unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
