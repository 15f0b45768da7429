//! Notices for the operator: each failure of the log is reported once.

use super::error::LogError;

/// A change.
#[derive(Debug)]
pub(super) enum Notice {
    Failing(LogError),
    Losing { entries_kept: usize },
    Recovered { entries_lost: u64 },
}

/// Reports the changes.
pub(super) fn report(notices: Vec<Notice>) {
    for notice in notices {
        match notice {
            Notice::Failing(error) => tracing::error!(
                error = error.problem(),
                help = error.remedy(),
                "the execution log fails; entries are kept in memory"
            ),
            Notice::Losing { entries_kept } => tracing::error!(
                entries_kept,
                "the execution log still fails and its backlog is full; new entries are lost"
            ),
            Notice::Recovered { entries_lost } => tracing::info!(
                entries_lost,
                "the execution log works again; what was kept is being written"
            ),
        }
    }
}
