//! Standing approvals in the database, which every replica holds in memory.

use std::sync::Arc;
use std::time::Duration;

use haft::BoxFuture;
use haft::human_input::{ApprovalStore, HumanInbox, STANDING_MAX, StandingApproval};

use haft_postgres::{ApprovalRow, ApprovalRows, Database, DatabaseError, Topic};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The longest interval between looks at the counter of changes.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Interval of reading all approvals although nothing has changed: a notification and a poll may both be lost.
const READ_EVERY: Duration = Duration::from_secs(10);

/// The standing approvals of all replicas.
pub(crate) struct SharedApprovals {
    database: Database,
    inbox: HumanInbox,
    /// The counter of changes of what the inbox holds.
    seq: i64,
    /// The database server that they were read from. `None` until the first look.
    server: Option<i64>,
    read: Instant,
}

impl SharedApprovals {
    /// Reads the approvals into the inbox, which stores new ones from then on.
    pub(crate) async fn open(database: Database, inbox: HumanInbox) -> Result<Self, DatabaseError> {
        let read = Instant::now();
        let (seq, approvals) = load(&database).await?;
        let store = Store { database: database.clone(), tasks: TaskTracker::new() };
        inbox.share_approvals(Arc::new(store), approvals);
        Ok(Self { database, inbox, seq, server: None, read })
    }

    /// Reads the approvals again whenever their counter changes, until `stop`. Without the database those of before
    /// hold.
    pub(crate) async fn follow(mut self, stop: CancellationToken) {
        let mut topics = self.database.topics();
        let mut is_failing = false;
        loop {
            let changed = timeout(LOOK_EVERY, topics.changed());
            if stop.run_until_cancelled(changed).await.is_none() {
                return;
            }
            topics.mark_unchanged();
            match self.refresh().await {
                Ok(()) => is_failing = false,
                Err(error) if !is_failing => {
                    tracing::warn!(
                        "the standing approvals are as they were before: {error}; {}",
                        error.remedy()
                    );
                    is_failing = true;
                }
                Err(_) => {}
            }
        }
    }

    async fn refresh(&mut self) -> Result<(), DatabaseError> {
        let topics = *self.database.topics().borrow();
        let is_same =
            self.seq == topics.seq(Topic::Approvals) && self.server == Some(topics.server());
        if is_same && self.read.elapsed() < READ_EVERY {
            return Ok(());
        }
        let read = Instant::now();
        let (seq, approvals) = load(&self.database).await?;
        self.inbox.replace_approvals(approvals);
        (self.seq, self.server, self.read) = (seq, Some(topics.server()), read);
        Ok(())
    }
}

/// Reads the approvals, the oldest first, with the counter of their changes.
pub(crate) async fn load(
    database: &Database,
) -> Result<(i64, Vec<StandingApproval>), DatabaseError> {
    let ApprovalRows { seq, approvals } = database.approvals(rows_max()).await?;
    Ok((seq, approvals.into_iter().map(approval).collect()))
}

fn rows_max() -> i64 {
    i64::try_from(STANDING_MAX).unwrap_or(i64::MAX)
}

fn approval(row: ApprovalRow) -> StandingApproval {
    let ApprovalRow { tool, owner, session, server, rule, definition } = row;
    StandingApproval { owner, session, server, tool, rule, definition }
}

/// The database as the store of an inbox.
struct Store {
    database: Database,
    tasks: TaskTracker,
}

impl ApprovalStore for Store {
    fn keep<'a>(&'a self, approval: &'a StandingApproval) -> BoxFuture<'a, Result<(), String>> {
        let (database, approval) = (self.database.clone(), approval.clone());
        // A task of its own: the client that answered may be gone before the approval is stored.
        let stored = self.tasks.spawn(async move {
            let (digest, row) = (digest(&approval), row(approval));
            database.insert_approval(&digest, &row, rows_max()).await
        });
        Box::pin(async {
            let stored = stored.await.map_err(|error| error.to_string())?;
            stored.map_err(|error| format!("{error}; {}", error.remedy()))
        })
    }
}

fn row(approval: StandingApproval) -> ApprovalRow {
    let StandingApproval { owner, session, server, tool, rule, definition } = approval;
    ApprovalRow { tool, owner, session, server, rule, definition }
}

/// Identifies what an approval covers.
pub(crate) fn digest(approval: &StandingApproval) -> String {
    let StandingApproval { owner, session, server, tool, rule, definition } = approval;
    let text = json!([owner, session, server, tool, rule, definition]).to_string();
    haft_text::hex(&Sha256::digest(text))
}
