//! The task that owns one server connection: it feeds the state machine with commands, results and time, does the
//! job that is due, and publishes the state. Only this task writes the state.

use std::sync::Arc;

use haft_mcp::{BoxFuture, Failure, RequestError, TransportError};
use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::backoff;
use super::commands::Commands;
use super::connection::{Connection, KnownLists, Published};
use super::endpoint::{self, Attempt, ConnectTime, EndedBy};
use super::health::{Health, Reason};
use super::link::Link;
use super::lists::Lists;
use super::live_client::LiveClient;
use super::machine::{AttemptError, Connected, Event, Job, Listed, Machine, ReadError};
use super::process;
use crate::config::choices::ConnectFailure;
use haft_text::printable;

/// The number of state changes that are kept for each server.
const HISTORY_MAX: usize = 50;

type LinkEvent = Event<Arc<LiveClient>, KnownLists>;

/// Runs until the connection is stopped.
pub(super) async fn run(
    connection: Arc<Connection>,
    commands: watch::Receiver<Commands>,
    published: watch::Sender<Published>,
) {
    let status = published.borrow().status.clone();
    let policy = (&connection.config.reconnect).into();
    let supervisor = Supervisor {
        machine: Machine::new(policy, backoff::random(), status),
        connect_time: ConnectTime::new(connection.config.connect_timeout.value),
        round_started: Instant::now(),
        connection,
        commands,
        seen: Commands::default(),
        published,
        client: None,
        running: None,
    };
    supervisor.run().await;
}

struct Supervisor {
    connection: Arc<Connection>,
    machine: Machine<Arc<LiveClient>, KnownLists>,
    commands: watch::Receiver<Commands>,
    /// The commands that the machine has received.
    seen: Commands,
    published: watch::Sender<Published>,
    /// The client to close; the machine may have left it behind.
    client: Option<Arc<LiveClient>>,
    running: Option<(Job, BoxFuture<'static, Done>)>,
    /// The time that is left for the attempts of the current round.
    connect_time: ConnectTime,
    /// The start of the current round.
    round_started: Instant,
}

/// The result of a job.
enum Done {
    Attempted { number: u64, attempt: Box<Attempt>, time_left: ConnectTime },
    Examined { reason: Reason, is_session_expired: bool },
    Read(Result<Lists, RequestError>),
    Closed,
}

/// An input for the supervisor.
enum Input {
    Event(LinkEvent),
    Commands,
    Done(Done),
}

impl Supervisor {
    async fn run(mut self) {
        while !matches!(self.machine.status().link, Link::Stopped) {
            match self.next().await {
                Input::Event(event) => self.apply(event),
                Input::Commands => {
                    let commands = self.commands.borrow_and_update().clone();
                    for event in commands.since(&self.seen) {
                        self.apply(event);
                    }
                    self.seen = commands;
                }
                Input::Done(done) => {
                    self.running = None;
                    self.finish(done);
                }
            }
            self.start_job();
        }
    }

    async fn next(&mut self) -> Input {
        let Self { connection, machine, commands, running, .. } = self;
        let stopped = connection.stop_token().cancelled();
        let (watched, deadline) = (machine.watched(), machine.deadline());
        let ended = async {
            match watched {
                Some((client, attempt)) => {
                    client.wait_ended().await;
                    attempt
                }
                None => std::future::pending().await,
            }
        };
        let done = async {
            match running {
                Some((_, job)) => job.await,
                None => std::future::pending().await,
            }
        };
        let deadline_reached = async {
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = stopped, if !machine.is_stopping() => Input::Event(Event::Stop),
            // The connection owns a sender, so this never fails.
            _ = commands.changed() => Input::Commands,
            attempt = ended => Input::Event(Event::Lost { attempt }),
            done = done => Input::Done(done),
            () = deadline_reached => Input::Event(Event::DeadlineReached),
        }
    }

    fn apply(&mut self, event: LinkEvent) {
        self.machine.apply(event, Instant::now());
        self.publish();
    }

