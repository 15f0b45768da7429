//! Keeps one server connected: connects when somebody needs it, holds the connection, notices its
//! loss, tries again with growing pauses, refreshes lists that changed.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_mcp::{Client, Failure, TransportError};

use super::connection::Connection;
use super::endpoint::{self, Attempt, EndedBy};
use super::health::ServerState;
use super::lists::Lists;
use super::process;
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
    let mut attempts_max = 1 + reconnect.attempts.value;
    let mut short_lives = 0;
    loop {
        let pause =
            if short_lives == 0 { Duration::ZERO } else { backoff(reconnect, short_lives - 1) };
        match round(connection, attempts_max, pause).await {
            Ok((client, lists)) => {
                let began = Instant::now();
                publish(connection, &client, lists);
                connection.tried();
                let End::Lost(loss) = hold(connection, &client).await else { return };
                connection.client.store(None);
                short_lives = if began.elapsed() < GOOD_LIFE { short_lives + 1 } else { 0 };
                let reason = endpoint::with_last_words(
                    connection,
                    &loss.message,
                    EndedBy::of_transport(&loss),
                )
                .await;
                tracing::warn!(
                    server = connection.name(),
                    "lost the server: {}",
                    printable(&reason)
                );
                // A session that the server forgot is opened again at once, whatever the rule.
                let is_forgotten = loss.kind == Failure::SessionExpired;
                if is_forgotten {
                    short_lives = 0;
                }
                attempts_max = reconnect.attempts.value.max(u32::from(is_forgotten));
                connection.set(ServerState::Unavailable, Some(reason), 0);
                if attempts_max == 0 {
                    return refuse_for_good(connection).await;
                }
            }
            Err(failure) => {
                connection.set(ServerState::Unavailable, Some(failure.text), failure.retries);
                connection.rounds.send_modify(|rounds| *rounds += 1);
                connection.tried();
                rest(connection, failure.is_transient).await;
                short_lives = 0;
                attempts_max = 1 + reconnect.attempts.value;
            }
        }
    }
}

/// A round of attempts that all failed.
struct Failed {
    text: String,
    retries: u32,
    is_transient: bool,
}

/// Tries to connect, up to `attempts_max` times.
async fn round(
    connection: &Arc<Connection>,
    attempts_max: u32,
    mut pause: Duration,
) -> Result<(Arc<Client>, Lists), Failed> {
    let mut retries = 0;
    loop {
        let why = connection.health().reason.filter(|_| retries > 0 || !pause.is_zero());
        connection.set(ServerState::Connecting, why, retries);
        tokio::time::sleep(pause).await;
        let Attempt { outcome, is_transient, retry_after } = endpoint::attempt(connection).await;
        let text = match outcome {
            Ok(connected) => return Ok(connected),
            Err(text) => text,
        };
        if retries + 1 >= attempts_max || !is_transient {
            return Err(Failed { text, retries, is_transient });
        }
        pause = backoff(&connection.config.reconnect, retries)
            .max(retry_after.unwrap_or_default().min(RETRY_AFTER_MAX));
        retries += 1;
        tracing::debug!(server = connection.name(), retries, ?pause, "{}", printable(&text));
        connection.set(ServerState::Connecting, Some(text), retries);
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
    connection.client.store(Some(Arc::clone(client)));
    connection.watch_again(client);
    take_lists(connection, lists);
    connection.rounds.send_modify(|rounds| *rounds += 1);
}

/// Keeps what the server offers now. The toolbox hears of it if that is something new.
fn take_lists(connection: &Connection, lists: Lists) {
    if lists.gaps.is_empty() {
        connection.set(ServerState::Ready, None, 0);
    } else {
        for gap in &lists.gaps {
            tracing::warn!("MCP server '{}': {}", connection.name(), printable(gap));
        }
        connection.set(ServerState::Degraded, Some(lists.gaps.join("; ")), 0);
    }
    let before = connection.lists.load_full();
    if before.as_deref() != Some(&lists) {
        lists.save_cached(&connection.config, &connection.surroundings);
        connection.lists.store(Some(Arc::new(lists)));
        connection.surroundings.changed.notify_one();
    }
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
        Err(_) if client.has_ended() => {}
        Err(error) => {
            let reason = format!("its lists changed and cannot be read again: {error}");
            let reason = connection.surroundings.redactor.text(&reason).into_owned();
            tracing::warn!("MCP server '{}': {}", connection.name(), printable(&reason));
            connection.set(ServerState::Degraded, Some(reason), 0);
        }
    }
}

/// After a round that failed: those who ask at once hear so at once; later ones start a new round.
async fn rest(connection: &Connection, is_transient: bool) {
    let reconnect = &connection.config.reconnect;
    if reconnect.attempts.value == 0 {
        return refuse_for_good(connection).await;
    }
    let pause = backoff(reconnect, reconnect.attempts.value);
    let refuse = async {
        loop {
            connection.wanted.notified().await;
            connection.rounds.send_modify(|rounds| *rounds += 1);
        }
    };
    let _: Result<(), _> = tokio::time::timeout(pause, refuse).await;
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
