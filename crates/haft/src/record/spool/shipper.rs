//! The task that ships a log.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::backoff::Backoff;
use super::folder::{Pending, SpoolFolder};
use super::status::ShipProblem;
use super::{FileCursor, LogSink, ShipBatch, ShipStatus, Shipped, ShippedFiles, SinkError};

/// Interval between looks at the files. Lines that are written meanwhile share a batch.
const SHIP_EVERY: Duration = Duration::from_millis(200);
/// Time to ship the last lines when the service ends.
const LAST_LINES_MAX: Duration = Duration::from_secs(5);

/// Returns the folder of the log files. `None`: nothing is shipped now.
pub type LogDir = Arc<dyn Fn() -> Option<PathBuf> + Send + Sync>;

/// Ships the lines of a log to a sink, in the order of each file.
pub struct Shipper {
    sink: Arc<dyn LogSink>,
    shipped: ShippedFiles,
    status: watch::Sender<ShipStatus>,
    wake: Notify,
    /// The number of the last pass that began, and of the last one that shipped everything.
    begun: AtomicU64,
    completed: watch::Sender<u64>,
}

impl std::fmt::Debug for Shipper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shipper").field("status", &*self.status.borrow()).finish_non_exhaustive()
    }
}

impl Shipper {
    /// A shipper that notes in `shipped` which files the writer of the log may delete.
    pub fn new(sink: Arc<dyn LogSink>, shipped: ShippedFiles) -> Self {
        Self {
            sink,
            shipped,
            status: watch::Sender::new(ShipStatus::default()),
            wake: Notify::new(),
            begun: AtomicU64::new(0),
            completed: watch::Sender::new(0),
        }
    }

    /// The state of shipping.
    pub fn status(&self) -> ShipStatus {
        self.status.borrow().clone()
    }

    /// Number of passes over the files that began.
    #[cfg(test)]
    pub(crate) fn passes(&self) -> u64 {
        self.begun.load(Ordering::Acquire)
    }

    /// Ships until `stop`, and then what is left, for a few seconds.
    pub async fn run(self: Arc<Self>, dir: LogDir, stop: CancellationToken) {
        let mut folder = None;
        let mut backoff = Backoff::default();
        loop {
            let is_last = stop.is_cancelled();
            let pass = self.begun.fetch_add(1, Ordering::AcqRel) + 1;
            let passing = self.pass(&mut folder, dir(), is_last);
            let outcome = if is_last {
                timeout(LAST_LINES_MAX, passing).await.unwrap_or_else(|_| Err(ran_out()))
            } else {
                passing.await
            };
            let delay = match outcome {
                Ok(()) => {
                    self.recovered();
                    self.completed.send_replace(pass);
                    backoff = Backoff::default();
                    SHIP_EVERY
                }
                Err(problem) => {
                    self.failed(problem);
                    backoff.next()
                }
            };
            if is_last {
                return;
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.wake.notified() => {}
                () = sleep(delay) => {}
            }
        }
    }

    /// Ships what is in the files now. Returns false if that fails or takes longer than `within`.
    pub async fn flush(&self, within: Duration) -> bool {
        if self.status.borrow().problem.is_some() {
            return false;
        }
        let mut completed = self.completed.subscribe();
        // A pass that runs now may have looked at the files already.
        let pass = self.begun.load(Ordering::Acquire) + 1;
        self.wake.notify_one();
        let waiting = completed.wait_for(|completed| *completed >= pass);
        timeout(within, waiting).await.is_ok_and(|waited| waited.is_ok())
    }

    /// Ships everything in the folder, then moves on to `dir` if that is another one.
    async fn pass(
        &self,
        folder: &mut Option<SpoolFolder>,
        dir: Option<PathBuf>,
        is_last: bool,
    ) -> Result<(), String> {
        if let Some(open) = folder.take() {
            let is_current = dir.as_ref() == Some(&open.dir);
            let shipped = self.ship_folder(folder, open, is_last).await;
            if is_current || shipped.is_err() {
                return shipped;
            }
            *folder = None;
        }
        let Some(dir) = dir else { return Ok(()) };
        let shipped = self.shipped.clone();
        let opened = spawn_blocking(move || SpoolFolder::open(dir, shipped)).await;
        let opened = opened.map_err(|error| error.to_string())?;
        match opened.map_err(|error| format!("{}; {}", error.problem(), error.remedy()))? {
            Some(open) => self.ship_folder(folder, open, is_last).await,
            None => Ok(()),
        }
    }