    /// Publishes the state, then notifies the observer if the health changed.
    fn publish(&self) {
        let status = self.machine.status().clone();
        let mut changed = None;
        self.published.send_modify(|published| {
            let (state, reason, retries) = status.link.health();
            let (old_state, old_reason, _) = published.status.link.health();
            // The timestamp is that of the last change, not of the last attempt.
            if (state, reason) != (old_state, old_reason) {
                published.since = Timestamp::now();
                let (reason, since) = (reason.cloned(), published.since);
                let health = Health { state, reason, since, retries };
                if published.history.len() == HISTORY_MAX {
                    published.history.pop_front();
                }
                published.history.push_back(health.clone());
                changed = Some(health);
            }
            published.status = status;
        });
        if let (Some(watch), Some(health)) = (&self.connection.context.watch, changed) {
            watch(self.connection.name(), &health);
        }
    }

    /// Drops a job that is no longer due and starts the one that is.
    fn start_job(&mut self) {
        let due = self.machine.job();
        if self.running.as_ref().map(|(job, _)| *job) == due {
            return;
        }
        self.running = due.map(|job| (job, self.begin(job)));
    }

    fn begin(&mut self, job: Job) -> BoxFuture<'static, Done> {
        let connection = Arc::clone(&self.connection);
        match job {
            Job::Attempt { number, begins_round } => {
                if begins_round {
                    let limit = connection.config.connect_timeout.value;
                    self.connect_time = ConnectTime::new(limit);
                    self.round_started = Instant::now();
                }
                let mut time_left = self.connect_time.clone();
                Box::pin(async move {
                    let attempt = Box::new(endpoint::attempt(&connection, &mut time_left).await);
                    Done::Attempted { number, attempt, time_left }
                })
            }
            Job::ExamineLoss => {
                let loss = self.client.take().map(|client| client.loss());
                Box::pin(async move { examine_loss(&connection, loss).await })
            }
            Job::ReadLists => {
                let client = self.client.clone();
                Box::pin(async move {
                    match client {
                        Some(client) => Done::Read(Lists::load(&client, &connection.config).await),
                        None => std::future::pending().await,
                    }
                })
            }
            Job::Close => {
                let client = self.client.take();
                Box::pin(async move { close(&connection, client).await })
            }
        }
    }

    fn finish(&mut self, done: Done) {
        match done {
            Done::Attempted { number, attempt, time_left } => {
                self.connect_time = time_left;
                let Attempt { outcome, is_transient, retry_after } = *attempt;
                match outcome {
                    Ok((client, lists)) => self.connected(LiveClient::new(client, number), lists),
                    Err(reason) => {
                        self.attempt_failed(AttemptError { reason, is_transient, retry_after });
                    }
                }
            }
            Done::Examined { reason, is_session_expired } => {
                self.apply(Event::LossExamined { reason, is_session_expired });
            }
            Done::Read(Ok(lists)) => {
                let listed = self.known(lists);
                self.apply_lists(listed, |listed| Event::ListsRead(Ok(listed)));
            }
            Done::Read(Err(error)) => self.lists_failed(&error),
            Done::Closed => self.apply(Event::Closed),
        }
    }

    fn connected(&mut self, client: LiveClient, lists: Lists) {
        let client = Arc::new(client);
        self.client = Some(Arc::clone(&client));
        self.connection.events.reconnected();
        self.log_connected(lists.tools.len());
        let listed = self.known(lists);
        let connected = Arc::clone(&client);
        self.apply_lists(listed, |listed| {
            Event::Attempted(Ok(Connected { client: connected, listed }))
        });
        self.connection.resubscribe(&client);
    }

    /// One line for each connection. The formats of other tools prescribe their own lines, so theirs is for debugging.
    fn log_connected(&self, tools: usize) {
        let config = &self.connection.config;
        let plural = if tools == 1 { "" } else { "s" };
        let secs = self.round_started.elapsed().as_secs_f64();
        let line = format!("{}: connected, {tools} tool{plural}, {secs:.1} s", config.name);
        if self.connection.context.announces && !config.dialect.prescribes_log_lines() {
            tracing::info!("{line}");
        } else {
            tracing::debug!("{line}");
        }
    }

