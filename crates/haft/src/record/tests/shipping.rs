//! Shipping: each line reaches the sink once, whatever happens to files, sink and process.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::Write as _;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::*;
use crate::tool::BoxFuture;

const SOON: Duration = Duration::from_secs(20);

/// A sink in memory that stores rows without a look for duplicates, so that a row that comes twice is seen.
#[derive(Default)]
struct MemorySink(Mutex<Memory>);

#[derive(Default)]
struct Memory {
    cursors: HashMap<String, u64>,
    rows: Vec<ShipRow>,
    batches: usize,
    /// The next batches are stored and reported as failed.
    ambiguous: usize,
    /// True while the sink cannot be used.
    is_down: bool,
    /// The tool whose rows are refused.
    refused_tool: Option<&'static str>,
    forgotten: usize,
    /// Text that is added to today's file of a folder while a batch is stored.
    added_meanwhile: Option<(PathBuf, String)>,
}

impl MemorySink {
    fn ids(&self) -> Vec<String> {
        self.0.lock().rows.iter().map(|row| row.execution_id.to_string()).collect()
    }
}

fn down() -> SinkError {
    SinkError::Unavailable { problem: "down".to_owned(), remedy: "wait".to_owned() }
}

impl LogSink for MemorySink {
    fn cursor<'a>(&'a self, _: &'a SpoolId) -> BoxFuture<'a, Result<Vec<FileCursor>, SinkError>> {
        let memory = self.0.lock();
        let cursor = |(file, at): (&String, &u64)| FileCursor { file: file.clone(), at: *at };
        let cursors = memory.cursors.iter().map(cursor).collect();
        let answer = if memory.is_down { Err(down()) } else { Ok(cursors) };
        Box::pin(async { answer })
    }

    fn ship<'a>(
        &'a self,
        _: &'a SpoolId,
        from: &'a FileCursor,
        batch: &'a ShipBatch,
    ) -> BoxFuture<'a, Result<Shipped, SinkError>> {
        let mut memory = self.0.lock();
        memory.batches += 1;
        if let Some((dir, text)) = &memory.added_meanwhile {
            add(dir, text);
        }
        let at = memory.cursors.get(&from.file).copied().unwrap_or(0);
        let is_refused = batch.rows.iter().any(|row| Some(&*row.tool) == memory.refused_tool);
        let answer = if memory.is_down {
            Err(down())
        } else if is_refused {
            Err(SinkError::Rejected { problem: "refused".to_owned() })
        } else if at == from.at {
            memory.cursors.insert(from.file.clone(), batch.to);
            memory.rows.extend(batch.rows.iter().cloned());
            Ok(Shipped::Moved)
        } else {
            Ok(Shipped::At(at))
        };
        let answer = match memory.ambiguous.checked_sub(1) {
            Some(left) => {
                memory.ambiguous = left;
                Err(down())
            }
            None => answer,
        };
        Box::pin(async { answer })
    }

    fn forget<'a>(
        &'a self,
        _: &'a SpoolId,
        file: &'a FileCursor,
    ) -> BoxFuture<'a, Result<(), SinkError>> {
        let mut memory = self.0.lock();
        memory.cursors.remove(&file.file);
        memory.forgotten += 1;
        Box::pin(async { Ok(()) })
    }
}

/// A running shipper. Stops without shipping the rest when it is dropped, as after `kill -9`.
struct Running {
    shipper: Arc<Shipper>,
    tasks: TaskTracker,
    stop: CancellationToken,
    deletable: ShippedFiles,
}

fn ship(dir: &Path, sink: &Arc<MemorySink>) -> Running {
    let deletable = ShippedFiles::default();
    let (dir, sink) = (dir.to_owned(), Arc::clone(sink));
    let shipper = Arc::new(Shipper::new(sink, deletable.clone()));
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    let dir: LogDir = Arc::new(move || Some(dir.clone()));
    tasks.spawn(Arc::clone(&shipper).run(dir, stop.clone()));
    Running { shipper, tasks, stop, deletable }
}