    /// Ships everything in a folder, and puts it back into `place`.
    async fn ship_folder(
        &self,
        place: &mut Option<SpoolFolder>,
        mut open: SpoolFolder,
        is_last: bool,
    ) -> Result<(), String> {
        open.begin();
        loop {
            if is_last {
                // No pass follows that could ship what is written meanwhile.
                open.begin();
            }
            if open.cursors.is_none() {
                match self.sink.cursor(&open.id).await {
                    Ok(cursors) => {
                        let cursors = cursors.into_iter().map(|it| (it.file, it.at));
                        open.cursors = Some(cursors.collect());
                    }
                    Err(error) => {
                        *place = Some(open);
                        return Err(text(&error));
                    }
                }
            }
            // A panic loses the open files, and the next pass opens them again.
            let read = spawn_blocking(move || {
                let looked = open.look();
                let pending = open.next();
                let waiting = open.waiting_bytes();
                (looked, pending, waiting, open)
            });
            let (looked, pending, waiting, back) = read.await.map_err(|error| error.to_string())?;
            open = back;
            self.status.send_modify(|status| status.waiting_bytes = waiting);
            let problem =
                |error: &super::super::LogError| format!("{}; {}", error.problem(), error.remedy());
            let sent = match pending {
                Ok(None) => {
                    *place = Some(open);
                    return looked.map_err(|error| problem(&error));
                }
                Ok(Some(Pending::Lines { from, batch, malformed })) => {
                    self.skip_malformed(&from, malformed);
                    self.send(&mut open, from, batch).await.map_err(|error| text(&error))
                }
                Ok(Some(Pending::Gone(cursor))) => {
                    self.sink.forget(&open.id, &cursor).await.map_err(|error| text(&error))
                }
                Err(error) => Err(problem(&error)),
            };
            if let Err(problem) = sent {
                // What the sink has is unknown now.
                open.cursors = None;
                *place = Some(open);
                return Err(problem);
            }
        }
    }

    /// Ships one batch. If the sink refuses its content, each half is tried, down to the line that it refuses.
    async fn send(
        &self,
        open: &mut SpoolFolder,
        mut from: FileCursor,
        batch: ShipBatch,
    ) -> Result<(), SinkError> {
        let mut batches = vec![batch];
        while let Some(batch) = batches.pop() {
            match self.sink.ship(&open.id, &from, &batch).await {
                Ok(Shipped::Moved) => {
                    from.at = batch.to;
                    open.moved(&from);
                    self.status.send_modify(|status| status.entries += batch.rows.len() as u64);
                }
                Ok(Shipped::At(at)) if at == from.at => return Err(did_not_move(&from)),
                Ok(Shipped::At(at)) => {
                    from.at = at;
                    open.moved(&from);
                    // The lines of the batch that the sink does not have are read again.
                    open.begin();
                    return Ok(());
                }
                Err(SinkError::Rejected { problem }) => match batch.rows.as_slice() {
                    [] => return Err(SinkError::Rejected { problem }),
                    [row] => {
                        let (id, file) = (row.execution_id, &from.file);
                        tracing::error!(%id, file, "an entry of the log is not shipped: {problem}; it stays in the file");
                        self.status.send_modify(|status| status.skipped += 1);
                        batches.push(ShipBatch { to: batch.to, rows: Vec::new() });
                    }
                    [..] => batches.extend(halves(batch)),
                },
                Err(error @ SinkError::Unavailable { .. }) => return Err(error),
            }
        }
        Ok(())
    }

    fn skip_malformed(&self, from: &FileCursor, lines: u64) {
        if lines > 0 {
            let file = &from.file;
            tracing::warn!(file, lines, "lines of the log are not entries and are not shipped");
            self.status.send_modify(|status| status.skipped += lines);
        }
    }

    fn failed(&self, problem: String) {
        let is_new = self.status.borrow().problem.as_ref().is_none_or(|it| it.text != problem);
        if is_new {
            tracing::warn!(
                "the execution log is not shipped, its entries wait on the disk: {problem}"
            );
        }
        self.status.send_modify(|status| {
            let since = status.problem.as_ref().map_or_else(Instant::now, |problem| problem.since);
            status.problem = Some(ShipProblem { text: problem, since });
        });
    }

    fn recovered(&self) {
        if self.status.borrow().problem.is_some() {
            tracing::info!("the execution log is shipped again");
            self.status.send_modify(|status| status.problem = None);
        }
    }
}

/// The two halves of a batch, the second one first.
fn halves(mut batch: ShipBatch) -> [ShipBatch; 2] {
    let rest = batch.rows.split_off(batch.rows.len() / 2);
    let middle = batch.rows.last().map_or(batch.to, |row| row.end);
    [ShipBatch { to: batch.to, rows: rest }, ShipBatch { to: middle, rows: batch.rows }]
}

fn text(error: &SinkError) -> String {
    match error {
        SinkError::Unavailable { problem, remedy } => format!("{problem}; {remedy}"),
        SinkError::Rejected { problem } => problem.clone(),
    }
}

fn did_not_move(from: &FileCursor) -> SinkError {
    SinkError::Unavailable {
        problem: format!("the cursor of `{}` stays at {}", from.file, from.at),
        remedy: "the shipper tries again".to_owned(),
    }
}

fn ran_out() -> String {
    let seconds = LAST_LINES_MAX.as_secs();
    format!("the last lines took longer than {seconds} s; they are shipped after the next start")
}