    fn attempt_failed(&mut self, error: AttemptError) {
        self.apply(Event::Attempted(Err(error)));
        let server = self.connection.name();
        match self.machine.status().link.health() {
            (_, Some(reason), retries) if retries > 0 => {
                let reason = reason.to_string();
                match &self.machine.status().link {
                    // A single failed attempt is reported where it was needed.
                    Link::Down { .. } if self.reports_giving_up() => tracing::warn!(
                        server,
                        attempts = retries + 1,
                        "gave up connecting to the server: {}; the next call tries again",
                        printable(&reason)
                    ),
                    _ => tracing::debug!(server, retries, "{}", printable(&reason)),
                }
            }
            _ => {}
        }
    }

    /// False if the error of the start reports it.
    fn reports_giving_up(&self) -> bool {
        let ends_start = self.connection.config.on_connect_failure.value == ConnectFailure::Exit;
        !ends_start || self.machine.status().lists.is_some()
    }

    /// The lists to publish, with secrets masked.
    fn known(&self, mut lists: Lists) -> Listed<KnownLists> {
        let connection = &self.connection;
        lists.mask(&connection.context.descriptions);
        for gap in &lists.gaps {
            tracing::warn!("MCP server '{}': {}", connection.name(), printable(gap));
        }
        // Also if they are the same: the age of the file is that of the lists.
        lists.save_cached(&connection.config, &connection.context);
        let gap = (!lists.gaps.is_empty()).then(|| Reason::from(lists.gaps.join("; ")));
        let before = self.machine.status().lists.as_ref().map(|known| &known.lists);
        let lists = match before.filter(|before| ***before == lists) {
            Some(same) => Arc::clone(same),
            None => Arc::new(lists),
        };
        Listed { lists: KnownLists::read_now(lists), gap }
    }

    /// Publishes lists, then notifies the toolbox if they differ from those before.
    fn apply_lists(
        &mut self,
        listed: Listed<KnownLists>,
        event: impl FnOnce(Listed<KnownLists>) -> LinkEvent,
    ) {
        let before = self.machine.status().lists.as_ref().map(|known| Arc::clone(&known.lists));
        let is_same = before.is_some_and(|before| Arc::ptr_eq(&before, &listed.lists.lists));
        self.apply(event(listed));
        if !is_same {
            self.connection.context.changed.notify_one();
        }
    }

    fn lists_failed(&mut self, error: &RequestError) {
        let has_ended = self.client.as_ref().is_none_or(|client| client.has_ended());
        let error = if has_ended {
            ReadError::Ended
        } else {
            let reason = format!("its lists changed and cannot be read again: {error}");
            let reason = self.connection.context.redactor.text(&reason).into_owned();
            tracing::warn!("MCP server '{}': {}", self.connection.name(), printable(&reason));
            ReadError::Failed(reason.into())
        };
        self.apply(Event::ListsRead(Err(error)));
    }
}

/// Finds the cause of a loss, for instance how the process ended.
async fn examine_loss(connection: &Connection, loss: Option<TransportError>) -> Done {
    let unknown = || TransportError::after_sending(Failure::Closed, "the connection ended");
    let loss = loss.unwrap_or_else(unknown);
    let ended_by = EndedBy::of_transport(&loss);
    let reason = endpoint::with_last_words(connection, &loss.message, ended_by).await;
    let text = reason.to_string();
    tracing::warn!(server = connection.name(), "lost the server: {}", printable(&text));
    Done::Examined { reason, is_session_expired: loss.kind == Failure::SessionExpired }
}

/// Closes the client, if there is one, and ends the process of a connection or of an attempt.
async fn close(connection: &Connection, client: Option<Arc<LiveClient>>) -> Done {
    if let Some(client) = client {
        client
            .withdraw(TransportError::unsent(Failure::Closed, "the connection was closed by Haft"));
        client.close().await;
    }
    process::end(&connection.process.tree).await;
    Done::Closed
}