impl Running {
    /// Waits until everything is shipped, through failures.
    async fn flush(&self) {
        let flushed = async {
            while !self.shipper.flush(SOON).await {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(SOON, flushed).await.unwrap();
    }

    async fn end(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Appends entries with new ids and returns those.
async fn append_new(log: &ExecutionLog, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for _ in 0..count {
        let id = Uuid::now_v7().to_string();
        append(log, &id, NOON).await.unwrap();
        ids.push(id);
    }
    ids
}

/// Adds text to today's file, as another program would.
fn add(dir: &Path, text: &str) {
    let file = OpenOptions::new().append(true).open(dir.join(TODAY));
    file.unwrap().write_all(text.as_bytes()).unwrap();
}

#[tokio::test]
async fn entries_are_shipped_once_in_order_with_their_lines() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(LogOptions::new(dir.path()));
    let sink = Arc::<MemorySink>::default();
    let mut ids = append_new(&log, 3).await;
    let running = ship(dir.path(), &sink);
    running.flush().await;
    assert_eq!(sink.ids(), ids);
    ids.extend(append_new(&log, 2500).await);
    running.flush().await;
    assert_eq!(sink.ids(), ids);
    let text = fs::read_to_string(dir.path().join(TODAY)).unwrap();
    let lines: Vec<String> = sink.0.lock().rows.iter().map(|row| row.entry.clone()).collect();
    assert_eq!(lines, text.lines().collect::<Vec<_>>());
    assert!(sink.0.lock().batches >= 4, "a batch has at most 1,000 lines");
    let status = running.shipper.status();
    assert_eq!((status.entries, status.skipped, status.waiting_bytes), (2503, 0, 0));
}

/// A call that ends while a batch is stored does not cause a statement of its own.
#[tokio::test]
async fn lines_that_are_written_while_a_batch_is_stored_share_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(LogOptions::new(dir.path()));
    append_new(&log, 3).await;
    let line = fs::read_to_string(dir.path().join(TODAY)).unwrap();
    let line = format!("{}\n", line.lines().next().unwrap());
    let sink = Arc::<MemorySink>::default();
    sink.0.lock().added_meanwhile = Some((dir.path().to_owned(), line));
    let running = ship(dir.path(), &sink);
    // Each of the passes ships what there was when it began.
    for _ in 0..3 {
        assert!(running.shipper.flush(SOON).await);
    }
    let passes = running.shipper.passes();
    let batches = sink.0.lock().batches;
    assert!((3..=usize::try_from(passes).unwrap()).contains(&batches), "{batches} in {passes}");
    sink.0.lock().added_meanwhile = None;
    running.end().await;
    assert_eq!(sink.ids().len(), 3 + batches);
}

#[tokio::test]
async fn a_batch_whose_outcome_is_unknown_is_stored_once() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(LogOptions::new(dir.path()));
    let sink = Arc::<MemorySink>::default();
    sink.0.lock().ambiguous = 2;
    let running = ship(dir.path(), &sink);
    let mut ids = append_new(&log, 5).await;
    running.flush().await;
    ids.extend(append_new(&log, 5).await);
    sink.0.lock().ambiguous = 1;
    running.flush().await;
    assert_eq!(sink.ids(), ids);
}

#[tokio::test]
async fn shipping_resumes_at_the_cursor_after_a_restart_and_when_the_service_ends() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(LogOptions::new(dir.path()));
    let sink = Arc::<MemorySink>::default();
    let mut ids = append_new(&log, 2).await;
    let running = ship(dir.path(), &sink);
    running.flush().await;
    // The last lines are shipped at the end.
    ids.extend(append_new(&log, 2).await);
    running.end().await;
    assert_eq!(sink.ids(), ids);
    let running = ship(dir.path(), &sink);
    ids.extend(append_new(&log, 2).await);
    running.flush().await;
    assert_eq!(sink.ids(), ids);
}

