//! Keeps one server connected: connects when somebody needs it, holds the connection, notices its
//! loss, tries again with growing pauses, refreshes lists that changed.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use haft_mcp::{Client, Failure, TransportError};

use super::connection::Connection;
use super::endpoint::{self, Attempt, ConnectTime, EndedBy};
use super::health::{Reason, ServerState};
use super::lists::Lists;
use super::process;
use crate::config::choices::ConnectFailure;
use crate::config::model::Reconnect;
use crate::text::printable;

/// A connection that lived this long was a good one; the next loss starts the pauses anew.
const GOOD_LIFE: Duration = Duration::from_secs(30);
/// How often a server that could not be reached is tried without anybody asking for it.
const LOOK_AGAIN_EVERY: Duration = Duration::from_mins(1);
/// Notices of changed lists within this time lead to one refresh.
const GATHER_NOTICES: Duration = Duration::from_millis(50);
/// The longest a server may ask to be left alone between two attempts.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);

/// Why a connection is held no longer.
enum End {
    Lost(TransportError),
    Stopped,
}

/// Runs until the connection is stopped.
pub(super) async fn run(connection: Arc<Connection>) {
    let stop = connection.stop.clone();
    let mut wishes = connection.wishes.subscribe();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            _ = wishes.wait_for(|wishes| wishes.made > wishes.taken_up) => {}
            () = supervise(&connection) => break,
        }
        // Somebody wants a new connection now, whatever became of the old one.
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            () = let_go(&connection) => {}
        }
        connection.wishes.send_modify(|wishes| wishes.taken_up = wishes.made);
        connection.wanted.notify_one();
    }
    if let Some(client) = connection.client.swap(None) {
        client.close().await;
    }
    connection.set(ServerState::Stopped, None, 0);
    connection.rounds.send_modify(|rounds| *rounds += 1);
}

/// Ends the connection there is, or the attempt to make one, and leaves nothing of it behind.
async fn let_go(connection: &Connection) {
    connection.set(ServerState::Connecting, None, 0);
    if let Some(client) = connection.client.swap(None) {
        client.close().await;
    }
    process::end(&connection.process).await;
}

async fn supervise(connection: &Arc<Connection>) {
    let reconnect = &connection.config.reconnect;
    connection.wanted.notified().await;
    let mut plan =
        Plan { attempts_max: 1 + reconnect.attempts.value, pause: Duration::ZERO, step: 0 };
    let mut short_lives = 0;
    loop {
        match round(connection, &plan).await {
            Ok((client, lists)) => {
                let began = Instant::now();
                publish(connection, &client, lists);
                connection.tried();
                let End::Lost(loss) = hold(connection, &client).await else { return };
                connection.client.store(None);
                let is_forgotten = loss.kind == Failure::SessionExpired;
                let was_good = began.elapsed() >= GOOD_LIFE || is_forgotten;
                short_lives = if was_good { 0 } else { short_lives + 1 };
                report_loss(connection, &loss).await;
                // A forgotten session is opened again at once, even with `attempts: 0`.
                if reconnect.attempts.value == 0 && !is_forgotten {
                    return refuse_for_good(connection).await;
                }
                plan = Plan::after_loss(reconnect, short_lives);
            }
            Err(failure) => {
                let retries = failure.retries;
                // A single failed attempt is reported where it was needed.
                if retries > 0 {
                    report_giving_up(connection, &failure);
                }
                connection.set(ServerState::Unavailable, Some(failure.reason), retries);
                // The calls that waited for this round fail with it and start no further one. Before
                // the count, so that the wish of a later call is not lost.
                let _ = connection.wanted.notified().now_or_never();
                connection.rounds.send_modify(|rounds| *rounds += 1);
                connection.tried();
                if reconnect.attempts.value == 0 {
                    return refuse_for_good(connection).await;
                }
                let failed = Instant::now();
                wait_for_demand(connection, failure.is_transient).await;
                short_lives = 0;
                // A call tries the server once more, but no server is tried more often than this.
                let pause = backoff(reconnect, 0).saturating_sub(failed.elapsed());
                plan = Plan { attempts_max: 1, pause, step: 0 };
            }
        }
    }
}

/// The attempts of one round and the pauses between them.
struct Plan {
    attempts_max: u32,
    /// The pause before the first attempt.
    pause: Duration,
    /// The step of the backoff that follows the first attempt.
    step: u32,
}

impl Plan {
    /// A server that lived long is tried at once, then with growing pauses. One that keeps failing
    /// soon after it connected starts with a pause, which grows with each short life.
    fn after_loss(reconnect: &Reconnect, short_lives: u32) -> Self {
        let attempts = reconnect.attempts.value;
        match short_lives.checked_sub(1) {
            None => Self { attempts_max: 1 + attempts, pause: Duration::ZERO, step: 0 },
            Some(step) => Self {
                attempts_max: attempts,
                pause: backoff(reconnect, step),
                step: step.saturating_add(1),
            },
        }
    }
}

async fn report_loss(connection: &Connection, loss: &TransportError) {
    let ended_by = EndedBy::of_transport(loss);
    let reason = endpoint::with_last_words(connection, &loss.message, ended_by).await;
    let text = reason.to_string();
    tracing::warn!(server = connection.name(), "lost the server: {}", printable(&text));
    connection.set(ServerState::Unavailable, Some(reason), 0);
}

fn report_giving_up(connection: &Connection, failure: &Failed) {
    let ends_start = connection.config.on_connect_failure.value == ConnectFailure::Exit;
    if ends_start && connection.lists.load().is_none() {
        // The error of the start reports it.
        return;
    }
    tracing::warn!(
        server = connection.name(),
        attempts = failure.retries + 1,
        "gave up connecting to the server: {}; the next call tries again",
        printable(&failure.reason.to_string())
    );
}

