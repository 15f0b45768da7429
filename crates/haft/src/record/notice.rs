//! What the operator must hear of: a log that fails is never silent, nor does it repeat itself.

use super::error::LogError;

/// A change the operator must hear of. It is reported after the lock is released, because whoever
/// listens may be slow.
#[derive(Debug)]
pub(super) enum Notice {
    Failing(LogError),
    Losing { entries_kept: usize },
    Recovered { entries_lost: u64 },
}

/// Says what changed, once per change.
pub(super) fn report(notice: Option<Notice>) {
    match notice {
        None => {}
        Some(Notice::Failing(error)) => tracing::error!(
            error = error.problem(),
            help = error.remedy(),
            "the execution log fails; entries are kept in memory"
        ),
        Some(Notice::Losing { entries_kept }) => tracing::error!(
            entries_kept,
            "the execution log still fails and its backlog is full; new entries are lost"
        ),
        Some(Notice::Recovered { entries_lost }) => tracing::info!(
            entries_lost,
            "the execution log works again; what was kept is being written"
        ),
    }
}