#[tokio::test]
async fn two_processes_that_ship_one_folder_store_each_entry_once() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(LogOptions::new(dir.path()));
    let sink = Arc::<MemorySink>::default();
    let (one, other) = (ship(dir.path(), &sink), ship(dir.path(), &sink));
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.extend(append_new(&log, 10).await);
        tokio::join!(one.flush(), other.flush());
    }
    assert_eq!(sink.ids(), ids);
}

#[tokio::test]
async fn a_sink_that_is_down_holds_up_nothing_and_receives_everything_later() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(LogOptions::new(dir.path()));
    let sink = Arc::<MemorySink>::default();
    sink.0.lock().is_down = true;
    let running = ship(dir.path(), &sink);
    let ids = append_new(&log, 10).await;
    while running.shipper.status().problem.is_none() {
        tokio::task::yield_now().await;
    }
    assert_eq!(running.shipper.status().problem.unwrap().text, "down; wait");
    assert!(!running.shipper.flush(SOON).await);
    sink.0.lock().is_down = false;
    running.flush().await;
    assert_eq!(sink.ids(), ids);
    assert!(running.shipper.status().problem.is_none());
}

/// The file is moved away with lines that wait, and another one takes its place.
#[tokio::test]
async fn a_file_that_was_moved_is_shipped_to_its_end_and_its_successor_from_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let log = open_checking(LogOptions::new(dir.path()));
    let sink = Arc::<MemorySink>::default();
    let mut ids = append_new(&log, 3).await;
    let running = ship(dir.path(), &sink);
    running.flush().await;
    sink.0.lock().is_down = true;
    ids.extend(append_new(&log, 3).await);
    fs::rename(dir.path().join(TODAY), dir.path().join("kept.jsonl")).unwrap();
    ids.extend(append_new(&log, 1).await);
    sink.0.lock().is_down = false;
    running.flush().await;
    running.flush().await;
    assert_eq!(sink.ids(), ids);
    assert_eq!(sink.0.lock().forgotten, 1);
    assert_eq!(sink.0.lock().cursors.len(), 1);
}

/// A program copies the file and empties it, and the new content is longer than the old one was.
#[tokio::test]
async fn a_file_that_was_emptied_is_shipped_from_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(LogOptions::new(dir.path()));
    let sink = Arc::<MemorySink>::default();
    let mut ids = append_new(&log, 1).await;
    let running = ship(dir.path(), &sink);
    running.flush().await;
    OpenOptions::new().write(true).open(dir.path().join(TODAY)).unwrap().set_len(0).unwrap();
    ids.extend(append_new(&log, 5).await);
    running.flush().await;
    assert_eq!(sink.ids(), ids);
}

#[tokio::test]
async fn lines_that_are_no_entries_are_skipped_and_an_unfinished_one_waits() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(LogOptions::new(dir.path()));
    let sink = Arc::<MemorySink>::default();
    let running = ship(dir.path(), &sink);
    let mut ids = append_new(&log, 1).await;
    add(dir.path(), "\n{\"half\":\nnot json\n");
    ids.extend(append_new(&log, 1).await);
    let id = Uuid::now_v7();
    let line = fs::read_to_string(dir.path().join(TODAY))
        .unwrap()
        .lines()
        .next()
        .unwrap()
        .replace(&ids[0], &id.to_string());
    let (begin, end) = line.split_at(100);
    add(dir.path(), begin);
    running.flush().await;
    assert_eq!(sink.ids(), ids);
    assert_eq!(running.shipper.status().skipped, 2);
    assert_eq!(running.shipper.status().waiting_bytes, 100);
    add(dir.path(), &format!("{end}\n"));
    ids.push(id.to_string());
    running.flush().await;
    assert_eq!(sink.ids(), ids);
}

