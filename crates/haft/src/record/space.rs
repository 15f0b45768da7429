//! Disk space of the log. The oldest files are deleted first.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::LogOptions;
use super::error::LogError;
use super::files::{LogFile, list};
use super::health::LowSpace;
use super::spool::ShippedFiles;

/// Default of `log.keep_free`: this many bytes, or this percentage of the disk if that is less.
pub const KEEP_FREE_BYTES_DEFAULT: u64 = 64 << 20;
/// See `KEEP_FREE_BYTES_DEFAULT`.
pub const KEEP_FREE_PERCENT_DEFAULT: u64 = 1;

/// Default of `log.max_bytes`.
pub const MAX_BYTES_DEFAULT: u64 = 10 << 30;

/// Number of parts of `log.max_bytes`. A part is the least that is deleted at once.
const PARTS: u64 = 4;

/// A log whose disk has less than this multiple of `log.keep_free` left raises an alarm.
const ALARM_FACTOR: u64 = 2;

/// Interval of space checks while the log is written: a time, or a number of bytes.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const LOOK_AFTER_BYTES: u64 = 16 << 20;

/// Disk space that the log keeps free.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KeepFree {
    /// `KEEP_FREE_BYTES_DEFAULT`, or `KEEP_FREE_PERCENT_DEFAULT` percent of a small disk.
    #[default]
    Auto,
    /// A number of bytes.
    Bytes(u64),
    /// A percentage of the disk.
    Percent(u8),
}

impl KeepFree {
    fn of_disk(self, disk_bytes: u64) -> u64 {
        let percent = |percent: u64| disk_bytes / 100 * percent;
        match self {
            Self::Auto => KEEP_FREE_BYTES_DEFAULT.min(percent(KEEP_FREE_PERCENT_DEFAULT)),
            Self::Bytes(bytes) => bytes,
            Self::Percent(part) => percent(part.into()),
        }
    }
}

/// The largest size of one file of the log.
pub(super) fn part_bytes_max(max_bytes: Option<u64>) -> u64 {
    max_bytes.map_or(u64::MAX, |max_bytes| max_bytes / PARTS)
}

/// The limits in force, and what the last look found.
#[derive(Debug)]
pub(super) struct Space {
    max_bytes: Option<u64>,
    keep_free: KeepFree,
    /// If present, only these files are deleted.
    shipped: Option<ShippedFiles>,
    /// The time of the last check, and the bytes that may be written until the next one.
    looked: Option<Instant>,
    allowance: u64,
    pub(super) low: Option<LowSpace>,
}

impl Space {
    pub(super) fn new(options: &LogOptions) -> Self {
        Self {
            max_bytes: options.bytes_max(),
            keep_free: options.keep_free,
            shipped: options.spool.as_ref().map(|spool| spool.shipped.clone()),
            looked: None,
            allowance: 0,
            low: None,
        }
    }

    /// Returns true if the disk must be checked before `incoming` bytes are written.
    pub(super) fn is_due(&self, incoming: u64, now: Instant) -> bool {
        let is_old = |looked| now.saturating_duration_since(looked) >= LOOK_EVERY;
        incoming > self.allowance || self.looked.is_none_or(is_old)
    }

    /// Counts bytes that are about to be written.
    pub(super) fn count(&mut self, incoming: u64) {
        self.allowance = self.allowance.saturating_sub(incoming);
    }

    /// Makes room for `incoming` bytes. `current` is the file that they go to, which stays.
    pub(super) fn make_room(
        &mut self,
        dir: &Path,
        current: &LogFile,
        incoming: u64,
    ) -> Result<(), LogError> {
        // A look that fails leaves the next one due.
        self.looked = None;
        self.look(dir, current, incoming)?;
        self.looked = Some(Instant::now());
        Ok(())
    }

    /// Deletes the oldest files until both limits hold. Fails if the disk has too little free space
    /// without them.
    fn look(&mut self, dir: &Path, current: &LogFile, incoming: u64) -> Result<(), LogError> {
        let mut files = Vec::new();
        for file in list(dir)? {
            // Deleted by another process meanwhile.
            let Ok(metadata) = fs::metadata(&file.path) else { continue };
            let may_delete =
                self.shipped.as_ref().is_none_or(|it| it.is_shipped(&file.path, &metadata));
            files.push((if metadata.is_file() { metadata.len() } else { 0 }, may_delete, file));
        }
        let mut used: u64 = files.iter().map(|(bytes, ..)| bytes).sum();
        let mut disk = Disk::of(dir)?;
        let keep_free = self.keep_free.of_disk(disk.total);
        let old = files.into_iter().filter(|(_, may_delete, file)| *may_delete && file < current);
        for (bytes, _, file) in old {
            let is_over = self.max_bytes.is_some_and(|max_bytes| used + incoming > max_bytes);
            let is_full = disk.is_below(keep_free.saturating_add(incoming));
            let why = match (is_over, is_full) {
                (true, _) if self.shipped.is_some() => {
                    "it was shipped, and the log reached `log.spool_max`"
                }
                (true, _) => "the log reached `log.max_bytes`",
                (false, true) => "the disk has less than `log.keep_free` left",
                (false, false) => break,
            };
            file.delete(why);
            used -= bytes;
            disk = Disk::of(dir)?;
        }
        self.low = disk
            .is_below(keep_free.saturating_mul(ALARM_FACTOR))
            .then_some(LowSpace { free_bytes: disk.free, keep_free_bytes: keep_free });
        if disk.is_below(keep_free.saturating_add(incoming)) {
            let path = dir.to_owned();
            return Err(LogError::NoSpace {
                path,
                free_bytes: disk.free,
                keep_free_bytes: keep_free,
            });
        }
        if let (Some(bytes_max), Some(_)) = (self.max_bytes, &self.shipped)
            && used + incoming > bytes_max
        {
            let path = dir.to_owned();
            return Err(LogError::SpoolFull { path, waiting_bytes: used, bytes_max });
        }
        let left = self.max_bytes.map_or(u64::MAX, |max_bytes| max_bytes.saturating_sub(used));
        let free = if disk.is_counted() { (disk.free - keep_free) / 2 } else { u64::MAX };
        self.allowance = left.min(free).min(LOOK_AFTER_BYTES).max(incoming);
        Ok(())
    }
}

/// The disk behind a directory.
#[derive(Debug, Clone, Copy)]
struct Disk {
    total: u64,
    free: u64,
}

impl Disk {
    fn of(dir: &Path) -> Result<Self, LogError> {
        let disk = rustix::fs::statvfs(dir).map_err(|error| LogError::write(dir, error.into()))?;
        Ok(Self {
            total: disk.f_blocks.saturating_mul(disk.f_frsize),
            free: disk.f_bavail.saturating_mul(disk.f_frsize),
        })
    }

    /// A file system that reports no blocks at all is not full.
    fn is_counted(self) -> bool {
        self.total > 0
    }

    fn is_below(self, bytes: u64) -> bool {
        self.is_counted() && self.free < bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_takes_little_of_a_small_disk() {
        let default = KeepFree::default();
        assert_eq!(default.of_disk(100 << 30), KEEP_FREE_BYTES_DEFAULT);
        assert_eq!(default.of_disk(100 << 20), 1 << 20);
        assert_eq!(KeepFree::Percent(50).of_disk(1000), 500);
        assert_eq!(KeepFree::Bytes(7).of_disk(1000), 7);
    }
}
