//! Counts of the calls of a UTC day, and of their bytes in the log, kept in a file so that they survive a restart. Processes with one state folder
//! add to the same counts.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use haft_bounds::parse_error::describe;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use crate::record::Clock;

const FILE: &str = "quotas.json";
const FILE_MODE: u32 = 0o600;
/// Largest size of the file: ten thousand subjects take a tenth of it.
const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;
const VERSION: u32 = 1;
const DAY: Duration = Duration::from_hours(24);

/// The counts of today.
pub(super) struct QuotaStore {
    path: PathBuf,
    clock: Arc<dyn Clock>,
    counts: Mutex<Counts>,
    /// Held while the counts are written: two writers would add the same calls twice.
    saving: Mutex<()>,
    changed: Notify,
}

struct Counts {
    /// The counts of the file are known.
    is_loaded: bool,
    day: Date,
    by_id: HashMap<String, Count>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Count {
    /// All calls of the day.
    total: u64,
    /// Those that the file lacks. Below zero if calls were given back.
    unsaved: i64,
}

/// The counts of earlier calls cannot be read, so it is unknown if a quota is used up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnknownQuota {
    pub(crate) path: PathBuf,
    pub(crate) problem: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCounts {
    version: u32,
    day: String,
    counts: HashMap<String, u64>,
}

/// The counts of one day.
struct DayCounts {
    day: Date,
    counts: HashMap<String, u64>,
}

impl QuotaStore {
    /// The counts of a state folder. The file is read when the first quota is checked.
    pub(super) fn open(state_dir: &Path, clock: Arc<dyn Clock>) -> Self {
        let day = day(&*clock);
        let counts = Counts { is_loaded: false, day, by_id: HashMap::new() };
        let path = state_dir.join(FILE);
        let counts = Mutex::new(counts);
        Self { path, clock, counts, saving: Mutex::default(), changed: Notify::new() }
    }

    /// Counts `amount` calls or bytes, unless today's count would exceed `max`.
    pub(super) fn take(&self, id: &str, amount: u32, max: u64) -> Result<bool, UnknownQuota> {
        let mut counts = self.today()?;
        let count = counts.by_id.entry(id.to_owned()).or_default();
        let total = count.total.saturating_add(amount.into());
        if total > max {
            return Ok(false);
        }
        count.total = total;
        count.unsaved += i64::from(amount);
        drop(counts);
        self.changed.notify_one();
        Ok(true)
    }

    /// Takes back the count of a call that another limit refused.
    pub(super) fn give_back(&self, id: &str) {
        if let Some(count) = self.counts.lock().by_id.get_mut(id) {
            count.total = count.total.saturating_sub(1);
            count.unsaved -= 1;
        }
    }

    /// Waits for a count that is not written.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The time until the counts start again.
    pub(super) fn until_next_day(&self) -> Duration {
        let now = self.clock.now().to_zoned(TimeZone::UTC);
        let passed = now.time().duration_since(jiff::civil::Time::midnight());
        DAY.saturating_sub(Duration::try_from(passed).unwrap_or_default())
    }

    fn today(&self) -> Result<parking_lot::MutexGuard<'_, Counts>, UnknownQuota> {
        let today = day(&*self.clock);
        let mut counts = self.counts.lock();
        if !counts.is_loaded {
            // A small file, read once. A damaged one is read for each call, until it is fixed.
            let read = read(&self.path).map_err(|problem| self.unknown(problem))?;
            let there = read.filter(|there| there.day == today);
            let count = |total| Count { total, unsaved: 0 };
            let there = there.into_iter().flat_map(|there| there.counts);
            counts.by_id = there.map(|(id, total)| (id, count(total))).collect();
            counts.day = today;
            counts.is_loaded = true;
        }
        if counts.day != today {
            counts.day = today;
            counts.by_id.clear();
        }
        Ok(counts)
    }

    fn unknown(&self, problem: String) -> UnknownQuota {
        UnknownQuota { path: self.path.clone(), problem }
    }

    /// Adds the calls since the last time to the file, and takes over what other processes added.
    pub(super) fn save(&self) -> io::Result<()> {
        let _saving = self.saving.lock();
        let (today, added) = {
            let counts = self.counts.lock();
            let unsaved = counts.by_id.iter().filter(|(_, count)| count.unsaved != 0);
            let added: HashMap<String, i64> =
                unsaved.map(|(id, count)| (id.clone(), count.unsaved)).collect();
            (counts.day, added)
        };
        if added.is_empty() {
            return Ok(());
        }
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(FILE_MODE)
            .open(self.path.with_extension("lock"))?;
        lock.lock()?;
        let there = read(&self.path).map_err(io::Error::other)?;
        let mut totals = match there {
            // Another process is a day ahead, so these calls are over.
            Some(there) if there.day > today => return Ok(()),
            Some(there) if there.day == today => there.counts,
            Some(_) | None => HashMap::new(),
        };
        for (id, added) in &added {
            let total = totals.entry(id.clone()).or_default();
            *total = total.saturating_add_signed(*added);
        }
        let raw = RawCounts { version: VERSION, day: today.to_string(), counts: totals };
        replace(&self.path, &serde_json::to_vec(&raw)?)?;
        drop(lock);
        let mut counts = self.counts.lock();
        if counts.day == today {
            for (id, total) in raw.counts {
                let count = counts.by_id.entry(id.clone()).or_default();
                count.unsaved -= added.get(&id).copied().unwrap_or(0);
                count.total = total.saturating_add_signed(count.unsaved);
            }
        }
        Ok(())
    }
}

fn day(clock: &dyn Clock) -> Date {
    clock.now().to_zoned(TimeZone::UTC).date()
}

fn read(path: &Path) -> Result<Option<DayCounts>, String> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let mut text = Vec::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut text);
    read.map_err(|error| error.to_string())?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("it is larger than {FILE_BYTES_MAX} bytes"));
    }
    let RawCounts { version, day, counts } =
        serde_json::from_slice(&text).map_err(|error| describe(&error))?;
    if version != VERSION {
        return Err(format!("its version is {version}, and this Haft knows {VERSION}"));
    }
    let day = day.parse().map_err(|_| format!("`{day}` is not a day"))?;
    Ok(Some(DayCounts { day, counts }))
}

/// Replaces the file so that a reader finds the old one or the new one. The caller holds the lock.
fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let draft = path.with_extension("tmp");
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(FILE_MODE).open(&draft)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(&draft, path)
}