#[tokio::test]
async fn an_entry_that_the_sink_refuses_does_not_hold_up_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(LogOptions::new(dir.path()));
    let sink = Arc::<MemorySink>::default();
    sink.0.lock().refused_tool = Some("poison");
    let mut ids = append_new(&log, 5).await;
    let poison = Uuid::now_v7().to_string();
    let input = raw("{}");
    log.append(&Entry { tool: "poison", ..entry(&poison, &input) }).await.unwrap();
    ids.extend(append_new(&log, 6).await);
    let running = ship(dir.path(), &sink);
    running.flush().await;
    assert_eq!(sink.ids(), ids);
    assert_eq!(running.shipper.status().skipped, 1);
}

/// A database that fails over to an older state has an older cursor.
#[tokio::test]
async fn entries_that_the_sink_lost_are_shipped_again() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(LogOptions::new(dir.path()));
    let sink = Arc::<MemorySink>::default();
    let running = ship(dir.path(), &sink);
    let mut ids = append_new(&log, 2).await;
    running.flush().await;
    let rows = sink.0.lock().rows.clone();
    let cursors = sink.0.lock().cursors.clone();
    ids.extend(append_new(&log, 2).await);
    running.flush().await;
    sink.0.lock().rows = rows;
    sink.0.lock().cursors = cursors;
    ids.extend(append_new(&log, 1).await);
    running.flush().await;
    assert_eq!(sink.ids(), ids);
}

const MIB: u64 = 1 << 20;

fn spooled(dir: &Path, shipped: &ShippedFiles) -> LogOptions {
    let spool = Some(SpoolOptions { bytes_max: MIB, shipped: shipped.clone() });
    LogOptions { spool, retain_days: 0, ..LogOptions::new(dir) }
}

/// Appends entries of 10 KiB until one is refused or there are `count`.
async fn append_large(log: &ExecutionLog, count: usize) -> Result<(), LogError> {
    let input = raw(&format!("\"{}\"", "x".repeat(10 << 10)));
    for _ in 0..count {
        log.append(&entry(&Uuid::now_v7().to_string(), &input)).await?;
    }
    Ok(())
}

#[tokio::test]
async fn files_that_wait_are_never_deleted_and_a_full_spool_refuses_entries() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("tools-2026-07-01.jsonl"), "old\n").unwrap();
    let log = open(spooled(dir.path(), &ShippedFiles::default()));
    let refused = append_large(&log, 200).await.unwrap_err();
    assert!(matches!(refused, LogError::SpoolFull { .. }), "{refused}");
    assert!(refused.remedy().contains("log.spool_max"), "{}", refused.remedy());
    assert!(names(dir.path()).contains(&"tools-2026-07-01.jsonl".to_owned()));
    assert!(names(dir.path()).contains(&TODAY.to_owned()));
}

#[tokio::test]
async fn shipped_files_make_room_in_the_spool() {
    let dir = tempfile::tempdir().unwrap();
    let sink = Arc::<MemorySink>::default();
    let running = ship(dir.path(), &sink);
    let log = open(spooled(dir.path(), &running.deletable));
    for _ in 0..20 {
        append_large(&log, 10).await.unwrap();
        running.flush().await;
    }
    assert_eq!(sink.ids().len(), 200);
    assert!(!names(dir.path()).contains(&TODAY.to_owned()), "the first part made room");
}

/// Nothing is added for a day, so the file is not needed any more.
#[tokio::test]
async fn a_file_that_was_shipped_a_day_ago_is_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(LogOptions::new(dir.path()));
    let sink = Arc::<MemorySink>::default();
    let ids = append_new(&log, 2).await;
    let path = dir.path().join(TODAY);
    let running = ship(dir.path(), &sink);
    running.flush().await;
    assert!(path.exists());
    let file = OpenOptions::new().append(true).open(&path).unwrap();
    let yesterday = std::time::SystemTime::now() - Duration::from_hours(25);
    file.set_modified(yesterday).unwrap();
    running.flush().await;
    running.flush().await;
    assert!(!path.exists());
    assert_eq!(sink.ids(), ids);
    assert_eq!(sink.0.lock().forgotten, 1);
}