/// A round of attempts that all failed.
struct Failed {
    reason: Reason,
    retries: u32,
    is_transient: bool,
}

/// Tries to connect, up to `plan.attempts_max` times.
async fn round(connection: &Arc<Connection>, plan: &Plan) -> Result<(Arc<Client>, Lists), Failed> {
    let mut pause = plan.pause;
    let mut retries = 0;
    let mut time = ConnectTime::new(connection);
    loop {
        let why = connection.health().reason.filter(|_| retries > 0 || !pause.is_zero());
        connection.set(ServerState::Connecting, why, retries);
        tokio::time::sleep(pause).await;
        let Attempt { outcome, is_transient, retry_after } =
            endpoint::attempt(connection, &mut time).await;
        let reason = match outcome {
            Ok(connected) => return Ok(connected),
            Err(reason) => reason,
        };
        if retries + 1 >= plan.attempts_max || !is_transient {
            return Err(Failed { reason, retries, is_transient });
        }
        pause = backoff(&connection.config.reconnect, plan.step.saturating_add(retries))
            .max(retry_after.unwrap_or_default().min(RETRY_AFTER_MAX));
        retries += 1;
        tracing::debug!(
            server = connection.name(),
            retries,
            ?pause,
            "{}",
            printable(&reason.to_string())
        );
        connection.set(ServerState::Connecting, Some(reason), retries);
        connection.failures.send_modify(|failures| *failures += 1);
        connection.tried();
    }
}

/// The pause before the retry after `retries` retries, a little longer or shorter than configured
/// so that many clients of one server do not come back all at once.
pub(super) fn backoff(reconnect: &Reconnect, retries: u32) -> Duration {
    let Reconnect { attempts: _, base, factor, max } = reconnect;
    let power = factor.value.powi(i32::try_from(retries).unwrap_or(i32::MAX));
    let pause = base.value.as_secs_f64() * power;
    let random = RandomState::new().hash_one(retries) % 201;
    #[expect(clippy::cast_precision_loss, reason = "at most 200")]
    let jitter = 0.9 + random as f64 / 1000.0;
    Duration::try_from_secs_f64(pause * jitter).unwrap_or(max.value).min(max.value)
}

fn publish(connection: &Connection, client: &Arc<Client>, lists: Lists) {
    connection.resources.store(None);
    connection.under_way.reconnected();
    connection.client.store(Some(Arc::clone(client)));
    connection.watch_again(client);
    take_lists(connection, lists);
    connection.rounds.send_modify(|rounds| *rounds += 1);
}

/// Keeps what the server offers now. The toolbox hears of it if that is something new.
fn take_lists(connection: &Connection, mut lists: Lists) {
    lists.mask(&connection.surroundings.descriptions);
    if lists.gaps.is_empty() {
        connection.set(ServerState::Ready, None, 0);
    } else {
        for gap in &lists.gaps {
            tracing::warn!("MCP server '{}': {}", connection.name(), printable(gap));
        }
        connection.set(ServerState::Degraded, Some(lists.gaps.join("; ").into()), 0);
    }
    // Also if they are the same: the file's age is that of the lists.
    lists.save_cached(&connection.config, &connection.surroundings);
    connection.read_at.set_now();
    let before = connection.lists.load_full();
    if before.as_deref() != Some(&lists) {
        connection.lists.store(Some(Arc::new(lists)));
        connection.surroundings.changed.notify_one();
    }
    connection.refreshes.send_modify(|refreshes| *refreshes += 1);
}

/// Holds the connection until it is lost.
async fn hold(connection: &Connection, client: &Arc<Client>) -> End {
    loop {
        tokio::select! {
            biased;
            () = connection.stop.cancelled() => return End::Stopped,
            () = client.wait_ended() => {
                let unknown = || TransportError::after_sending(Failure::Closed, "the connection ended");
                return End::Lost(client.ended().unwrap_or_else(unknown));
            }
            () = connection.lost.notified() => {
                if let Some(loss) = connection.take_loss(client) {
                    return End::Lost(loss);
                }
            }
            () = connection.stale.notified() => {
                tokio::time::sleep(GATHER_NOTICES).await;
                refresh(connection, client).await;
            }
            // Somebody looked in the moment before the client was there.
            () = connection.wanted.notified() => connection.rounds.send_modify(|_| {}),
        }
    }
}

async fn refresh(connection: &Connection, client: &Client) {
    match Lists::load(client, &connection.config).await {
        Ok(lists) => take_lists(connection, lists),
        // A connection that ended meanwhile is noticed by whoever holds it.
        Err(_) if client.has_ended() => {
            connection.refreshes.send_modify(|refreshes| *refreshes += 1);
        }
        Err(error) => {
            let reason = format!("its lists changed and cannot be read again: {error}");
            let reason = connection.surroundings.redactor.text(&reason).into_owned();
            tracing::warn!("MCP server '{}': {}", connection.name(), printable(&reason));
            connection.set(ServerState::Degraded, Some(reason.into()), 0);
            connection.refreshes.send_modify(|refreshes| *refreshes += 1);
        }
    }
}

/// Waits until a call needs the server; a transient failure is also looked at again after a while.
async fn wait_for_demand(connection: &Connection, is_transient: bool) {
    if is_transient {
        let _ = tokio::time::timeout(LOOK_AGAIN_EVERY, connection.wanted.notified()).await;
    } else {
        connection.wanted.notified().await;
    }
}

/// `reconnect.attempts: 0`: what is lost stays lost.
async fn refuse_for_good(connection: &Connection) {
    loop {
        connection.rounds.send_modify(|rounds| *rounds += 1);
        connection.wanted.notified().await;
    }
}
