//! `log`.

use std::path::Path;

use super::{count, explicit, path, pick};
use crate::config::bytes::{ByteCount, FreeSpace, LOG_BYTES_DEFAULT, LOG_BYTES_MIN};
use crate::config::choices::{LogShip, LogSync, OnLogFailure};
use crate::config::model::{LogConfig, Origin, Setting};
use crate::config::place::{At, Place, Problems};
use crate::config::raw::RawLog;

/// Folder of the execution log, beside the configuration.
const LOG_DIR: &str = "logs";

/// `has_shared`: the log is shipped to the database of `shared` unless the file says otherwise.
pub(super) fn log(
    raw: Option<RawLog>,
    base: &Path,
    has_shared: bool,
    problems: &mut Problems,
) -> LogConfig {
    let raw = raw.unwrap_or_else(|| RawLog::empty(Place::whole("")));
    let ship = ship(raw.ship, has_shared, problems);
    match (ship.value, &raw.max_bytes, &raw.spool_max) {
        (LogShip::Shared, Some(max_bytes), _) => problems.error(
            &max_bytes.place,
            "`log.max_bytes` deletes old files, and a log that is shipped keeps them until they are shipped",
            "write `log.spool_max`, or leave it out",
        ),
        (LogShip::None, _, Some(spool_max)) => problems.error(
            &spool_max.place,
            "`log.spool_max` limits a log that is shipped, and this one is not",
            "write `log.max_bytes`, or `log: {ship: shared}`",
        ),
        (LogShip::Shared, None, _) | (LogShip::None, _, None) => {}
    }
    LogConfig {
        dir: path(raw.dir, base, LOG_DIR),
        retain_days: pick(raw.retain_days.map(count), 30),
        max_bytes: max_bytes(raw.max_bytes, problems),
        keep_free: pick(raw.keep_free, FreeSpace::Auto),
        ship,
        spool_max: spool_max(raw.spool_max, problems),
        on_failure: pick(raw.on_failure, OnLogFailure::Refuse),
        sync: pick(raw.sync, LogSync::Os),
        requests: pick(raw.requests, false),
    }
}

fn ship(raw: Option<At<LogShip>>, has_shared: bool, problems: &mut Problems) -> Setting<LogShip> {
    match raw {
        Some(at) => {
            if at.value == LogShip::Shared && !has_shared {
                problems.error(
                    &at.place,
                    "`ship: shared` needs a database, and there is no `shared`",
                    "add `shared: {url: \"${DATABASE_URL}\"}`, or leave out `ship`",
                );
            }
            explicit(at, |ship| ship)
        }
        None if has_shared => {
            Setting { value: LogShip::Shared, origin: Origin::Implied("there is a `shared`") }
        }
        None => Setting::default(LogShip::None),
    }
}

fn max_bytes(raw: Option<At<ByteCount>>, problems: &mut Problems) -> Setting<Option<u64>> {
    let Some(at) = raw else { return Setting::default(Some(LOG_BYTES_DEFAULT)) };
    let ByteCount(bytes) = at.value;
    if (1..LOG_BYTES_MIN).contains(&bytes) {
        problems.error(
            &at.place,
            format!("`log.max_bytes` is {bytes}, less than {LOG_BYTES_MIN}"),
            "write 1MiB or more, or 0 for no limit",
        );
    }
    explicit(at, |ByteCount(bytes)| (bytes > 0).then_some(bytes))
}

fn spool_max(raw: Option<At<ByteCount>>, problems: &mut Problems) -> Setting<u64> {
    let Some(at) = raw else { return Setting::default(LOG_BYTES_DEFAULT) };
    let ByteCount(bytes) = at.value;
    if bytes < LOG_BYTES_MIN {
        problems.error(
            &at.place,
            format!("`log.spool_max` is {bytes}, less than {LOG_BYTES_MIN}"),
            "write 1MiB or more",
        );
    }
    explicit(at, |ByteCount(bytes)| bytes)
}
